# Nanoseconds a number of each distribution, one thread.
"${BUILD:-build}/examples/dice" cost
