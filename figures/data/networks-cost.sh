# milliseconds of one training step of the classifier and of its parts, one core
TREADLE_THREADS=1 PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import time
import treadle as td
from treadle import nn

td.manual_seed(0)
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
sgd = td.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
images, labels = td.rand(64, 784), td.randint(0, 10, (64,))
a, b, c = td.rand(784, 256), td.rand(256, 128), td.rand(128, 10)

def step():
    sgd.zero_grad()
    nn.functional.cross_entropy(net(images), labels).backward()
    sgd.step()

def timed(f):
    best = 1e9
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(10):
            f()
        best = min(best, (time.perf_counter() - start) / 10)
    return 1e3 * best

print("part,milliseconds")
print(f"step,{timed(step):.3f}")
print(f"products,{timed(lambda: images @ a @ b @ c):.3f}")
print(f"optimiser,{timed(sgd.step):.3f}")
END
