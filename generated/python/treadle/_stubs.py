# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""Writes the stub of _C: python -m treadle._stubs > _C.pyi"""
import inspect
import re
from . import _C

KINDS = {"tensor": "Tensor", "operand": "Tensor | float",
         "scalar": "float", "int": "int", "float": "float",
         "bool": "bool", "string": "str", "dtype": "_dtype",
         "device": "object", "generator": "Generator"}
PARAMETER = re.compile(r"(\w+)(\[\])?(\?)?!? (\w+)(?:=(.*))?")
# package: functions that write a stub


def parameter(text):
    """'int[]? dim=None' -> 'dim: int | Sequence[int] | None = ...'"""
    kind, many, optional, name, default = \
        PARAMETER.fullmatch(text).groups()
    kind = KINDS[kind]
    if many:
        kind = f"Sequence[{kind}]" if kind == "Tensor" \
            else f"{kind} | Sequence[{kind}]"
    return f"{name}: {kind}{' | None' if optional else ''}" \
        f"{'' if default is None else ' = ...'}"


def declaration(row, method):
    """A row of the registry as a line of the stub."""
    name, given, results = re.fullmatch(
        r"(\w+)\((.*)\) -> (.*)", row).groups()
    words = [w if w == "*" else parameter(w)
             for w in given.split(", ") if w]
    if method:
        words[0] = "self"
    n = results.count("tensor")
    back = "Tensor" if n == 1 else f"tuple[{', '.join(['Tensor'] * n)}]"
    return f"def {name}({', '.join(words)}) -> {back}: ..."


RETURNS = {"__len__": "int", "__bool__": "bool", "__float__": "float",
           "__int__": "int", "__index__": "int", "__hash__": "int",
           "__repr__": "str", "__setitem__": "None", "item": "float",
           "__delitem__": "None", "size": "Any", "numel": "int",
           "dim": "int", "backward": "None", "tolist": "list",
           "tensor": "Tensor", "from_numpy": "Tensor",
           "__iter__": "Iterator[Tensor]"}


def member(name, value, computes=False):
    """What the extension or the package calls `name`, as a line."""
    if not callable(value):
        kind = "dtype" if type(value) is _C.dtype else "Any"
        return f"{name}: {kind}"
    computes |= type(value).__name__ == "wrapper_descriptor"
    result = RETURNS.get(name, "Tensor" if computes else "Any")
    try:
        given = inspect.signature(value)
    except ValueError:
        return f"def {name}(self, *args: Any) -> {result}: ..."
    given = given.replace(
        return_annotation=given.empty, parameters=[
            p if p.default is p.empty else p.replace(default=...)
            for p in given.parameters.values()])
    given = str(given).replace("Ellipsis", "...")
    return f"def {name}{given} -> {result}: ..."


def is_operator(f):
    return type(getattr(f, "__self__", f)).__name__ == "Operator"


def stub():
    """The whole text of _C.pyi."""
    operators = {name: f.__doc__.splitlines()[0]
                 for name, f in vars(_C).items() if is_operator(f)}
    methods, classes = [], ("Tensor", "Size", "dtype")
    for name, value in vars(_C.Tensor).items():
        if name in operators and is_operator(value):
            methods.append(declaration(operators[name], True))
        elif name[0] != "_" or name in RETURNS \
                or type(value).__name__ == "wrapper_descriptor":
            methods.append(member(name, value, name in operators))
    others = [member(name, value) for name, value in vars(_C).items()
              if name[0] != "_" and name not in operators
              and name not in classes]
    return "\n".join([
        "from builtins import bool, float, int, str",
        "from collections.abc import Iterator, Sequence",
        "from typing import Any", "from ._tensor import Generator",
        "", "class dtype:",
        "    itemsize: int", "    is_floating_point: bool",
        "    is_signed: bool", "    is_complex: bool", "_dtype = dtype",
        "class Size(tuple[int, ...]):",
        "    def numel(self) -> int: ...",
        "class Tensor:", *("    " + m for m in methods), "", *others,
        *(declaration(row, False) for row in operators.values())])

if __name__ == "__main__":
    print(stub())
