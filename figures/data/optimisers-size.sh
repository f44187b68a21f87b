# numbers: within 1e-3
# bytes that the classifier's parameters and the memory of two rules take
PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td

def bytes_of(make):
    before = td.memory_stats()["bytes"]
    kept = make()
    return (td.memory_stats()["bytes"] - before, kept)

def stepped(rule, **settings):
    o = rule([w], lr=1e-3, **settings)
    o.step()
    return o

plain, w = bytes_of(lambda: td.rand(235146, requires_grad=True))
w.grad = td.rand(235146)
print("what,kilobytes")
print(f"plain,{plain / 1e3:.0f}")
print(f"momentum,{bytes_of(lambda: stepped(td.optim.SGD, momentum=0.9))[0] / 1e3:.0f}")
print(f"adam,{bytes_of(lambda: stepped(td.optim.Adam))[0] / 1e3:.0f}")
END
