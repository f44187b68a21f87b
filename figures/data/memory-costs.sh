# What one use of each mechanism of the memory chapter costs.
"$BUILD/examples/memory-costs"
