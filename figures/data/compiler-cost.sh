# microseconds of one run on one thread: eager, by the interpreter, and as the C that is written
TREADLE_CACHE=$(mktemp -d) TREADLE_THREADS=1 PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END2'
import time
import treadle as td, treadle.nn as nn, treadle.nn.functional as F

def trained(model, *shape):
    rule = td.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, t = td.rand(64, *shape), td.randint(0, 10, (64,))
    def step(x, t):
        rule.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        rule.step()
        return loss
    return step, (x, t)

def timed(f, given):
    for _ in range(10):
        f(*given)
    best = 1e9
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(10):
            f(*given)
        best = min(best, (time.perf_counter() - start) / 10)
    return 1e6 * best

net = lambda: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
seen = lambda: nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1),
                             nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 10))
programs = {
    "chain": lambda: (lambda x: td.relu(td.abs(-x * 3) - 1), (td.rand(1000, 1000),)),
    "classifier": lambda: trained(net(), 784),
    "convolution": lambda: trained(seen(), 1, 28, 28),
}
print("program,eager,interpreter,c,ratio")
for name, make in programs.items():
    f, given = make()
    us = [timed(f, given)]
    for backend in "interpreter", "c":
        f, given = make()
        f(*given)
        us.append(timed(td.jit(f, backend=backend), given))
    print(name, *(f"{u:.0f}" for u in us), f"{us[2] / us[0]:.2f}", sep=",")
END2
