# clothes of Fashion-MNIST by the CNN in C: losses, and test images named correctly (%), after each epoch (2 minutes on one core)
out=$(mktemp -d)
TREADLE_DATA=${TREADLE_DATA:-../shared/data} "${BUILD:-build}/examples/fashion" 5 "$out" >&2
cat "$out/log.csv"
rm -r "$out"
