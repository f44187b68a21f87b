# Microseconds for a million elements, one thread, at each level that the
# processor has; the best of three runs, each the median of seven batches.
cases="add relu exp tanh"
for level in v2 v3 v4 v2 v3 v4 v2 v3 v4; do
  TREADLE_ISA=$level "${BUILD:-build}/bench" ${cases// /_1000 }_1000 |
    awk -v level=$level '$2 == 1 { sub(/_1000/, "", $1); print $1, level, $3 }'
done | awk -v cases="$cases" '
  !(($1, $2) in time) || $3 < time[$1, $2] { time[$1, $2] = $3 }
  END {
    print "case,v2,v3,v4"
    n = split(cases, name, " ")
    for (i = 1; i <= n; i++)
      print name[i] "," time[name[i], "v2"] "," time[name[i], "v3"] "," \
        time[name[i], "v4"]
  }'
