# numbers: 0
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
python3 generated/examples/trousers.py
