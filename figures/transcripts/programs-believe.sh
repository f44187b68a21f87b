# numbers: any
@figures/transcripts/mutant believe src/compiler/ir.c test_tracing 'if (!td_ir_replay(s, at, 0))\n        return false;' 'return td_ir_replay(s, at, 0);'
@cd "${BUILD:-build}/mutants/believe"
./test_tracing | head -2
