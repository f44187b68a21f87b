@figures/transcripts/mutant believed src/nn/idx.c test_data 'return check_length(s, 4 + 4 * (int64_t)shape->count, elements);' 'return true;'
@cd "${BUILD:-build}/mutants/believed"
@claimed() { ./test_data | grep -A 1 "$1" | sed 's|/tmp/[^/]*/||' | tr -d '\n'; echo; }
claimed "can hold"
