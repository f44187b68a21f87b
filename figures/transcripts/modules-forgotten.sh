# numbers: any
@figures/transcripts/mutant forgotten src/nn/module.c test_modules 'TD_PARAMETER(linear, weight), TD_PARAMETER(linear, bias),' 'TD_PARAMETER(linear, weight),'
@cd "${BUILD:-build}/mutants/forgotten"
./test_modules | head -n 3
