@cd "${BUILD:-build}/examples"
./dice thirds
