@cd "${BUILD:-build}/examples"
./binary_weight | head -n 1
