# numbers: any
@NAME=mlir-recap; . figures/transcripts/mlir.inc
@export LOOPS=mlir-loops
written '(x @ y + z).relu()' 4x2 2x5 5 | short | sed -n 1,13p
