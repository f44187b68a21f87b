# numbers: within 0.05
build/examples/classifier 2> /dev/null
