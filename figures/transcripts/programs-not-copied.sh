# numbers: any
@figures/transcripts/mutant not-copied src/compiler/ir.c test_tracing 'in_place >> i & 1 ? x : td_clone(x)' 'x'
@cd "${BUILD:-build}/mutants/not-copied"
./test_tracing | head -2
