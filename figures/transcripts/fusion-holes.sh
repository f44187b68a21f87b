# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant holes src/compiler/lower.c one-step 'x->shape[d] != 1 || s->full[d + more] == 1' 'x->shape[d] != 0'
@cd "${BUILD:-build}/mutants/holes"
@cat > program <<'END'
@input %0 : float32[3, 2]
@input %1 : float32[1, 2]
@%2 = add(%0, %1) : float32[3, 2]
@return %2
@END
cat program; ./one-step both < program
