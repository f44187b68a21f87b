# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant minus-zero src/compiler/emit-c.c one-step 'f == 0 ? ".0" : ""' '""'
@cd "${BUILD:-build}/mutants/minus-zero"
@cat > program <<'END'
@input %0 : float32[4]
@%1 = mul(%0, -0.0) : float32[4]
@%2 = reciprocal(%1) : float32[4]
@return %2
@END
cat program; ./one-step both < program
