# numbers: any
@cd "${BUILD:-build}/examples"
./loop-costs
