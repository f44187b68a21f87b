# Microseconds of operators on tensors of 1000 x 1000, one thread (loom/bench-peers): one recorded in a trace, NumPy's, PyTorch's and
# ours, in turn; and ours on a CUDA card, where one is found.  Needs make deps-peers (1 minute).
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
"${PEER:-.peers/bin/python}" loom/bench-peers --threads 1 --pairs "${SITTINGS:-21}" --csv "$rows" add_1000 mul_1000 broadcast_add_1000 \
    relu_1000 transpose_1000 contiguous_transpose_1000 matmul_1000 >&2
TREADLE_CUDA=1 PYTHONPATH=${BUILD:-build}/python "${PYTHON:-python3}" - "$rows" <<'END'
import csv, sys, time
import treadle as td

x, y, row = (td.randn(n, 1000) for n in (1000, 1000, 1))
calls = {"add": lambda: x + y, "mul": lambda: x * y, "matmul": lambda: x @ y, "transpose": lambda: x.t(),
         "contiguous_transpose": lambda: x.t().contiguous(), "relu": lambda: td.relu(x), "broadcast_add": lambda: x + row}
names = {"transpose": "transpose (a view)", "contiguous_transpose": "transpose (copied)"}
card = td.cuda.is_available()
if card:
    x, y, row = (z.to("cuda") for z in (x, y, row))

def us(call, rounds=100):
    call()
    td.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(rounds):
        call()
    td.cuda.synchronize()
    return f"{1e6 * (time.perf_counter() - began) / rounds:.3g}"

print("operator,record,numpy,pytorch,ours,cuda")
took = {r["case"].removesuffix("_1000"): r for r in csv.DictReader(open(sys.argv[1]))}
for name, call in calls.items():
    times = (f"{float(took[name][column]):.3g}" for column in ("record", "numpy", "peer", "us"))
    print(names.get(name, name.replace("_", " ")), *times, us(call) if card else "not measured", sep=",")
END
