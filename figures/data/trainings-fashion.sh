# clothes of Fashion-MNIST by a CNN: losses, and test images named correctly (%), after each epoch (4 minutes on 2 cores)
out=$(mktemp -d)
treadle() { PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" -m treadle "$@" --data "${TREADLE_DATA:-../shared/data}" --out "$out"; }
treadle train fashion >&2
cat "$out/log.csv"
rm -r "$out"
