# a linear layer with relu on its way down: lines of text at each level, bytes at the last, and the milliseconds of the tool
cd "$(dirname "$0")/../.."; NAME=mlir-levels
command -v mlir-opt-15 mlir-translate-15 opt-15 llc-15 >/dev/null || { sed 1d figures/data/mlir-levels.csv; exit; }
. figures/transcripts/mlir.inc
LOOPS=mlir-loops written '(x @ y + z).relu()' 16x10 10x10 10 > "$keep/code.mlir"
best() {        # the least of nine runs, in milliseconds
    local least=1000000 k began ended
    for k in 1 2 3 4 5 6 7 8 9; do
        began=$(date +%s%N); "$@"; ended=$(date +%s%N)
        [ $((ended - began)) -lt $((least * 1000)) ] && least=$(((ended - began) / 1000))
    done
    awk "BEGIN { printf \"%.1f\", $least / 1000 }"
}
cd "$keep"
echo "level,size,ms"
echo "affine,$(wc -l < code.mlir),0"
ms=$(best mlir-opt-15 --test-math-polynomial-approximation --lower-affine --convert-scf-to-cf --convert-math-to-llvm \
    --convert-math-to-libm --convert-vector-to-llvm --convert-arith-to-llvm --convert-memref-to-llvm \
    --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 --convert-cf-to-llvm --reconcile-unrealized-casts code.mlir -o low.mlir)
echo "llvm,$(wc -l < low.mlir),$ms"
ms=$(best mlir-translate-15 --mlir-to-llvmir low.mlir -o code.ll); echo "LLVM,$(wc -l < code.ll),$ms"
ms=$(best opt-15 -O3 -S code.ll -o best.ll); echo "improved,$(wc -l < best.ll),$ms"
ms=$(best llc-15 -O3 --relocation-model=pic --filetype=obj best.ll -o code.o)
echo "machine,$(objdump -d code.o | grep -c '^ '),$ms"
