# numbers: any
@figures/transcripts/mutant unbarred src/nn/data.c test_data '    td_scope_barrier_begin();\n    const bool made = d->batch(d->context, index, n, &x, &y);\n    td_scope_barrier_end();' '    const bool made = d->batch(d->context, index, n, &x, &y);'
@cd "${BUILD:-build}/mutants/unbarred"
./test_data
