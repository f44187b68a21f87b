@cd "${BUILD:-build}/examples"
./double_count
