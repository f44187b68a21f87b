# numbers: any
@figures/transcripts/mutant believed src/nn/idx.c test_data 'return check_length(s, 4 + 4 * (int64_t)shape->count, elements);' 'return true;'
@cd "${BUILD:-build}/mutants/believed"
./test_data | head -n 1
