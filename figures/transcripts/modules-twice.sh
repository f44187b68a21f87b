# numbers: any
@figures/transcripts/mutant twice src/nn/module.c test_modules 'i < all->count && w->once' 'false'
@cd "${BUILD:-build}/mutants/twice"
./test_modules
