# numbers: within 1e-4
@cd "${BUILD:-build}/examples"
./linear_regression
