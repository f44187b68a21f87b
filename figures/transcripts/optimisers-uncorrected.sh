# numbers: within 1e-3
@figures/transcripts/mutant uncorrected src/nn/optimisers.c test_optimisers 's.rate /= 1 - pow(s.follow, t);' ''
@cd "${BUILD:-build}/mutants/uncorrected"
./test_optimisers
