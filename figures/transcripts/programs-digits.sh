# numbers: any
@figures/transcripts/mutant digits src/compiler/ir.c test_tracing 'n < 17 && strtod' 'n < 6 && strtod'
@cd "${BUILD:-build}/mutants/digits"
./test_tracing | head -2
