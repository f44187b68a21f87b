# tiny Shakespeare by the GPT in C: losses in nats a character, after each epoch (2 minutes on one core)
out=$(mktemp -d)
TREADLE_DATA=${TREADLE_DATA:-../shared/data} "${BUILD:-build}/examples/shakespeare" 10 "$out" >&2
cat "$out/log.csv"
rm -r "$out"
