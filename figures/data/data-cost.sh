# reading the clothes, a batch of 64 and a permutation, one core
TREADLE_THREADS=1 PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import time
import treadle as td
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader

start = time.perf_counter()
clothes = FashionMNIST(train=True)
unpack = time.perf_counter() - start
loader = DataLoader(clothes, 64, shuffle=True)
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    for batch in loader:
        pass
    best = min(best, time.perf_counter() - start)
order = 1e9
for _ in range(5):
    start = time.perf_counter()
    td.randperm(60000)
    order = min(order, time.perf_counter() - start)
print("what,milliseconds,microseconds")
print(f"unpack,{1e3 * unpack:.0f},{1e6 * unpack:.0f}")
print(f"batch,{1e3 * best / len(loader):.4f},{1e6 * best / len(loader):.1f}")
print(f"order,{1e3 * order:.3f},{1e6 * order:.0f}")
END
