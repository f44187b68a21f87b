# numbers: 0
build/examples/descriptions
