# numbers: any
@figures/transcripts/mutant unsynced src/nn/safetensors.c test_saving '&& !ferror(s->file) && fsync(fileno(s->file)) == 0;' '&& !ferror(s->file);'
@cd "${BUILD:-build}/mutants/unsynced"
./test_saving | head -n 3
