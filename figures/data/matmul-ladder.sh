# Billions of operations a second, one thread, by size: the four lower rungs
# and the library's product at each level of the instruction set.
"$BUILD/examples/matmul-ladder"
