# Where the time of a product of square matrices goes, one thread: shares of the whole.  "useful": multiply-adds at the peak;
# "thrown": the same, for columns that are no columns of the result; "packing": measured by itself; "rest": what is left.
# The best of three runs (2 minutes).
for run in 1 2 3; do "${BUILD:-build}/examples/sgemm" bill; done | awk -F, '
    NR == 1 { print; next } $1 == "n" { next }
    !($1 in best) { order[++count] = $1 } !($1 in best) || $2 > best[$1] { best[$1] = $2; line[$1] = $0 }
    END { for (i = 1; i <= count; i++) print line[order[i]] }'
