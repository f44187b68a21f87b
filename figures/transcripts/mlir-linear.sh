# numbers: any
@[ "$(uname -m)" = x86_64 ] && command -v mlir-opt-15 mlir-translate-15 opt-15 llc-15 > build/which || { cat figures/transcripts/mlir-linear.txt; exit; }
@look=$(cd "${BUILD:-build}" && pwd)/mlir-look; rm -rf "$look"; mkdir -m 700 "$look"
@TREADLE_ISA=v3 TREADLE_MLIR_KEEP=1 TREADLE_CACHE=$look "${BUILD:-build}/examples/mlir-costs" look
@cd "$look"/build-*; for f in code.*; do mv "$f" "linear.${f#code.}"; done
@show() { sed 's/^  //; s/ : [fmv].*//' | cut -c1-70; }
sed -n 2,14p linear.mlir | show
sed -n 16,21p linear.mlir | show
@show() { sed 's/ : .*//'; }
grep -m1 -B9 fmul linear.low.mlir | show
objdump -d --no-show-raw-insn linear.o | grep -m9 xmm
