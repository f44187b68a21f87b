# numbers: any
@command -v mlir-opt-15 mlir-translate-15 opt-15 llc-15 > /dev/null || { cat figures/transcripts/mlir-tail.txt; exit; }
@figures/transcripts/mutant mlir-tail src/compiler/emit-mlir.c test_mlir ', whole = n - n % lanes;' ', whole = n;'
@cd "${BUILD:-build}/mutants/mlir-tail"
./test_mlir | head -6
