@cd "${BUILD:-build}/examples"
./sum-by-hand
