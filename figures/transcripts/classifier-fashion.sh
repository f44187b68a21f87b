# numbers: within 1
build/examples/classifier 2> /dev/null
