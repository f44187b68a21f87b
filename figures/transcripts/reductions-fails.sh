@cd "${BUILD:-build}/examples"
./long-sum obvious
