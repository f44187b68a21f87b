# numbers: any
@figures/transcripts/mutant lying src/nn/safetensors.c test_saving 'if (x && !td_is_contiguous(x))' 'if (!x)'
@cd "${BUILD:-build}/mutants/lying"
./test_saving | head -n 2
