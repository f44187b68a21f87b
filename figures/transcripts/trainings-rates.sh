# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@treadle() { python3 -m treadle "$@"; }
@cat > rates.py <<'END'
@from treadle.programs import Loop
@whole = Loop("airline", epochs=5)
@def walk(loop, steps):
@    rates = []
@    def stopped():
@        rates.append(loop.optimiser.param_groups[0]["lr"])
@        return len(rates) == steps
@    loop.run(stopped=stopped, show=lambda text: None)
@    return rates
@walk(whole, 15)
@state = whole.state_dict()
@cut = Loop("airline", epochs=5)
@state["schedule"] = cut.schedule.state_dict()
@cut.load_state_dict(state)
@for name, loop in ("no plug", whole), ("no schedule", cut):
@    print(f"{name:12}", *(f"{rate:.6f}" for rate in walk(loop, 4)))
@END
python3 rates.py
