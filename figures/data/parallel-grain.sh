# How much faster two threads are than one, by the length of a loop.
"$BUILD/examples/grain-costs"
