# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@figures/transcripts/mutant first-reader src/compiler/lower.c one-step 'if (n > root->last)' 'if (root->last < 0)'
@cd "${BUILD:-build}/mutants/first-reader"
./one-step losses
./one-step plan | tail -1
