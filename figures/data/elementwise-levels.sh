# Microseconds for a million elements, one thread, at each level that the
# processor has.
echo "case,v2,v3,v4"
for case in add relu exp tanh; do
  line=$case
  for level in v2 v3 v4; do
    line=$line,$(TREADLE_ISA=$level "${BUILD:-build}/bench" "${case}_1000" |
      awk '$2 == 1 { print $3 }')
  done
  echo "$line"
done
