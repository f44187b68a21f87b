# numbers: within 2e-1
@figures/transcripts/mutant misaligned src/nn/data.c classifier '= label[index[b]];' '= label[index[b ^ 1 < n ? b ^ 1 : b]];'
@cd "${BUILD:-build}/mutants/misaligned"
./classifier --steps 500 2> /dev/null
