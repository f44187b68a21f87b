# nanoseconds for each of a million elements, of a backward pass by the loop and by the graph
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import time
import treadle as td


def best(y, x, g, record):
    def once():
        began = time.perf_counter()
        td.autograd.grad(y, x, g, retain_graph=True, create_graph=record)
        return time.perf_counter() - began
    return 1e9 * min(once() for _ in range(15)) / x.numel()


x = td.rand(1 << 20, requires_grad=True)
g = td.rand(1 << 20)
print("name,loop,graph,terms")
for name, f, terms in (("neg", td.neg, 1), ("tanh", td.tanh, 3), ("sigmoid", td.sigmoid, 3), ("rsqrt", td.rsqrt, 4), ("relu", td.relu, 2)):
    y = f(x)
    print(f"{name},{best(y, x, g, False):.2f},{best(y, x, g, True):.2f},{terms}")
END
