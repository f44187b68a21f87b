@figures/transcripts/plugin-mutant unmarked emulate runtime.cu 'if (p->cached + size > p->limit\n        || !follow_all(p, last.writer, last.users)) {' 'if (p->cached + size > p->limit) {'
@cd "${BUILD:-build}/mutants/unmarked"
./test_cuda
