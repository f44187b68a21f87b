@export PYTHONPATH="$PWD/${BUILD:-build}/python"; python3() { "${PYTHON:-/usr/bin/python3}" "$@" | sed "s|$PWD/||"; }
@cd "$(mktemp -d)"; cat > train.py <<'END'
@import treadle as td
@x = td.rand(1000, 100)
@losses = []
@def step():
@    losses.append((x * 2).exp())
@with td.profiler.profile(profile_memory=True, with_stack=True) as p:
@    for _ in range(5):
@        step()
@for bytes, operator, line in p.memory_peak()[1]:
@    print(bytes, operator, line)
@END
sed -n 4,10p train.py
python3 train.py
