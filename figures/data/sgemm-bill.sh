# Where the time of a product of square matrices goes, one thread: shares of the whole.  "useful": multiply-adds at the peak;
# "thrown": the same, for columns that are no columns of the result; "packing": measured by itself; "rest": what is left.
"${BUILD:-build}/examples/sgemm" bill
