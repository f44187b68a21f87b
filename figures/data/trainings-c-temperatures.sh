# daily temperatures by the LSTM in C: losses, and errors beside those of persistence, after each epoch
out=$(mktemp -d)
TREADLE_DATA=${TREADLE_DATA:-../shared/data} "${BUILD:-build}/examples/forecast" temperatures 20 "$out" >&2
cat "$out/log.csv"
rm -r "$out"
