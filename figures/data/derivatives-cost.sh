# time of a whole gradient, in runs of the formula, by its number of inputs
"${BUILD:-build}/examples/derivatives" cost
