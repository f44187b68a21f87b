@NAME=mlir-sigmoid; . figures/transcripts/mlir.inc
written 'x.sigmoid()' 8 | short
