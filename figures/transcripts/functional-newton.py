import treadle as td
from treadle.func import grad, hessian
def f(x): return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

def across(h): return td.stack([h[1, 1], -h[0, 1], -h[1, 0], h[0, 0]]).reshape(2, 2)

def det(h): return h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]

x = td.tensor([-1.2, 1.0], dtype=td.float64)
for step in range(7):
    print(f"{f(x).item():.3e}", x.tolist())
    h, g = hessian(f)(x), grad(f)(x)
    x = x - across(h) @ g / det(h)

