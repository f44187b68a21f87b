@NAME=mlir-page; . figures/transcripts/mlir.inc
written '(x + y).relu()' 3x16 3x1 | fold -sw 72
