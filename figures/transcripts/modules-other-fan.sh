# numbers: any
@figures/transcripts/mutant other-fan src/nn/module.c test_modules 'o.fan_out ? out : in' 'o.fan_out ? in : out'
@cd "${BUILD:-build}/mutants/other-fan"
./test_modules | head -n 3
