# numbers: any
@figures/transcripts/mutant hole src/nn/safetensors.c test_saving 'if (t->begin != at)' 'if (t->begin < at)'
@cd "${BUILD:-build}/mutants/hole"
./test_saving | head -n 3
