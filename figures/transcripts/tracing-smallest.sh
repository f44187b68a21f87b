@cd "${BUILD:-build}/examples"
./one-step smallest trace | cut -c1-72
