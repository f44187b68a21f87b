@cd "${BUILD:-build}/examples"
./binary_weight
