# numbers: any
@figures/transcripts/mutant mislabelled src/nn/data.c test_data 'td_index_select(d->labels, 0, at)' 'td_part(d->labels, 0, 0, n)'
@cd "${BUILD:-build}/mutants/mislabelled"
./test_data | head -n 2
