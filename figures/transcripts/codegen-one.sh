# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant size-one src/compiler/emit-c.c one-step 'if (e->s->rank == e->s->kept)' 'if (e->s->kind != TD_FOLD)'
@cd "${BUILD:-build}/mutants/size-one"
@cat > program <<'END'
@input %0 : float32[1, 5]
@%1 = neg(%0) : float32[1, 5]
@%2 = sum(%1, dim=[0], keepdim=False) : float32[5]
@return %2
@END
cat program; ./one-step both < program
