# numbers: any
@NAME=mlir-shaped; . figures/transcripts/mlir.inc
@cp figures/transcripts/mlir-shaped.mlir "$keep/shaped.mlir"; cd "$keep"
@written() { :; }
cat shaped.mlir
@printf '$ mlir-opt --convert-memref-to-llvm shaped.mlir | grep malloc\n'
@mlir-opt-15 --lower-affine --convert-scf-to-cf --convert-arith-to-llvm --convert-memref-to-llvm --convert-func-to-llvm --convert-cf-to-llvm --reconcile-unrealized-casts shaped.mlir | grep -o '.*malloc([^)]*)' | sed 's/^ *//'
