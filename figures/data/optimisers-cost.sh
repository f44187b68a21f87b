# one step of the 235,146 numbers of the classifier, one core; megabytes read and written
TREADLE_THREADS=1 PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import time
import treadle as td

N = 235146
w = td.rand(N, requires_grad=True)
g, m = td.rand(N), td.zeros(N)

def by_operators():
    global m
    with td.no_grad():
        m = m * 0.9 + g
        w.sub_(m * 1e-6)

def timed(f):
    best = 1e9
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(10):
            f()
        best = min(best, (time.perf_counter() - start) / 10)
    return 1e6 * best

rules = {"plain": (td.optim.SGD([w], lr=1e-6).step, 3), "momentum": (td.optim.SGD([w], lr=1e-6, momentum=0.9).step, 5),
         "momentum of operators": (by_operators, 10), "adam": (td.optim.Adam([w], lr=1e-6).step, 7)}
print("rule,microseconds,megabytes")
for name, (step, arrays) in rules.items():
    w.grad = g
    print(f"{name},{timed(step):.1f},{4 * arrays * N / 1e6:.1f}")
END
