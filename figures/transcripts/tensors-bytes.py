import treadle as td
held = lambda: td.memory_stats()["bytes"]
x, b = td.zeros(64, 10), td.zeros(10)
held()
views = b.expand(64, 10), x.t(), x[::2], x[:, 3]
held()
copy = b.expand(64, 10).contiguous()
held()
