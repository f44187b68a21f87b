# numbers: any
@figures/transcripts/mutant pointed src/compiler/ir.c test_tracing 'return room != NULL ? td_value_copy(value, room) : *value;' 'return *value;'
@cd "${BUILD:-build}/mutants/pointed"
./test_tracing | grep -A 1 'Could not run' | head -n 2
