# Microseconds until a second thread is at work.
"$BUILD/examples/thread-costs"
