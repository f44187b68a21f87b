# numbers: any
@NAME=mlir-levels; . figures/transcripts/mlir.inc
@LOW="--convert-vector-to-llvm --convert-arith-to-llvm --convert-memref-to-llvm --convert-func-to-llvm=use-bare-ptr-memref-call-conv=1 --convert-cf-to-llvm --reconcile-unrealized-casts"
@written 'x + y' 3x32 3x1 > "$keep/code.mlir"; cd "$keep"
@mlir-opt-15() { command mlir-opt-15 --canonicalize --cse "$@" --canonicalize --cse; }
@lines() { sed '/^module/d; /^}$/d; /^$/d; s/^  //' | short; }
@printf '$ cat code.mlir\n'; short < code.mlir | sed '$d'
@printf '$ mlir-opt --lower-affine code.mlir | tee scf.mlir\n'; mlir-opt-15 --lower-affine code.mlir | tee scf.mlir | lines
@printf '$ mlir-opt --convert-scf-to-cf ... scf.mlir      # the inner loop\n'; mlir-opt-15 --convert-scf-to-cf $LOW scf.mlir | lines | sed -n "/^.bb3/,/llvm.br/p"
