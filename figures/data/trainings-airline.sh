# airline passengers, next month: losses, and mean errors of forecast and persistence in thousands, after each epoch
out=$(mktemp -d)
treadle() { PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" -m treadle "$@" --data "${TREADLE_DATA:-../shared/data}" --out "$out"; }
treadle train airline >&2
cat "$out/log.csv"
rm -r "$out"
