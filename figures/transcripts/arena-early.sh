# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant early src/compiler/lower.c one-step '&l->stage[x->last];' '&l->stage[x->last > x->first ? x->last - 1 : x->last];'
@cd "${BUILD:-build}/mutants/early"
@cat > program <<'END'
@input %0 : float32[2, 2]
@%1 = matmul(%0, %0) : float32[2, 2]
@%2 = t(%1) : float32[2, 2]
@%3 = sub(%1, %2) : float32[2, 2]
@%4 = matmul(%3, %0) : float32[2, 2]
@return %4
@END
./one-step both < program
