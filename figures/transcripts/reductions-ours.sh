@cd "${BUILD:-build}/examples"
./long-sum ours
