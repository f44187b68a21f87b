# photographs of CIFAR-10 (a part of them) by a ResNet-20: losses, and test images named correctly (%), after each epoch (30 minutes on 2 cores)
out=$(mktemp -d)
treadle() { PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" -m treadle "$@" --data "${TREADLE_DATA:-../shared/data}" --out "$out"; }
treadle train resnet >&2
cat "$out/log.csv"
rm -r "$out"
