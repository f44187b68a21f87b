# numbers: any
@figures/transcripts/mutant twice src/nn/module.c test_modules 'i < w->count && !w->state' 'false'
@cd "${BUILD:-build}/mutants/twice"
./test_modules
