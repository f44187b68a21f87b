# numbers: within 1e-3
# deviation of the units after each of twenty layers, for three scales
"${BUILD:-build}/examples/depth"
