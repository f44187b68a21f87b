# photographs of CIFAR-10 (a part of them) by the ResNet-20 in C: losses, and test images named correctly (%), after each epoch (9 minutes on one core)
out=$(mktemp -d)
TREADLE_DATA=${TREADLE_DATA:-../shared/data} "${BUILD:-build}/examples/resnet" 20 "$out" >&2
cat "$out/log.csv"
rm -r "$out"
