# numbers: within 2e-1
@figures/transcripts/mutant misaligned src/nn/data.c classifier 'td_index_select(d->labels, 0, at)' 'td_index_select(d->labels, 0, td_reshape(td_flip(td_reshape(at, TD_DIMS(-1, 2)), TD_DIMS(1)), TD_DIMS(-1)))'
@cd "${BUILD:-build}/mutants/misaligned"
./classifier --steps 500 2> /dev/null
