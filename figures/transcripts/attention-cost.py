# numbers: any
import time
import treadle as td
def cost(n):
    q = td.randn(1, 4, n, 32, requires_grad=True)
    start, before = time.perf_counter(), td.memory_stats()["bytes"]
    kept = td.scaled_dot_product_attention(q, q, q)
    taken = td.memory_stats()["bytes"] - before
    return (time.perf_counter() - start) * 1e3, taken / 2 ** 20

for n in (256, 512, 1024, 2048):
    print("%5d places: %6.1f ms, %6.1f MiB kept for the gradient"
          % (n, *min(cost(n) for _ in range(5))))

