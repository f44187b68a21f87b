@NAME=mlir-views; . figures/transcripts/mlir.inc
written 'x + y.t()' 3x4 4x3 | grep load | short
written 'x + y' 3x4 3x1 | grep load | short
written 'x + y[:, 1:2]' 3x4 3x5 | grep load | short
