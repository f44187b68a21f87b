# numbers: any
@command -v mlir-opt-15 mlir-translate-15 opt-15 llc-15 > build/which || { cat figures/transcripts/mlir-costs.txt; exit; }
@look=$(cd "${BUILD:-build}" && pwd)/mlir-costs; rm -rf "$look"; mkdir -m 700 "$look"; export TREADLE_CACHE=$look TREADLE_THREADS=1
@cd "${BUILD:-build}/examples"
./mlir-costs
