# numbers: any
@figures/transcripts/mutant calls src/nn/safetensors.c test_saving 'is not a regular file' 'is not a regular file'
@cd "${BUILD:-build}/mutants/calls"; cp made/test test_saving
./test_saving calls
