# numbers: within 1e-3
@figures/transcripts/mutant dampened src/nn/optimisers.c test_optimisers 'first ? 1 : 1 - td_v_double(&at[2])' '1 - td_v_double(&at[2])'
@cd "${BUILD:-build}/mutants/dampened"
./test_optimisers
