@cd "${BUILD:-build}/examples"
./names
