@python3() { "${PYTHON:-/usr/bin/python3}" -I "$@" 2>&1 | tail -n 1; }
python3 -c 'import treadle as td'
