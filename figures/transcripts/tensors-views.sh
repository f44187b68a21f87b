# numbers: 0
build/examples/views
