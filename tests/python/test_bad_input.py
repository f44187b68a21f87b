# needs: arranging statistics indexing losses optimisers package
"""Every operator, every argument wrong in every way: the right exception, or a sane result.

The calls are made in a process of its own, so that a crash is a failure and
not the end:    python test_bad_input.py every|fuzz  prints {operator: offences}
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
import sys
from pathlib import Path

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
AXES = ("dim", "dim0", "dim1", "dim2", "dims", "start_dim", "end_dim", "dimension", "source", "destination")


def tensors(good):
    """Tensors of every dtype, of other shapes and layouts, with other numbers."""
    if not isinstance(good, td.Tensor):
        good = tensor((2, 3))
    yield from (good.detach().to(dtype) for dtype in DTYPES)
    yield from (td.zeros(shape, dtype=good.dtype) for shape in SHAPES)
    if good.ndim:
        yield from (good[:0], good.expand(2, *good.shape), good.reshape(-1), good.transpose(0, -1))
    if good.dtype.is_floating_point:
        yield good.detach() * float("nan")
        yield good.detach() / 0
        yield good.detach().requires_grad_()
    else:
        yield from (td.full_like(good, n) for n in (-1, 99, 127))


def odd_values(p, good):
    if p.kind == "tensor[]":
        yield from ([], [good[0], *tensors(good[0])], [tensor(())], good * 70)
        yield from ([good[0], other] for other in tensors(good[0]))
    elif p.takes_tensor:
        yield from tensors(good)
    if p.kind in ODD or p.kind == "operand":
        yield from ODD.get(p.kind, ODD["scalar"])


def shown(value):
    if isinstance(value, td.Tensor):
        return f"{value.dtype}{list(value.shape)}"
    return "[" + ", ".join(map(shown, value)) + "]" if isinstance(value, list) else repr(value)[:60]


class Report:
    """Makes calls, each noted before in a file, and collects what is wrong with them."""

    def __init__(self, log):
        self.log, self.offences, self.calls, self.messages = open(log, "wb", 0), {}, 0, []

    def offend(self, name, call, what):
        self.offences.setdefault(name, []).append(f"{call}: {what}")

    def call(self, name, function, args, named, expected=ALLOWED, words=()):
        text = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in named.items())])
        text = f"{name}({text})"
        self.log.seek(0)
        self.log.write(text.encode(errors="replace").ljust(400)[:400])
        self.calls += 1
        try:
            result = function(*args, **named)
        except expected as error:
            said = str(error)
            self.messages.append(f"{text}\n\t{type(error).__name__}: {said}")
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
        self.sane(name, text, args, named, result)
        return result

    def sane(self, name, text, args, named, result):
        results = result if isinstance(result, tuple) else (result,)
        for x in results:
            if not isinstance(x, td.Tensor):
                continue
            repr(x)
            if not x.requires_grad or x.is_leaf:
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
    if op.mutates and isinstance(x, td.Tensor) and x.dtype.is_floating_point:
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


def run_child(what, log):
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    report = Report(log)
    gc.disable()
    for op in OPERATORS.values():
        if what in ("every", op.name):
            before = td.memory_stats()
            check_operator(report, op)
            gc.collect()
            after = td.memory_stats()
            for kind in ("live_tensors", "live_nodes", "bytes"):
                if after[kind] > before[kind]:
                    report.offend(op.name, kind, f"{before[kind]} before, {after[kind]} after")
    if os.environ.get("MESSAGES"):
        Path(os.environ["MESSAGES"]).write_text("\n".join(report.messages))
    print(json.dumps({"calls": report.calls, "offences": report.offences}))


if __name__ == "__main__":
    run_child(*sys.argv[1:])
