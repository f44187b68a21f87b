@cd "${BUILD:-build}/examples"
./matmul-rungs
