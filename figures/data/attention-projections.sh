# microseconds: questions, keys and values of 16 x 64 places by one product, and by three
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'END_OF_SCRIPT'
import time
import treadle as td
F = td.nn.functional
x, w = td.randn(16, 64, 96), td.randn(288, 96)
thirds = [part.contiguous() for part in w.chunk(3)]

def us(work):
    best = 1e9
    for _ in range(300):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1e6

print("form,us")
print(f"one,{us(lambda: F.linear(x, w).chunk(3, -1)):.1f}")
print(f"three,{us(lambda: [F.linear(x, part) for part in thirds]):.1f}")
END_OF_SCRIPT
