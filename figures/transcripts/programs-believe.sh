# numbers: any
@figures/transcripts/mutant believe src/compiler/ir.c test_tracing '&& td_ir_replay(&p->step[s], at, 0))\n            verify_types(p, &p->step[s], at, s);' '&& td_ir_replay(&p->step[s], at, 0))\n            ;'
@cd "${BUILD:-build}/mutants/believe"
./test_tracing | head -2
