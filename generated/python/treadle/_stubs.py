# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""Writes the stub of _C: python -m treadle._stubs > _C.pyi"""
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


def stub():
    """The whole text of _C.pyi."""
    owners = ((f, getattr(f, "__self__", None))
              for f in vars(_C).values())
    rows = [f.__doc__.splitlines()[0] for f, owner in owners
            if type(owner).__name__ == "Operator"]
    first = [re.match(r"\w+\((tensor|operand)\W", r) for r in rows]
    methods = ["    " + declaration(r, True)
               for r, m in zip(rows, first) if m]
    return "\n".join([
        "from builtins import bool, float, int, str",
        "from collections.abc import Sequence", "",
        "class _dtype: ...", "class Generator: ...", "class Tensor:",
        *methods, "", *(declaration(r, False) for r in rows)])

if __name__ == "__main__":
    print(stub())
