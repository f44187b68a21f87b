@cd "${BUILD:-build}/examples"
./trace_linear
