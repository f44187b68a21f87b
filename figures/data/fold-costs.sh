# Nanoseconds a number of maxima, exponentials and what is made of them.
"${BUILD:-build}/examples/fold-costs" rows
