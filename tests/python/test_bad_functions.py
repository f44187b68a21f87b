# needs: porting arrow
"""Every function and method of the package, called with what it cannot use.

Whatever is given, the answer is a result or an exception that says something:
never a crash, never SystemError.  The calls run in a process of their own
(this file as a program); where it dies, the next one goes on behind the call
that killed it.
"""
import importlib
import json
import math
import os
import pkgutil
import subprocess
import sys
import warnings

import pytest

SPECIAL = ("__getitem__", "__setitem__", "__delitem__", "__setstate__", "__reduce_ex__", "__dlpack__", "__array__",
           "__contains__", "__len__", "__iter__", "__call__", "__format__", "__deepcopy__", "__matmul__", "__pow__")
WAITING = {"_trace_begin",          # what follows would be recorded and not run
           "_give_methods"}         # what follows would print tensors as int prints numbers
WITHOUT_WORDS = ("StopIteration", "StopAsyncIteration", "NotImplementedError", "AssertionError", "KeyError", "MemoryError")


def everything():
    """{name: callable} of all modules of the package, each object once."""
    import treadle as td
    found, seen = {}, set()

    def note(name, f):
        if callable(f) and id(f) not in seen and name.split(".")[-1] not in WAITING:
            seen.add(id(f))
            found[name] = f

    for info in [None, *pkgutil.walk_packages(td.__path__, "treadle.")]:
        name = info.name if info else "treadle"
        if name.endswith(("__main__", ".libtreadle")):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:         # a peer that is not installed
            continue
        for n, f in sorted(vars(module).items()):
            home = getattr(f, "__module__", None) or "treadle"
            if n.startswith("__") or not isinstance(home, str) or home.split(".")[0] != "treadle":
                continue
            if id(f) in seen:
                continue
            note(f"{name}.{n}", f)
            for m in dir(f) if isinstance(f, type) else ():
                if m in SPECIAL or not m.startswith("__"):
                    method = getattr(f, m, None)
                    if method is not getattr(object, m, None):
                        note(f"{name}.{n}.{m}", method)
            for m, method in methods_of(f) if isinstance(f, type) and "compat.types" not in name else ():
                note(f"{name}.{n}().{m}", method)
    return found


def methods_of(kind):
    """The bound methods of an object of that class, if one can be made."""
    import treadle as td
    x = td.ones(4, 6)
    recipes = [(), (2,), (6, 2), (6, 2, 1), ([td.nn.Parameter(x)],), (td.optim.SGD([td.nn.Parameter(x)], 0.1),),
               (td.optim.SGD([td.nn.Parameter(x)], 0.1), 2), (x,), (x, x), (td.nn.Linear(6, 2),), ([1, 2, 3],),
               ([1, 2, 3], 2, False), (0.5, 0.5), (lambda a: a,)]
    for args in recipes:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = kind(*args)
        except Exception:
            continue
        for m in dir(made):
            if isinstance(made, list) and hasattr(list, m):
                continue            # Python's own
            if m in SPECIAL or not m.startswith("_"):
                try:
                    method = getattr(made, m, None)
                except Exception:
                    continue
                if callable(method) and not isinstance(method, type) and m != "__array__":    # NumPy's words, or none
                    yield m, method
        return


def bad(td):
    """Arguments of the wrong number and of wrong kinds, made afresh."""
    x, y = td.ones(2, 3), td.tensor([1, 2])
    one = [None, [], "x", object(), ["a", "b"], x, y, -1, 1 << 70, math.nan, b"x", {}, td.float32, (x, None), int]
    two = [(None, None), ([], []), (x, None), (None, x), (x, []), (x, "x"), (x, object()), (x, -1), (x, 1 << 70), (x, x), (y, y),
           (x, {}), (x, (x, None))]
    many = [(x, 0, []), (x, 0, y), (x, 0, y, x), (x, -9, None), (x, [], []), (x, 0, 0, 0)]
    same = [(a,) * n for n in (3, 4, 5, 6) for a in (None, [], "x", object(), x, 0)]
    return [(), *((a,) for a in one), *two, *many, *same]


def say(error):
    try:
        return str(error)
    except Exception as another:    # the words hold what cannot be printed
        return f"{type(another).__name__} while printing"


def call_all(part, of, start, log):
    """Calls what is left of a part; prints what is wrong, a line of JSON each."""
    import signal
    import treadle as td
    warnings.simplefilter("ignore")
    complain = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    names = sorted(everything().items())[part::of]
    for i, (name, f) in enumerate(names[start:], start):
        for k, args in enumerate(bad(td)):
            log.seek(0)
            log.write(json.dumps([i, k, name]).ljust(200))
            log.flush()
            signal.alarm(30)
            wrong = None
            try:
                repr(f(*args))
            except SystemError as error:
                wrong = "SystemError: " + say(error)
            except BaseException as error:
                kind = type(error)
                if not say(error) and kind.__module__ == "builtins" and kind.__name__ not in WITHOUT_WORDS:
                    wrong = f"{kind.__name__} without a word"
            signal.alarm(0)
            td.set_grad_enabled(True)
            td.set_printoptions(profile="default")
            if wrong:
                print(json.dumps([name, [type(a).__name__ for a in args], wrong]), file=complain, flush=True)
    print(json.dumps(["all", len(names), "done"]), file=complain, flush=True)


@pytest.mark.parametrize("part", range(4))
def test_no_call_is_a_crash(part, tmp_path):
    start, wrong, done = 0, [], None
    log = tmp_path / "log"
    while done is None:
        work = subprocess.run([sys.executable, "-X", "faulthandler", __file__, str(part), "4", str(start), str(log)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              text=True, cwd=tmp_path, timeout=500)
        for line in work.stdout.splitlines():
            name, args, what = json.loads(line)
            if name == "all":
                done = args
            else:
                wrong.append(f"{name}({', '.join(args)}): {what}")
        if done is None:
            assert log.exists() and log.read_text(), work.stderr[-2000:]
            i, k, name = json.loads(log.read_text())
            said = [s for s in work.stderr.splitlines() if not s.startswith("Extension modules")]
            wrong.append(f"{name}, arguments {k}: the process died ({work.returncode}): {' / '.join(said[:4])}")
            start = i + 1
            assert len(wrong) < 200, "\n".join(wrong)
    assert done > 400, f"found only {done} functions"
    assert not wrong, f"{len(wrong)} bad answers:\n" + "\n".join(wrong)


# What the package itself never passes, behind arguments that are right.
PRIVATE = ["_safetensors_save(None, (1,), ('a',))", "_safetensors_save(None, (x,), (1,))",
           "_safetensors_save(None, (x,), ('a', 'x', 1))", "_safetensors_save(None, x, 'x')",
           "_to_arrow([x], (1,))", "_to_arrow([x, x], ('a',))", "_to_arrow([x, x], ())",
           "_csv_column(t, 0, -5, str, None)", "_csv_column(t, 0, 50, str, None)", "_csv_column(t, -3, 0, None, None)",
           "_csv_column(t, 9, 0, str, None)", "_csv_column(t, 1, 1, None, 'x')",
           "_pin_memory([])", "_storage([])", "_over_storage(x, td.float32, [1] * 9, [1] * 9, 0)",
           "_over_storage(x, td.float32, [2, 'x'], [1, 1], 0)", "_over_storage(x, td.float32, [9], [1], 0)"]


@pytest.mark.parametrize("call", PRIVATE)
def test_private_doors_look_at_what_they_get(call, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    program = f"""
import treadle as td
from treadle import _C
x, t = td.ones(2), _C._csv_read("t.csv", b",")[0]
try:
    _C.{call}
except (TypeError, ValueError, IndexError) as error:
    print("said", error)
"""
    work = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert work.stdout.startswith("said ") and len(work.stdout) > 12, work


if __name__ == "__main__":
    with open(sys.argv[4], "w") as at:
        call_all(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), at)
