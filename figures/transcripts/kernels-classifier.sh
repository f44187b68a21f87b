# numbers: within 1e-3
@export PYTHONPATH=${BUILD:-build}/python
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
python3 generated/examples/classifier_device.py cpu
TREADLE_CUDA=emulate python3 generated/examples/classifier_device.py cuda
