# milliseconds: a product of two n x n matrices, forward and backward; and a sequence of n steps taken apart, backward
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import time
import treadle as td


def best(f, times=7):
    def once():
        began = time.perf_counter()
        f()
        return time.perf_counter() - began
    return 1e3 * min(once() for _ in range(times))


print("n,forward,backward,steps")
for n in (128, 256, 512, 1024):
    a, b, g = td.randn(n, n, requires_grad=True), td.randn(n, n, requires_grad=True), td.randn(n, n)
    y = a @ b
    with td.no_grad():
        forward = best(lambda: a @ b)
    backward = best(lambda: td.autograd.grad(y, (a, b), g, retain_graph=True))
    x = td.randn(n, 256, requires_grad=True)
    s = sum(x[t] for t in range(n)).sum()
    steps = best(lambda: td.autograd.grad(s, x, retain_graph=True))
    print(f"{n},{forward:.3f},{backward:.3f},{steps:.3f}")
END
