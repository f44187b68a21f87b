# numbers: any
@figures/transcripts/mutant recorded src/nn/optimisers.c test_optimisers '    td_no_grad_begin();\n    td_scope_begin();\n    for (int i = 0; i < o->count' '    td_scope_begin();\n    for (int i = 0; i < o->count'
@cd "${BUILD:-build}/mutants/recorded"
./test_optimisers | head -n 4
