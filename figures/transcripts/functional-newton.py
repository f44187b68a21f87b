# numbers: any
import treadle as td
from treadle.func import grad, hessian
def f(x): return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

def solve(h, g):
    d = h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]
    return td.stack([h[1, 1] * g[0] - h[0, 1] * g[1],
                     h[0, 0] * g[1] - h[1, 0] * g[0]]) / d

x = td.tensor([-1.2, 1.0], dtype=td.float64)
for step in range(7):
    print(f"{f(x).item():.3e}", x.tolist())
    x = x - solve(hessian(f)(x), grad(f)(x))

