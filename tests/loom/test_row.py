"""An operator is one section: 99-made-up.nw is tangled with the chapters, and
its rows are there in C, in Python, on the device, in every compiler's code,
in the checks of gradients and in the reference, without another line.

`make test` builds the library with that chapter in build/row.
"""
import ast
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
ROW = Path(os.environ.get("TREADLE_BUILD", HOME / "build")) / "row"
NUMBERS = [-3, -0.5, -0.25, 0.4, 1.5, 2, 2.25]
MLIR = any(shutil.which(name) for name in ("mlir-opt-15", "mlir-opt"))


def bulge(x):
    return x * math.exp(-x) if -0.5 < x < 2 else x / 4


def slope(x):
    return (1 - x) * math.exp(-x) if -0.5 < x < 2 else 0.25


def run(command, cwd=HOME, **env):
    done = subprocess.run([str(c) for c in command], cwd=cwd, env={**os.environ, **env}, timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def python(code, **env):
    """What a program prints that imports the package with the made-up rows."""
    return run([sys.executable, "-c", f"import treadle as td\nnumbers = {NUMBERS}\nx = td.tensor(numbers)\n" + code],
               PYTHONPATH=str(ROW / "python"), **{"TREADLE_CUDA": "0", **env})


def close(text, numbers, bound=1e-6):
    got = ast.literal_eval(text)
    return len(got) == len(numbers) and all(abs(a - b) <= bound for a, b in zip(got, numbers))


def test_no_file_but_its_chapter_names_it():
    ours = [p for top in ("chapters", "loom", "tests/c", "tests/python", "python", "exercises") for p in (HOME / top).rglob("*")
            if p.is_file() and p.suffix in (".nw", ".c", ".h", ".py", ".tex", "")]
    assert len(ours) > 50
    assert [p for p in ours if "bulge" in p.read_text(encoding="utf-8", errors="replace")] == []


def test_its_values_on_the_cpu_are_the_formulas():
    shown = python("print(td.bulge(x).tolist())\n"
                   "print(td.tensor(numbers, dtype=td.float64).bulge().tolist())\n"
                   "print(td.lean(x, 0.5).tolist())\n"
                   "print(x.reshape(7, 1).lean(x[:2]).sum(1).tolist())\n"
                   "print(td.bulge(td.tensor([1, 2])).tolist())").splitlines()
    assert close(shown[0], [bulge(x) for x in NUMBERS])
    assert close(shown[1], [bulge(x) for x in NUMBERS], 1e-15)
    assert close(shown[2], [x * math.tanh(0.5) for x in NUMBERS])
    assert close(shown[3], [x * (math.tanh(-3) + math.tanh(-0.5)) for x in NUMBERS], 1e-5)
    assert close(shown[4], [bulge(1), bulge(2)])


@pytest.mark.parametrize("code", ["td.bulge('x')", "td.bulge()", "td.bulge(x, x)", "td.lean(x)", "td.lean(x, x[:3])"])
def test_a_wrong_call_names_it(code):
    shown = python(f"try: {code}\nexcept (TypeError, RuntimeError) as error: print(error)")
    assert shown.startswith(code[3:].partition("(")[0]), shown


def test_the_emulated_device_computes_it_and_its_gradient():
    shown = python("y = x.to('cuda').requires_grad_()\n"
                   "z = y.bulge()\n"
                   "print(z.tolist())\n"
                   "z.lean(y).sum().backward()\n"
                   "print(z.device, y.grad.tolist())\n", TREADLE_CUDA="emulate").splitlines()
    assert close(shown[0], [bulge(x) for x in NUMBERS])
    device, _, gradient = shown[1].partition(" ")
    assert device.startswith("cuda")
    assert close(gradient, [slope(x) * math.tanh(x) + bulge(x) * (1 - math.tanh(x) ** 2) for x in NUMBERS])


def test_a_trace_records_it_and_its_printed_form_is_read_again():
    shown = python("with td.jit.record() as tape:\n"
                   "    y = td.lean(x.bulge(), 2)\n"
                   "print(*tape.instructions, sep='\\n')\n").splitlines()
    assert [line.split(" = ")[1].split("(")[0] for line in shown] == ["bulge", "lean"]


@pytest.mark.parametrize("backend", ["interpreter", "c", "mlir"])
def test_a_back_end_compiles_value_and_gradient(backend, tmp_path):
    if backend == "mlir" and not MLIR:
        pytest.skip("the tools of MLIR are not installed")
    shown = python(f"@td.jit(backend='{backend}')\n"
                   "def step(x):\n"
                   "    x = x.detach().requires_grad_()\n"
                   "    y = x.bulge()\n"
                   "    return y, td.autograd.grad(y.lean(x).sum(), x)[0]\n"
                   "for _ in range(3):\n"
                   "    y, g = step(x)\n"
                   "print(y.tolist())\nprint(g.tolist())\nprint(td.jit.dump(step))", TREADLE_CACHE=str(tmp_path))
    value, gradient, *text = shown.splitlines()
    assert close(value, [bulge(x) for x in NUMBERS])
    assert close(gradient, [slope(x) * math.tanh(x) + bulge(x) * (1 - math.tanh(x) ** 2) for x in NUMBERS])
    assert any("= bulge(%0)" in line for line in text)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """made_up.c, compiled against the header and the library with the rows."""
    target = tmp_path_factory.mktemp("program") / "made_up"
    run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROW / "generated/include",
         "-o", target, HERE / "made_up.c", "-L", ROW, "-ltreadle", f"-Wl,-rpath,{ROW.resolve()}"])
    return target


@pytest.mark.parametrize("backend", ["c", "mlir"])
def test_c_calls_it_and_its_formula_is_in_the_fused_loop(program, backend, tmp_path):
    if backend == "mlir" and not MLIR:
        pytest.skip("the tools of MLIR are not installed")
    eager, compiled, *plan = run([program, backend, *NUMBERS], TREADLE_CACHE=str(tmp_path)).splitlines()
    expected = [bulge(x) * math.tanh(x * math.tanh(0.5)) for x in NUMBERS]
    for line in (eager, compiled):
        assert close("[" + ",".join(line.split()) + "]", expected)
    assert re.search(r"\bloop +\[7\] %3 = lean\(bulge\(%0\), lean\(%0, 0\.5\)\)", plan[0]), plan


def test_its_samples_pass_both_checks_of_gradients():
    run([ROW / "tests/chapters/test_gradcheck"])
    run([ROW / "tests/chapters/test_rules"])
    samples = (ROW / "generated/tests/samples.inc").read_text()
    assert "SAMPLE(bulge" in samples and "SAMPLE(lean" in samples
    python("a = td.rand(3, 2, dtype=td.float64).requires_grad_()\n"
           "b = td.rand(2, dtype=td.float64).requires_grad_()\n"
           "td.autograd.gradcheck(td.bulge, a)\n"
           "td.autograd.gradcheck(td.lean, (a, b))\n")


def test_python_documents_it():
    shown = python("import inspect, pydoc\n"
                   "print(inspect.signature(td.bulge), inspect.signature(td.lean))\n"
                   "print(pydoc.render_doc(td.bulge, renderer=pydoc.plaintext))\n"
                   "print(pydoc.render_doc(td.Tensor.bulge, renderer=pydoc.plaintext))\n"
                   "from treadle._stubs import stub\nprint(stub())")
    assert "(input) (input, other)" in shown
    assert shown.count("for no use at all") == 2
    assert "\ndef bulge(input: Tensor) -> Tensor: ..." in shown
    assert "\n    def lean(self, other: Tensor | float) -> Tensor: ..." in shown


def test_the_book_lists_it_and_every_other(tmp_path):
    said = run([sys.executable, "loom/weave", "catalogue", tmp_path, *sorted(Path("chapters").rglob("*.nw")), HERE / "99-made-up.nw",
                *sorted(Path("exercises").glob("*/answer.nw"))], GENERATED=str(ROW / "generated"))
    assert "has no sentence" not in said
    text = (tmp_path / "operator-reference.tex").read_text().replace(r"\_", "_")
    mine, = (row for row in text.splitlines() if "{bulge(" in row)
    assert "tensor input" in mine and "for no use at all." in mine and "chunk:99-made-up:" in mine
    names = python("print(*(name for name, f in vars(td._C).items()"
                   " if type(getattr(f, '__self__', None)).__name__ == 'Operator'))").split()
    assert len(names) > 100
    assert [name for name in names if rf"\code{{{name}(" not in text and rf"\code{{{name}}}" not in text] == []
