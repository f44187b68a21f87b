# nanoseconds for each number moved, by what is moved
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import time
import treadle as td


def best(f, moved):
    def once():
        began = time.perf_counter()
        f()
        return time.perf_counter() - began
    return 1e9 * min(once() for _ in range(15)) / moved


N = 1 << 20
td.manual_seed(1)
line, rows = td.randn(N), td.randn(N // 128, 128)
any_row, any_place, in_order = td.randint(0, N // 128, (N // 128,)), td.randint(0, N, (N,)), td.arange(N)
square = td.randn(1024, 1024)
columns = td.randint(0, 1024, (1024, 1024))
print("what,time")
for what, f in (("copy", lambda: line.clone()),
                ("rows", lambda: td.index_select(rows, 0, any_row)),
                ("order", lambda: td.index_select(line, 0, in_order)),
                ("gather", lambda: td.gather(square, 1, columns)),
                ("random", lambda: td.index_select(line, 0, any_place)),
                ("addrows", lambda: rows.index_add(0, any_row, rows)),
                ("add", lambda: line.index_add(0, any_place, line))):
    print(f"{what},{best(f, N):.3f}")
END
