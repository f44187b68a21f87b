# numbers: any
build/examples/six-ways
