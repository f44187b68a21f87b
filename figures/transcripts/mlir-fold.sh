@NAME=mlir-fold; . figures/transcripts/mlir.inc
written '(x * x).sum(1)' 2x1024 | sed -n '1,9p' | short
