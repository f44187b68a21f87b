# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@treadle() { python3 -m treadle "$@"; }
@cat > looks.py <<'END'
@import treadle as td
@from treadle.utils.data import DataLoader
@from treadle.programs import Loop
@for often in 0, 1, 2:
@    loop = Loop("airline", epochs=5)
@    quiet = loop.evaluate
@    def evaluate():
@        for _ in range(often):
@            for batch in DataLoader(loop.task.test, 500, shuffle=True):
@                pass
@        return quiet()
@    loop.evaluate = evaluate
@    loop.run(show=lambda text: None)
@    print(f"{often} looks an epoch: {loop.history[-1]['train']:.9f}")
@END
python3 looks.py
