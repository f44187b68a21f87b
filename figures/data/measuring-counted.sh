# Rows with much arithmetic for a number: vector instructions in one turn of the loop (objdump of the widest level), those of them that need
# the units of multiply-adds (measuring-beside: products and comparisons, and a division counts two), and how many multiply-adds of whole
# vectors the machine does in the time of a turn (64 Ki numbers, one thread, the best of many).
object=${BUILD:-build}/obj/ops/kernels/elementwise-kernels.v4.o
PYTHONPATH=${BUILD:-build}/python "${PYTHON:-python3}" - "$object" <<'END'
import os, re, subprocess, sys, time
import treadle as td

def loop(name, code):
    """The longest stretch that ends on a jump back to its beginning."""
    body = code.split(f"<{name}>:\n")[1].split("\n\n")[0]
    lines = [re.match(r"\s+([0-9a-f]+):\s+(\S+)\s*(\S*)", line).groups() for line in body.splitlines()]
    places = [int(at, 16) for at, *_ in lines]
    turns = [lines[places.index(int(to, 16)):i + 1] for i, (at, what, to) in enumerate(lines)
             if what[0] == "j" and re.fullmatch("[0-9a-f]+", to) and int(to, 16) in places[:i + 1]]
    return max(turns, key=len)

def ceiling():
    said = subprocess.run([os.environ.get("BUILD", "build") + "/bench", "--ceilings", "1", "4096"], capture_output=True, text=True, check=True)
    return float(said.stdout.split()[0])

code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", sys.argv[1]], capture_output=True, text=True, check=True).stdout
td.set_num_threads(1)
x = td.linspace(-4, 4, 1 << 16)
print("row,instructions,units,turn,reached")
for name in ("exp", "sigmoid", "tanh", "gelu_erf", "erf"):
    turn = loop(f"{name}_loop_f32", code)
    vector = sum(what[0] == "v" and not what.startswith(("vmovup", "vmovap")) for _, what, _ in turn)
    units = sum(2 if what[:4] == "vdiv" else what[:4] in ("vmul", "vcmp", "vfma", "vfnm", "vfms") for _, what, _ in turn)
    call = td.nn.functional.gelu if name == "gelu_erf" else getattr(td, name)
    best, peak = 1.0, 0.0
    for _ in range(300):
        began = time.perf_counter()
        call(x)
        best = min(best, time.perf_counter() - began)
        peak = peak or max(ceiling() for _ in range(7))
    slots = best / (1 << 16) * 16 * peak / 32
    print(name.removesuffix("_erf") if name != "erf" else name, vector, units, f"{slots:.1f}", f"{units / slots:.2f}", sep=",")
END
