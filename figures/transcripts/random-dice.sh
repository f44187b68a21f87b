@cd "${BUILD:-build}/examples"
./dice
