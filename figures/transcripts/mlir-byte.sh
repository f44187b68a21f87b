# numbers: any
@command -v mlir-opt-15 mlir-translate-15 opt-15 llc-15 > /dev/null || { cat figures/transcripts/mlir-byte.txt; exit; }
@figures/transcripts/mutant mlir-byte src/compiler/emit-mlir.c test_mlir ': equal ? "" : unsign ? "u" : "s", td_ops' ': equal ? "" : "s", td_ops'
@cd "${BUILD:-build}/mutants/mlir-byte"
./test_mlir | head -6
