# What a call from Python costs: nanoseconds, the least of many batches; the same addition of four numbers from C, and from Python.
cd "$(dirname "$0")/../.."
room=$(mktemp -d); trap 'rm -rf "$room"' EXIT
export TREADLE_THREADS=1 PYTHONPATH=${BUILD:-build}/python
cat > "$room/add.c" <<'END'
#include <stdio.h>
#include <time.h>
#include <treadle/treadle.h>
int main(void)
{
    td_tensor *x = td_ones(TD_DIMS(4), (td_tensor_options)TD_DEFAULTS);
    double best = 1;
    for (int batch = 0; batch < 30; batch++) {
        struct timespec a, b;
        timespec_get(&a, TIME_UTC);
        for (int k = 0; k < 20000; k++)
            td_release(td_add(x, x));
        timespec_get(&b, TIME_UTC);
        const double t = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        best = t < best ? t : best;
    }
    printf("from C,%.0f\n", best / 20000 * 1e9);
    td_release(x);
}
END
${COMPILER:-gcc} -std=c11 -O1 -w -fopenmp -I"${GENERATED:-generated}/include" -o "$room/add" "$room/add.c" "${BUILD:-build}/libtreadle.a" -lz -lm -lpthread -ldl
cat > "$room/lock.c" <<'END'
#include <Python.h>
void pair(long n) { while (n-- > 0) PyEval_RestoreThread(PyEval_SaveThread()); }
END
python=${PYTHON:-/usr/bin/python3}
${COMPILER:-gcc} -O1 -shared -fPIC -I"$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')" -o "$room/lock.so" "$room/lock.c"
echo "what,ns"
"$room/add"
LOCK=$room/lock.so "$python" - <<'PYTHON'
import ctypes, timeit
import treadle as td
from treadle import _C

x, y, p = td.ones(4), td.ones(4), td.ones(4, requires_grad=True)
p.sum().backward()
held = td.ones(4, requires_grad=True)
held.sum().backward()
g = held.grad
lock = ctypes.PyDLL(__import__("os").environ["LOCK"])
add = td.add


def least(statement, **names):
    timer = timeit.Timer(statement, globals={**globals(), **names})
    count = max(1000, timer.autorange()[0] // 20)
    return min(timer.repeat(25, count)) / count * 1e9


empty = least("pass")
rows = {"operator": "x + y", "function": "add(x, y)", "named": "add(input=x, other=y)", "number": "x + 1.5",
        "awake": "held.grad", "flip": "p.grad"}
for what, statement in rows.items():
    print(f"{what},{least(statement) - empty:.0f}")
print(f"lock,{min(timeit.repeat(lambda: lock.pair(10000), repeat=25, number=1)) / 10000 * 1e9:.0f}")
PYTHON
