# needs: arranging statistics indexing losses optimisers package
"""Every operator, every argument wrong in every way: the right exception, or a sane result.

The calls are made in a process of its own, so that a crash is a failure and
not the end:    python test_bad_input.py every|mixed|fuzz|NAME LOG  prints {operator: offences}
"""
import faulthandler
import gc
import inspect
import json
import os
import random
import re
import resource
import subprocess
import types
import warnings
import sys

import pytest
import treadle as td

from registry_cases import CALLS, DTYPES, OPERATORS, arguments, tensor

ALLOWED = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, OverflowError, MemoryError)
OBJECT = object()
HUGE = [2 ** 70, -2 ** 70]
# Of a wrong kind: a TypeError that names the argument and what was got.
WRONG = {
    "tensor": [None, "text", OBJECT, ["a"], {}, 1j, 2.5, [1.0]], "operand": [None, "text", OBJECT, ["a"], {}, 1j],
    "tensor[]": [None, "text", OBJECT, ["a"], [None], 2.5, [1.0]], "int": [None, "text", OBJECT, ["a"], 1.5, 1j, float("nan")],
    "int[]": [None, "text", OBJECT, ["a"], 1.5, [1.5], [None], {}], "float": [None, "text", OBJECT, ["a"], 1j],
    "scalar": [None, "text", OBJECT, ["a"], 1j], "bool": [None, "text", OBJECT, ["a"], 1.5], "string": [None, OBJECT, 3, ["a"]],
    "dtype": ["float32", OBJECT, 3, ["a"]], "device": [OBJECT, 3.5, ["a"]], "generator": ["text", OBJECT, 3, ["a"]],
}
# Of the right kind: an error, or a result.
ODD = {
    "int": [0, -1, 99, -99, 2 ** 62, -2 ** 62, 2 ** 63 - 1, -2 ** 63, True],
    "int[]": [[], [0], [-1], [99], [-99], [0, 0], [1, 0], [0, 1, 2, 3], [1] * 8, [1] * 9, [2 ** 62] * 3, [2 ** 63 - 1], [-2 ** 63]],
    "float": [float("nan"), float("inf"), -float("inf"), 0, -1, 1e308, True, 2 ** 62],
    "bool": [True, False], "string": ["nonsense", "", "\0", "\N{GRINNING FACE}", "%s%n"], "dtype": DTYPES,
    "device": ["nonsense", "cpu:1", "cuda", "cuda:99", "meta"], "generator": [None],
}
ODD["scalar"] = ODD["float"] + ODD["int"]
SHAPES = [(), (0,), (1,), (5,), (2, 0, 3), (7, 11), (2,) * 5, (1,) * 8]
MODULES = {f"treadle.{name}" for name in ("_tensor", "_forms")}
AXES = ("dim", "dim0", "dim1", "dim2", "dims", "start_dim", "end_dim", "dimension", "source", "destination")


def tensors(good, mutated):
    """Tensors of every dtype, of other shapes and layouts, with other numbers."""
    if not isinstance(good, td.Tensor):
        good = tensor((2, 3))
    yield from (good.to(dtype) for dtype in DTYPES)
    shapes = [td.zeros(shape, dtype=good.dtype) for shape in SHAPES]
    if good.ndim:
        shapes += [good[:0], good.expand(2, *good.shape), good.reshape(-1), good.transpose(0, -1)]
    if good.dtype.is_floating_point:
        yield from (good * float("nan"), good / 0)
        yield from (x.detach().requires_grad_(not mutated) for x in shapes)
    else:
        yield from (*shapes, *(td.full_like(good, n) for n in (-1, 99, 127)))


def odd_values(p, good):
    if p.kind == "tensor[]":
        yield from ([], [good[0], *tensors(good[0], False)], [tensor(())], good * 70)
        yield from ([good[0], other] for other in tensors(good[0], False))
    elif p.takes_tensor:
        yield from tensors(good, p.mutated)
    if p.kind in ODD or p.kind == "operand":
        yield from ODD.get(p.kind, ODD["scalar"])


def shown(value):
    if isinstance(value, td.Tensor):
        return f"{value.dtype}{list(value.shape)}"
    return "[" + ", ".join(map(shown, value)) + "]" if isinstance(value, list) else repr(value)[:40]


class Report:
    """Makes calls, each noted before in a file, and collects what is wrong with them."""

    def __init__(self, log):
        self.log, self.offences, self.calls, self.messages, self.good = open(log, "wb", 0), {}, 0, 0, 0

    def offend(self, name, call, what):
        self.offences.setdefault(name, []).append(f"{call}: {what}")

    def note(self, name, args, named):
        text = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in named.items())])
        self.text = f"{name}({text})"
        self.log.seek(0)
        self.log.write(self.text.encode(errors="replace").ljust(400)[:400])
        self.calls += 1
        return self.text

    def call(self, name, function, args, named, expected=ALLOWED, words=()):
        text = self.note(name, args, named)
        try:
            result = function(*args, **named)
        except expected as error:
            said = str(error)
            self.messages += 1
            if "MESSAGES" in os.environ:
                sys.stderr.write(f"{text}\n\t{type(error).__name__}: {said}\n")
            if not re.match(rf"{re.escape(name)}(\(\))?:? ", said):
                self.offend(name, text, f"the message does not begin with the operator: {said}")
            for word in words:
                if word not in said:
                    self.offend(name, text, f"the message does not say {word!r}: {said}")
            return None
        except BaseException as error:
            self.offend(name, text, f"{type(error).__name__} instead of {expected}: {error}")
            return None
        if expected is not ALLOWED:
            self.offend(name, text, "no error")
        try:
            self.sane(name, text, args, named, result)
        except Exception as error:
            self.offend(name, text, f"afterwards {type(error).__name__}: {error}")
        return result

    def sane(self, name, text, args, named, result):
        for x in result if isinstance(result, tuple) else (result,):
            repr(x)
            if not isinstance(x, td.Tensor) or not x.requires_grad or x.is_leaf:
                continue
            x.sum().backward()
            for leaf in [*args, *named.values()]:
                if isinstance(leaf, td.Tensor) and leaf.grad is not None and leaf.grad.shape != leaf.shape:
                    self.offend(name, text, f"a gradient of shape {leaf.grad.shape} for {leaf.shape}")
            break


def wrong_arity(report, op, function, args, named):
    every = [p.name for p in op.parameters]
    for i, p in enumerate(op.parameters[:len(args)] if function is op.function else []):
        if p.required:
            report.call(op.name, function, args[:i], {}, (TypeError,), [p.name] if i + 1 == len(args) else [])
    if not any(p.kind == "int[]" for p in op.parameters):
        report.call(op.name, function, [*args, *[OBJECT] * (len(every) + 1 - len(args))], {}, (TypeError,))
    report.call(op.name, function, args, {**named, "bogus": 1}, (TypeError,), ["bogus"])
    if args:
        report.call(op.name, function, args, {**named, every[0]: args[0]}, (TypeError,), [every[0]])


def replaced(op, call, p, value):
    args, named = arguments(op, {**call, p.name: lambda: value})
    return args, named


def wrong_arguments(report, op, function, call):
    for p in op.parameters:
        good = call[p.name]() if p.name in call else None
        for value in WRONG[p.kind]:
            if value is None and (p.optional or function is not op.function):
                continue
            report.call(op.name, function, *replaced(op, call, p, value), (TypeError,), [p.name])
        if p.kind in ("int", "int[]"):
            for value in HUGE:
                report.call(op.name, function, *replaced(op, call, p, value), (OverflowError,), [p.name])
        for value in odd_values(p, good):
            axis = p.name in AXES and p.kind in ("int", "int[]") and value in (99, -99, [99], [-99]) and op.name != "tile"
            args, named = replaced(op, call, p, value)
            report.call(op.name, function, args, named, (IndexError, RuntimeError) if axis else ALLOWED)


def leaves_in_place(report, op, function, call):
    args, named = arguments(op, call)
    x = (args or [*named.values()])[0]
    if op.mutates and op.name != "detach_" and isinstance(x, td.Tensor) and x.dtype.is_floating_point:
        report.call(op.name, function, [x.detach().requires_grad_(), *args[1:]], named, (RuntimeError,))


def functions_of(op):
    """The operator, and the function in Python that stands for it if it takes the same arguments."""
    yield op.function
    other = getattr(td, op.name, op.function)
    if other is not op.function and {p.name for p in op.parameters} <= set(inspect.signature(other).parameters):
        yield other


def check_operator(report, op):
    for function in functions_of(op):
        for call in CALLS[op.name][:2 if op.name + "_" in OPERATORS else 4]:
            args, named = arguments(op, call)
            wrong_arity(report, op, function, args, named)
            wrong_arguments(report, op, function, call)
            leaves_in_place(report, op, function, call)


def check_mixed_devices(report, op):
    """One tensor on the device and the others not."""
    for call in CALLS[op.name][:1]:
        args, named = arguments(op, call)
        at = [i for i, x in enumerate(args) if isinstance(x, td.Tensor) and x.ndim]
        for i in at if len(at) > 1 and op.name != "copy_" else []:
            args, named = arguments(op, call)
            args[i] = args[i].detach().cuda()
            report.call(op.name, op.function, args, named, (RuntimeError,), ["cpu", "cuda"])


def pool():
    """What a careless program may pass."""
    x = td.rand(2, 3)
    return [None, True, False, 0, 1, 2, 3, -1, 7, 99, 2 ** 33, 2 ** 62, -2 ** 63, 2 ** 70, 0.5, -1.5, float("nan"), float("inf"),
            1e308, "", "mean", "sum", "none", "ij,jk->ik", "reflect", "bilinear", "nonsense", "\udc80", b"bytes", 1j, OBJECT, int,
            [], [0], [1, 0], [2, 3], (3,), (-1,), [0, 0], [1] * 9, [2 ** 62], ["a"], [1.5], {}, {"a": 1}, range(2), slice(1), ...,
            td.float32, td.float64, td.int64, td.bool, td.float16, td.device("cpu"), "cpu", td.Generator(),
            x, x.t(), x[:, :0], x[0], x[0, 0], td.rand(4, 2, 3), td.rand(2, 2, 5, 5), x.double(), x.half(), x > 0.5,
            td.arange(6).reshape(2, 3), td.tensor([1, 0]), td.tensor(1), td.tensor([-1, 99]), x.expand(4, 2, 3),
            td.rand(2, 3, requires_grad=True), td.zeros(0), td.ones(1) * float("nan"), [x, x], [x, td.rand(3)], (x,), [x, None]]


def fuzz(report, calls=60000 if "TREADLE_LONG" in os.environ else 20000):
    """Random arguments for operators, functions and methods: any exception, but no crash, no hang, no SystemError."""
    names = [(f"{where}.{name}", f) for where, holder in (("td", td), ("F", td.nn.functional), ("linalg", td.linalg), ("Tensor", td.Tensor))
             for name, f in sorted(vars(holder).items()) if name[0] != "_" and callable(f)
             and isinstance(f, (types.FunctionType, types.BuiltinFunctionType, type(OPERATORS["add"].function.__self__)))
             and (where != "td" or name in OPERATORS or f.__module__ in MODULES)
             and name != "requires_grad_"]      # a leaf that views x, copied to x, is a cycle that nobody frees
    rng, values = random.Random(20), pool()
    fits = {"tensor": lambda v: isinstance(v, td.Tensor), "tensor[]": lambda v: isinstance(v, (list, tuple)) and v and
            isinstance(v[0], td.Tensor), "int": lambda v: isinstance(v, int), "int[]": lambda v: isinstance(v, (list, tuple, int)),
            "bool": lambda v: isinstance(v, bool), "string": lambda v: isinstance(v, str), "dtype": lambda v: isinstance(v, td.dtype)}
    for i in range(calls):
        name, function = rng.choice(names)
        if i % 500 == 0:
            values = pool()
            fitting = {kind: [v for v in values if fit(v)] for kind, fit in fits.items()}
        op = OPERATORS.get(name.partition(".")[2])
        kinds = [p.kind for p in op.parameters if not p.named] if op else ["tensor"]
        args = [rng.choice(values if rng.random() < 0.2 or k >= len(kinds) else fitting.get(kinds[k], values))
                for k in range(rng.choice([len(kinds), len(kinds), 1, 1, 2, 2, 3, 4, 9]))]
        words = [p.name for p in op.parameters] if op else ["dim", "other", "dtype"]
        named = {rng.choice(words): rng.choice(values) for _ in range(rng.choice([0, 0, 0, 1, 2]))} if words else {}
        report.note(name, args, named)
        try:
            repr(function(*args, **named))
            report.good += 1
        except SystemError as error:
            report.offend(name, report.text, f"SystemError: {error}")
        except Exception:
            pass


def no_leak(report, name, check):
    before = td.memory_stats()
    check()
    gc.collect()
    after = td.memory_stats()
    for kind in ("live_tensors", "live_nodes", "live_objects", "bytes"):
        if after[kind] > before[kind]:
            report.offend(name, kind, f"{before[kind]} before, {after[kind]} after")


def run_child(what, log):
    faulthandler.enable()
    warnings.simplefilter("ignore")
    if what != "mixed":
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    report = Report(log)
    gc.disable()
    gc.freeze()         # what is imported stays, and 900 collections need not look at it
    if what == "fuzz":
        no_leak(report, "fuzz", lambda: fuzz(report))
    else:
        for op in OPERATORS.values():
            if what in ("every", "mixed", op.name):
                no_leak(report, op.name, lambda: (check_mixed_devices if what == "mixed" else check_operator)(report, op))
    print(json.dumps({"calls": report.calls, "messages": report.messages, "good": report.good, "offences": report.offences}))


# What pytest runs ------------------------------------------------------------

def run(what, folder, **environment):
    log = folder / what
    done = subprocess.run([sys.executable, __file__, what, log], capture_output=True, text=True, timeout=900,
                          env={**os.environ, **environment})
    last = log.read_text(errors="replace").rstrip() if log.exists() else "nothing"
    assert done.returncode == 0, f"ended with {done.returncode} in {last}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    return run("every", tmp_path_factory.mktemp("every"))


@pytest.mark.parametrize("name", list(OPERATORS))
def test_wrong_arguments_are_refused_by_name(every, name):
    offences = every["offences"].get(name, [])
    assert not offences, f"{len(offences)} offences:\n" + "\n".join(offences[:20])


def test_enough_was_asked(every):
    assert every["calls"] > 100 * len(OPERATORS)
    assert [name for name in OPERATORS if not CALLS[name]] == [], "no call of these is known: give them a sample"


def test_random_arguments_crash_nothing(tmp_path):
    report = run("fuzz", tmp_path)
    assert report["offences"] == {} and report["good"] > 0.03 * report["calls"]


def test_tensors_on_two_devices_are_refused_by_name(tmp_path):
    done = subprocess.run([sys.executable, "-c", "import treadle as td; td.ones(2).cuda()"], capture_output=True,
                          env={**os.environ, "TREADLE_CUDA": "emulate"})
    if done.returncode:
        pytest.skip("the plug-in is not built")
    report = run("mixed", tmp_path, TREADLE_CUDA="emulate")
    assert report["offences"] == {} and report["calls"] > 100


if __name__ == "__main__":
    run_child(*sys.argv[1:])
