# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@treadle() { python3 -m treadle "$@"; }
treadle train airline | tail -n 1; ls runs/airline
treadle eval airline
treadle sample airline --length 6
treadle train airline 2>&1 | fold -s -w 76
treadle train temperatures --resume
treadle trian airline 2>&1 | tail -n 1 | fold -s -w 76
