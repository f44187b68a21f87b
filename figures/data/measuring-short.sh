# Cases of make bench PEERS=1 that fall short in two runs: behind PyTorch (its time over ours below 0.97, ours above floor / 0.95), or further from their floor
# than their kind is meant to be (PyTorch's time over ours, and floor over time, the better of both runs).  Needs make deps-peers (10 minutes).
rows=$(mktemp -d)
trap 'rm -rf "$rows"' EXIT
cat > "$rows/short.py" <<'END'
import csv, re, sys

KINDS = {"products": (0.9, r"gemm_(512|1024|2048)|matmul_1000"), "compiled": (0.75, r".*:jit"), "steps": (0.6, r"step_"),
         "elementwise": (0.9, r"(add|mul|broadcast_add|relu|exp|tanh|sigmoid|erf|sin|atan|cube|bfloat16|gelu)_1000|ew_chain")}

def short(row):
    kind = next((k for k in ("compiled", "products", "steps", "elementwise") if re.match(KINDS[k][1], row["case"])), "others")
    aim = KINDS.get(kind, (0,))[0]
    row.update(kind=kind, aim=aim)
    reached = float(row["floor/time"] or 9)
    return float(row["ratio"]) < 0.97 and reached < 0.95 or reached < aim

runs = [{(r["case"], r["threads"]): r for r in csv.DictReader(open(path))} for path in sys.argv[1:]]
twice = [key for key in runs[0] if all(key in run and short(run[key]) for run in runs)]
if len(runs) == 1:
    print(*dict.fromkeys(re.sub(":jit$", "", case) for case, _ in twice))
else:
    print("case,threads,ratio,reached,aim")
    for key in twice:
        best = [max(float(run[key][column] or 0) for run in runs) for column in ("ratio", "floor/time")]
        print(*key, f"{best[0]:.2f}", f"{best[1]:.2f}" if best[1] else "", runs[0][key]["aim"] or "", sep=",")
END
peers() { "${PEER:-.peers/bin/python}" loom/bench-peers --threads 1,2 --csv "$@" >&2; }
peers "$rows/first"
# shellcheck disable=SC2046
peers "$rows/second" $(python3 "$rows/short.py" "$rows/first")
python3 "$rows/short.py" "$rows/first" "$rows/second"
