# numbers: within 0.1
build/examples/no_library
