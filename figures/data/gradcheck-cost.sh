# milliseconds of a backward pass of a product of two n x n matrices, and of its check
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import time
import treadle as td
from treadle.autograd import gradcheck, gradgradcheck


def best(f, times):
    def once():
        began = time.perf_counter()
        f()
        return time.perf_counter() - began
    return 1e3 * min(once() for _ in range(times))


print("n,pass,first,second")
for n in (2, 4, 8, 16):
    td.manual_seed(1)
    a, b = (td.randn(n, n, dtype=td.float64, requires_grad=True) for _ in range(2))
    one = best(lambda: (a @ b).sum().backward(), 50)
    first = best(lambda: gradcheck(td.matmul, (a, b)), 3)
    second = best(lambda: gradgradcheck(td.matmul, (a, b)), 1) if n < 16 else float("nan")
    print(f"{n},{one:.4f},{first:.2f},{second:.1f}")
END
