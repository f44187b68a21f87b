# numbers: any
@figures/transcripts/mutant mislabelled src/nn/data.c test_data '= label[index[b]];' '= label[b];'
@cd "${BUILD:-build}/mutants/mislabelled"
./test_data | head -n 2
