# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@treadle() { python3 -m treadle "$@"; }
@cat > torn.py <<'END'
@import treadle as td
@from treadle.programs import Loop
@def end(loop):
@    loop.run(show=lambda text: None)
@    return loop.history[-1]["loss"]
@whole, cut = (Loop("airline", epochs=5) for _ in range(2))
@print(f"nobody pressed a key       {end(whole):.9f}")
@td.manual_seed(0)
@cut = Loop("airline", epochs=5)
@update, left = cut.optimiser._update, [100]
@def pressed(*args):
@    left[0] -= 1
@    if left[0] == 0:
@        raise KeyboardInterrupt
@    update(*args)
@cut.optimiser._update = pressed
@try:
@    cut.run(show=lambda text: None)
@except KeyboardInterrupt:
@    state = cut.state_dict()
@again = Loop("airline", epochs=5)
@again.load_state_dict(state)
@print(f"saved where it was raised  {end(again):.9f}")
@END
python3 torn.py
