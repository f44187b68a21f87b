@export PYTHONPATH=$(cd "${BUILD:-build}" && pwd)/python
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@cp ${BUILD:-build}/examples/classifier generated/examples/classifier.py ${BUILD:-build}/
@quiet() { "$@" > /dev/null 2>&1; }
@cd ${BUILD:-build}
quiet ./classifier --epochs 1 --losses c.txt
quiet python3 classifier.py --epochs 1 --losses py.txt
wc -l < c.txt
cmp c.txt py.txt && echo equal
