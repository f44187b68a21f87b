@cd "${BUILD:-build}/examples"
./one-step | cut -c1-76
