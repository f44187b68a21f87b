@cd "${BUILD:-build}/examples"
./dual_numbers | head -4
