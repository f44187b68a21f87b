@cd "$(mktemp -d)"; cat > train.py <<'END'
@import treadle as td
@scale = td.ones(3, requires_grad=True)
@def norm(x):
@    return x / (x - x.mean()).square().sum().sqrt()
@def loss():
@    flat = scale * td.ones(3)
@    return (norm(flat) * 0.5).sum()
@with td.autograd.set_detect_anomaly(True):
@    loss().backward()
@END
cat -n train.py | sed -n 3,9p
PYTHONPATH="$OLDPWD/${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" train.py 2>&1 | sed "s|$PWD/||" | grep -v "_tensor.py\|_C.back\|^Traceback\|loss().backward\|in <module>"
