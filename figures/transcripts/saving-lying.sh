# numbers: any
@figures/transcripts/mutant lying src/nn/safetensors.c test_saving 'td_contiguous(td_brought(t->tensor,' '(td_brought(t->tensor,'
@cd "${BUILD:-build}/mutants/lying"
./test_saving | head -n 2
