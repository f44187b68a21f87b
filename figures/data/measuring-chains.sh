# Gflop/s of multiply-adds by the number of independent chains, for three widths of vector
"${BUILD:-build}/examples/ceilings" chains
