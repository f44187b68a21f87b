# numbers: within 0.05
@python3() { PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" "${GENERATED:-generated}/$@"; }
python3 examples/shuffled.py
