# needs: package
"""The package as it is imported, installed and documented."""
import importlib.util
import inspect
import os
import pydoc
import subprocess
import sys
import venv

import pytest
import treadle as td
from conftest import STAGE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


def run(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(STAGE), **env}, timeout=120)


def test_import_from_the_build_tree_is_a_regular_package():
    # a namespace package has no __file__ and none of the names
    done = run("import treadle as td; print(td.__file__); "
               "print(td.Tensor, td.nn.Linear, td.optim.SGD)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("__init__.py")


def test_every_subpackage_is_a_regular_package():
    names = ("nn", "utils", "nn.functional", "nn.init", "utils.data",
             "optim", "autograd", "datasets")
    done = run("".join(f"import treadle.{name} as m; print(m.__file__)\n"
                       for name in names))
    assert done.returncode == 0, done.stderr
    assert "None" not in done.stdout and done.stdout.count("\n") == len(names)


def test_numpy_is_not_imported():
    done = run("import sys, treadle; print('numpy' in sys.modules)")
    assert done.stdout.strip() == "False"


def test_importing_twice_in_one_process():
    done = run("import sys, treadle, gc\n"
               "old = treadle.ones(2)\n"
               "for n in [n for n in sys.modules if n.startswith('treadle')]:"
               " del sys.modules[n]\n"
               "import treadle as new\n"
               "print((new.ones(2) + 1).tolist(), (old + 1).tolist())")
    assert done.stdout.strip() == "[2.0, 2.0] [2.0, 2.0]", done.stderr


def test_exits_cleanly_with_live_tensors_graphs_and_hooks():
    done = run("import treadle as td\n"
               "x = td.ones(3, requires_grad=True)\n"
               "y = (x * x).sum(); y.note = x\n"
               "x.register_hook(lambda g: g * x)\n"
               "y.backward(); g = x.grad; g.mark = y\n"
               "keep = [x, y, g]\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_help_shows_signature_and_documentation():
    text = pydoc.render_doc(td.add, renderer=pydoc.plaintext)
    assert "add(input, other)" in text
    text = pydoc.render_doc(td.sum, renderer=pydoc.plaintext)
    assert "keepdim=False" in text and "dtype=None" in text


def test_help_of_methods():
    text = pydoc.render_doc(td.Tensor.add, renderer=pydoc.plaintext)
    assert "add" in text and "input" in text


def test_every_operator_has_a_signature_and_a_sentence():
    for name, f in vars(td._C).items():
        if getattr(f, "__self__", None).__class__.__name__ == "Operator":
            inspect.signature(f)
            lines = f.__doc__.splitlines()
            assert lines[0].startswith(name + "("), name
            assert len(lines) > 2 and lines[2].strip(), name


def test_the_stub_declares_every_operator_and_parses():
    import ast
    from treadle._stubs import stub
    tree = ast.parse(stub())
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    tensor, = (n for n in tree.body if getattr(n, "name", "") == "Tensor")
    methods = {n.name for n in tensor.body
               if isinstance(n, ast.FunctionDef)}
    assert "relu" in methods and "zeros" not in methods
    missing = {n for n in vars(td.Tensor) if n[0] != "_"} - methods - {
        t.target.id for t in tensor.body if isinstance(t, ast.AnnAssign)}
    assert not missing and {"__add__", "__len__", "backward"} <= methods
    names = {t.target.id for t in tree.body if isinstance(t, ast.AnnAssign)}
    assert {"float32", "bool"} <= names and "tensor" in functions
    assert [a.arg for a in functions["sum"].args.args] == [
        "input", "dim", "keepdim"]
    assert len(functions) > 80


@pytest.mark.skipif(not os.path.isdir(os.path.join(ROOT, "python")),
                    reason="no python/ folder")
def test_pip_installs_offline_in_a_fresh_environment(tmp_path):
    python = str(tmp_path / "v" / "bin" / "python")
    ours = importlib.util.find_spec("pip") is not None      # spares the seconds of ensurepip
    venv.create(tmp_path / "v", with_pip=not ours)
    pip = [sys.executable, "-m", "pip", "--python", python] if ours else [python, "-m", "pip"]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env.update(PIP_NO_INDEX="1", TREADLE_STAGE=str(STAGE))
    done = subprocess.run(
        [*pip, "install", "-q", os.path.join(ROOT, "python")],
        capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [python, "-c", "import treadle as td; print((td.ones(2)+1).tolist(),"
         " td.__file__)"], capture_output=True, text=True, env=env,
        cwd=tmp_path)
    assert done.stdout.startswith("[2.0, 2.0]"), done.stderr
    assert str(tmp_path) in done.stdout
    assert list((tmp_path / "v").rglob("treadle/_C.pyi"))


def test_pip_says_that_nothing_is_staged(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import treadle_build as b; b.build_wheel('.')"],
        capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "TREADLE_STAGE": str(tmp_path),
             "PYTHONPATH": os.path.join(ROOT, "python")})
    assert done.returncode == 1
    assert "run `make python` first" in done.stderr
