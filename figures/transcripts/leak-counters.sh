# numbers: any
build/examples/leak counters 300
