# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@treadle() { python3 -m treadle "$@"; }
@cat > seen.py <<'END'
@import os, pty, sys
@mine, theirs = pty.openpty()
@if os.fork() == 0:
@    os.dup2(theirs, 2)
@    os.execv(sys.executable, [sys.executable, "-m", "treadle", *sys.argv[1:]])
@os.close(theirs)
@text = b""
@try:
@    while True:
@        text += os.read(mine, 4096)
@except OSError:
@    os.wait()
@lines = [line.strip() for line in text.decode().replace("\x1b[K", "").split("\r") if line.strip()]
@print(lines[-1])
@END
@echo '$ treadle train temperatures --epochs 1'
@python3 seen.py train temperatures --epochs 1
