# numbers: within 1e-2
# error of three difference quotients of sin at 1, for each step width
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import math
import treadle as td


def sine(x, dtype):
    return td.sin(td.tensor([x], dtype=dtype)).item()


def step(h, dtype):
    """h as it is after rounding 1 + h."""
    return td.tensor([1 + h], dtype=dtype).item()


print("h,one,two,single")
for k in range(2, 57):
    h, true = 2.0 ** (-k / 1.06), math.cos(1)
    one = (math.sin(1 + h) - math.sin(1)) / h
    two = (math.sin(1 + h) - math.sin(1 - h)) / (2 * h)
    up, down = step(h, td.float32), step(-h, td.float32)
    single = (sine(up, td.float32) - sine(down, td.float32)) / (2 * h)
    print(f"{h:.3e},{abs(one - true):.3e},{abs(two - true):.3e},{abs(single - true):.3e}")
END
