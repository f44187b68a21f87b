# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant attributes src/compiler/ir.c one-step '    put_attribute(f, v);' ''
@cd "${BUILD:-build}/mutants/attributes"
@cat > program <<'END'
@input %0 : float32[2, 2]
@%1 = exp(%0) : float32[2, 2]
@%2 = sum(%1, dim=[0], keepdim=True) : float32[1, 2]
@%3 = sum(%1, dim=[1], keepdim=True) : float32[2, 1]
@%4 = div(%2, %3) : float32[2, 2]
@return %4
@END
cat program; ./one-step both < program
