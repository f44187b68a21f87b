# numbers: within 0.05
build/examples/no_library
