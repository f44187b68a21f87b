@cd "${BUILD:-build}/examples"
./sum-by-row
