# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant nan-lost src/compiler/emit-c.c one-step '%s_%s(x, a)' '((x) > (a) ? (x) : (a)) //%s %s'
@cd "${BUILD:-build}/mutants/nan-lost"
@cat > program <<'END'
@input %0 : float32[6]
@%1 = sub(%0, 3.0) : float32[6]
@%2 = log(%1) : float32[6]
@%3 = amax(%2) : float32[]
@return %3
@END
cat program; ./one-step both < program
