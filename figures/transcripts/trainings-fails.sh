# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@cat > plug.py <<'END'
@from treadle.programs import Loop
@
@
@class Told(Loop):
@    def learn(self, *batch):
@        self.said.append(super().learn(*batch))
@        return self.said[-1]
@
@
@def walk(loop, steps):
@    loop.said = []
@    loop.run(stopped=lambda: loop.step == steps, show=lambda text: None)
@    return loop.said
@
@
@whole, cut = (Told("airline", epochs=5, lr=0.01) for _ in range(2))
@walk(whole, 15)
@state = whole.state_dict()
@cut.model.load_state_dict(state["model"])
@cut.loader.load_state_dict(state["loader"])
@cut.step = 15
@theirs = walk(cut, 35)
@whole.load_state_dict(state)
@mine = walk(whole, 30)
@print("step   no plug   plug pulled")
@for k in (0, 1, 2, 3, 5, 8, 11, 14):
@    print(f"{16 + k:4}  {mine[k]:.6f}  {theirs[k]:.6f}")
@END
python3 plug.py
