# Nanoseconds a number of sums of a million floats.
"${BUILD:-build}/examples/fold-costs" sums
