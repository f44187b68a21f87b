# numbers: within 1e-3
# Bytes of elements alive after each operator of a pass forward and backward: thirty layers, batch 256, width 256.
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'PY'
import treadle as td
td.manual_seed(0)
w = [td.randn(256, 256).mul_(1 / 16).requires_grad_() for i in range(30)]
for p in w:
    p.grad = td.zeros(256, 256)
start = td.memory_stats()["bytes"]
rows = []
def look(*_):
    rows.append((td.memory_stats()["bytes"] - start) / 1e6)
x, results = td.randn(256, 256), []
with td.no_grad():                              # what forward alone holds
    y = x
    for p in w:
        y = td.tanh(y @ p)
        look()
alone, rows = rows, []
y = x
for p in w:
    h = y @ p
    look()
    h.register_hook(look)
    y = td.tanh(h)
    look()
    y.register_hook(look)
del h
loss = (y * y).mean()
del y
n = len(rows)
loss.backward()
print("step,pass,alone")
for i, mb in enumerate(rows):
    print(f"{i + 1},{mb:.3f},{alone[i // 2] if i < n else 'nan'}")
PY
