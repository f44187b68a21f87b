# numbers: within 0.1
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
build/examples/classifier_short
PYTHONPATH=build/python python3 generated/examples/classifier_short.py
