# numbers: any
import time
import treadle as td
def cost(look, n):
    q = td.randn(1, 4, n, 32, requires_grad=True)
    start, before = time.perf_counter(), td.memory_stats()["bytes"]
    kept = look(q)
    taken = td.memory_stats()["bytes"] - before
    return (time.perf_counter() - start) * 1e3, taken / 2 ** 20

def formula(q): return td.attention_weights(q, q) @ q

def blocks(q): return td.scaled_dot_product_attention(q, q, q)

for n in (256, 512, 1024, 2048):
    print("%5d places: %6.1f ms and %5.1f MiB, in blocks %6.1f and %4.2f"
          % (n, *min(cost(formula, n) for _ in range(5)),
             *min(cost(blocks, n) for _ in range(5))))

