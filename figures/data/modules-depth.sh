# deviation of the units after each of twenty layers, for three scales
"${BUILD:-build}/examples/depth"
