# numbers: any
@cd "${BUILD:-build}/examples"
./sum-on-threads by hand
