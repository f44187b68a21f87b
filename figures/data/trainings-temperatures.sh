# daily minimum temperatures, next day: losses, and mean errors of forecast and persistence in degrees, after each epoch
out=$(mktemp -d)
treadle() { PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" -m treadle "$@" --data "${TREADLE_DATA:-../shared/data}" --out "$out"; }
treadle train temperatures >&2
cat "$out/log.csv"
rm -r "$out"
