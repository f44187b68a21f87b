# a file of 64 megabytes: opened, read whole as copies, a row of it, written and synced; one core
TREADLE_THREADS=1 PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import os, tempfile, time
import treadle as td

def best(f, times=5):
    least = 1e9
    for _ in range(times):
        start = time.perf_counter()
        f()
        least = min(least, time.perf_counter() - start)
    return 1e3 * least

with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, "a")
    state = {f"layer.{i}.weight": td.randn(256, 1024) for i in range(64)}
    write = best(lambda: td.save_file(state, name), 3)
    print("what,milliseconds")
    print(f"write,{write:.1f}")
    print(f"open,{best(lambda: td.safe_open(name)):.3f}")
    print(f"map,{best(lambda: td.load_file(name)):.3f}")
    print(f"copy,{best(lambda: td.load_file(name, backend='pread')):.2f}")
    print(f"row,{best(lambda: td.safe_open(name).get_slice('layer.63.weight')[200].sum()):.3f}")
END
