# numbers: any
@export TREADLE_CACHE="$(mktemp -d)"
@export COMPILER="gcc -I${BUILD:-build}/obj"
@figures/transcripts/mutant bytes src/compiler/lower.c one-step 'fits = fits && fits_scalar(s->in[i].scalar, type);' ';'
@cd "${BUILD:-build}/mutants/bytes"
@cat > program <<'END'
@input %0 : uint8[6]
@%1 = gt(%0, 258) : bool[6]
@return %1
@END
cat program; ./one-step both < program
