# numbers: any
@figures/transcripts/mutant unheld src/compiler/trace.c test_tracing '#include "compiler/ir.h"' '#include "compiler/ir.h"\n#define td_storage_retain(s)\n#define td_storage_release(s)'
@cd "${BUILD:-build}/mutants/unheld"
./test_tracing | head -3
