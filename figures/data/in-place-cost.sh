# milliseconds, forward and backward, of a matrix of n rows of 64 numbers: filled row by row, and stacked of a list
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import time
import treadle as td


def best(f, times=3):
    def once():
        began = time.perf_counter()
        f()
        return time.perf_counter() - began
    return 1e3 * min(once() for _ in range(times))


def filled(w, n):
    y = td.zeros(n, 64)
    for k in range(n):
        y[k] = w
    y.sum().backward()


def stacked(w, n):
    td.stack([w * 1 for _ in range(n)]).sum().backward()


print("n,filled,stacked")
w = td.randn(64, requires_grad=True)
for n in (16, 32, 64, 128, 256, 512, 1024):
    print(f"{n},{best(lambda: filled(w, n)):.3f},{best(lambda: stacked(w, n)):.3f}")
END
