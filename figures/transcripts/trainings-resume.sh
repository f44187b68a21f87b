# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@treadle() { python3 -m treadle "$@"; }
treadle train airline --epochs 20 --out whole | tail -n 1
@cat > cut.py <<'END'
@import os, sys
@from treadle import programs
@from treadle.__main__ import main
@learn = programs.Loop.learn
@def learned(self, *batch):
@    if self.step == 57:
@        os.kill(os.getpid(), 9)
@    return learn(self, *batch)
@programs.Loop.learn = learned
@sys.exit(main())
@END
@echo '$ treadle train airline --epochs 20 --out cut | tail -n 1  # kill -9'
@{ python3 cut.py train airline --epochs 20 --out cut | tail -n 1; } 2> /dev/null
treadle train airline --resume --out cut | tail -n 1
cmp whole/model.safetensors cut/model.safetensors && echo the same bits
