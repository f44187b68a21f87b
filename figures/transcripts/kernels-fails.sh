@away=$(mktemp -d) && cp -r "${BUILD:-build}/python" "$away"      # where no plug-in stands beside it
@export PYTHONPATH=$away/python TREADLE_PLUGINS=$away
@python3() { "${PYTHON:-/usr/bin/python3}" "$@" 2>&1 | tail -n 1 | sed "s|$away/||"; }
python3 -c 'import treadle as td; td.ones((2, 3)).to("cuda")'
@rm -r "$away"
