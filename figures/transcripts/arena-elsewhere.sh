# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant elsewhere src/compiler/lower.c one-step 'return true;\n    return false;\n}\nstatic bool is_training' 'return false;\n    return false;\n}\nstatic bool is_training'
@cd "${BUILD:-build}/mutants/elsewhere"
@cat > program <<'END'
@input %0 : float32[2, 2]
@%1 = matmul(%0, %0) : float32[2, 2]
@%2 = t(%1) : float32[2, 2]
@%3 = sub(%1, %2) : float32[2, 2]
@%4 = matmul(%3, %0) : float32[2, 2]
@return %4
@END
cat program; ./one-step both < program
