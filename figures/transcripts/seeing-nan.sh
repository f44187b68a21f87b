@export PYTHONPATH="$PWD/${BUILD:-build}/python"; python3() { "${PYTHON:-/usr/bin/python3}" "$@" | sed "s|$PWD/||"; }
@cd "$(mktemp -d)"; cat > train.py <<'END'
@import treadle as td
@scale = td.ones(3, requires_grad=True)
@def norm(x):
@    return x / (x - x.mean()).square().sum().sqrt()
@def loss():
@    flat = scale * td.ones(3)
@    return (norm(flat) * 0.5).sum()
@import warnings
@warnings.showwarning = lambda message, *place: print(message, end="")
@try:
@    with td.autograd.set_detect_anomaly(True):
@        loss().backward()
@except RuntimeError as error:
@    print(error)
@END
cat -n train.py | sed -n 3,7p
python3 train.py
