# The share of the peak of multiply-adds, by the height of a tile of v4, alone, on operands in L2; and of a tile of eight by eight.
"${BUILD:-build}/examples/sgemm" heights
