# numbers: any
@figures/transcripts/mutant forgotten src/nn/module.c test_modules 'TD_PART_PARAMETER,\n            td_new_parameter(TD_DIMS(out), o' 'TD_PART_KEPT,\n            td_new_parameter(TD_DIMS(out), o'
@cd "${BUILD:-build}/mutants/forgotten"
./test_modules | head -n 3
