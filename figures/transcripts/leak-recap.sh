# numbers: any
build/examples/leak_saved counters 300
build/examples/leak_saved alone
