# numbers: any
import time, treadle as td
table = td.randn(10000, 128)
words = td.randint(0, 10000, (5000,)).tolist()
def seconds(f):
    began = time.perf_counter(); f(); return time.perf_counter() - began

row_by_row = lambda: td.stack([table[w] for w in words])
index = td.tensor(words)
at_once = lambda: td.index_select(table, 0, index)
f"{1e3 * min(seconds(row_by_row) for _ in range(5)):.1f} ms"
f"{1e3 * min(seconds(at_once) for _ in range(5)):.1f} ms"
