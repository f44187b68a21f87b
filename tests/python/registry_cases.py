# SPDX-License-Identifier: MIT
"""Every operator with calls that work: its signature, and what tests/conformance/cases.py reads of its samples."""
import sys
from pathlib import Path
from types import SimpleNamespace

import treadle as td

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import cases                                                            # noqa: E402

DTYPES = [td.float32, td.float64, td.int64, td.int32, td.uint8, td.bool, td.float16, td.bfloat16, td.int8, td.int16]
REFUSALS = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, OverflowError, MemoryError)


def tensor(shape, holds="r", below=0, low=-2.0, high=2.0):
    """Numbers as the samples spell them: [2,3], [4]i3 (whole ones), [2,3]b (truths), [5]s (sorted)."""
    if holds == "i":
        return td.randint(0, max(1, below), shape)
    if holds == "b":
        return td.rand(shape) < 0.5
    x = td.rand(shape, dtype=td.float64) * (high - low) + low
    return x.sort()[0] if holds == "s" else x


def maker(x, call):
    """A function that makes an argument anew."""
    if isinstance(x, list):
        parts = [maker(y, call) for y in x]
        return lambda: [part() for part in parts]
    if not isinstance(x, cases.Shape):
        return lambda: x
    return lambda: tensor(x.sizes, x.holds, x.below, call.low, call.high)


def make_call(row, call):
    """{parameter: function that makes its argument}"""
    operands, made = iter(call.operands), {}
    for p in row.parameters:
        if p.operand:
            x = next(operands, None)
            if x is not None or p.default is None:
                made[p.name] = maker(x, call)
        elif p.name in call.attributes:
            value = call.attributes[p.name]
            made[p.name] = lambda v=getattr(td, value) if p.kind == "dtype" and value else value: v
    return made


def arguments(op, call):
    """Positional and named arguments, made anew."""
    made = {name: make() for name, make in call.items()}
    args = []
    for p in op.parameters:
        if p.named or p.name not in made:
            break
        args.append(made.pop(p.name))
    return args, made


def works(op, call):
    args, named = arguments(op, call)
    try:
        op.function(*args, **named)
        return True
    except REFUSALS:
        return False


def changed(call, change):
    """The same call with its floats changed."""
    return {name: (lambda make=make: (lambda x: change(x) if isinstance(x, td.Tensor) and x.is_floating_point() else x)(make()))
            for name, make in call.items()}


def variants(op, call):
    """The call; with whole numbers; with probabilities; with an input in place that has the result's shape."""
    yield from (call, changed(call, lambda x: x.long()), changed(call, lambda x: x.abs().clamp(0, 1)))
    args, named = arguments(op, call)
    try:
        shape = getattr(td._C, op.name[:-1])(*args, **named).shape if op.mutates else None
    except (AttributeError, *REFUSALS):
        shape = None
    if shape is not None:
        yield {**call, op.parameters[0].name: lambda: tensor(shape)}


def read_operator(name, row):
    """The operator's function, parameters and calls that work."""
    parameters = [SimpleNamespace(kind=p.kind + "[]" * p.many, name=p.name, mutated=p.mutated, default=p.default, named=p.keyword,
                                  optional=p.optional, required=p.default is None, takes_tensor=p.operand) for p in row.parameters]
    op = SimpleNamespace(name=name, function=getattr(td._C, name), parameters=parameters, results=row.results, mutates=row.mutates)
    found = [[c for c in variants(op, make_call(row, call)) if works(op, c)] for call in row.calls]
    op.calls = [some[0] for some in found if some]
    return op


OPERATORS = {name: read_operator(name, row) for name, row in cases.registry().items()}
CALLS = {name: op.calls for name, op in OPERATORS.items()}
