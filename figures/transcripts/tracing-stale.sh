# numbers: any
@figures/transcripts/mutant stale src/compiler/trace.c test_tracing 'if (s != NULL && s->version == td_version_of(x))' 'if (s != NULL)'
@cd "${BUILD:-build}/mutants/stale"
./test_tracing | head -3
