# microseconds of the loss, of its parts and of a product beside it, one core
TREADLE_THREADS=1 PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import time
import treadle as td
from treadle.nn.functional import cross_entropy, log_softmax

def timed(f):
    best = 1e9
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(8):
            f()
        best = min(best, (time.perf_counter() - start) / 8)
    return 1e6 * best

def row(n, c):
    x, y = td.randn(n, c, requires_grad=True), td.randint(0, c, (n,))
    a, b = td.rand(n, 784), td.rand(784, 256)
    plain = x.detach()
    return (timed(lambda: cross_entropy(x, y).backward()), timed(lambda: cross_entropy(plain, y)),
            timed(lambda: log_softmax(plain, 1)), timed(lambda: a @ b))

small, large = row(64, 10), row(1024, 1000)
print("what,small,large")
for name, s, l in zip(("both", "forward", "log softmax", "product"), small, large):
    print(f"{name},{s:.1f},{l:.1f}")
END
