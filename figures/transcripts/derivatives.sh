@cd "${BUILD:-build}/examples"
./derivatives
