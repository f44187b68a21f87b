@export PYTHONPATH=${BUILD:-build}/python TREADLE_PLUGINS=$(mktemp -d)
@python3() { "${PYTHON:-/usr/bin/python3}" "$@" 2>&1 | tail -n 1 | sed "s|$TREADLE_PLUGINS/||"; }
python3 -c 'import treadle as td; td.ones((2, 3)).to("cuda")'
