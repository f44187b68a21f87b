@cd "${BUILD:-build}/examples"
./one-step readers
