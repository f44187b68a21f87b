import treadle as td
from treadle.utils.checkpoint import checkpoint
def deep(x):
    for _ in range(100): x = x.tanh()
    return x

def parts(x):
    for _ in range(10): x = checkpoint(lambda x: deep10(x), x)
    return x

def deep10(x):
    for _ in range(10): x = x.tanh()
    return x

x = td.ones(25000, requires_grad=True)
def held(f):
    before = td.memory_stats()["bytes"]; y = f(x).sum()
    after = td.memory_stats()["bytes"]; y.backward()
    return (after - before) // 100000

held(deep), held(parts)
