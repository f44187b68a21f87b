# SPDX-License-Identifier: MIT
"""Every operator with a call that works: signatures of the registry, samples of the book."""
import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import treadle as td

SAMPLES = Path(__file__).resolve().parents[2] / "generated/src/samples.inc"
DTYPES = [td.float32, td.float64, td.int64, td.int32, td.uint8, td.bool, td.float16, td.bfloat16, td.int8, td.int16]
PARAMETER = re.compile(r"(tensor|operand|scalar|int|float|bool|string|dtype|device|generator)(\[\])?(\?)?(!)? (\w+)(?:=(.*))?")
SAMPLE = re.compile(r"""SAMPLE\(\s*(\w+),\s*(UNARY|BINARY|CALL)\s*((?:,\s*\.\w+\s*=\s*(?:\{[^}]*\}|(?:"[^"]*"\s*)+)\s*)*)\)""")
TOKEN = re.compile(r"""\w+=(?:\[[^\]]*\]|'[^']*'|"[^"]*"|\S+)|\{[^}]*\}|\[[^\]]*\][a-z]?\d*|\S+""")


def read_parameter(text, named):
    kind, many, optional, mutated, name, default = PARAMETER.fullmatch(text).groups()
    return SimpleNamespace(kind=kind + (many or ""), name=name, mutated=bool(mutated), default=default, named=named,
                           optional=bool(optional), required=default is None, takes_tensor=kind in ("tensor", "operand"))


def read_operators():
    """{name: its function, its parameters, whether it changes its input}"""
    found = {}
    for name, function in vars(td._C).items():
        if type(getattr(function, "__self__", None)).__name__ != "Operator":
            continue
        signature = function.__self__.__doc__.split("\n")[0]
        inside, _, results = signature[len(name) + 1:].rpartition(") -> ")
        parameters, named = [], False
        for part in re.findall(r"\s*([^,'\[]*(?:\[[^\]]*\]|'[^']*'|[^,'\[])*)(?:,|$)", inside):
            if part == "*":
                named = True
            elif part:
                parameters.append(read_parameter(part, named))
        found[name] = SimpleNamespace(name=name, function=function, parameters=parameters, results=results.count("tensor"),
                                      mutates=any(p.mutated for p in parameters))
    return found


def tensor(shape, letter="", low=-2.0, high=2.0):
    """As the samples of chapter "gradcheck" spell it: [2,3], [2,3]t, [4]i3, [2,3]b."""
    if letter.startswith("i"):
        return td.randint(0, max(1, int(letter[1:])), shape)
    if letter == "b":
        return td.rand(shape) < 0.5
    if letter == "p":
        return td.rand(shape)
    if letter == "t":
        return tensor((shape[1], shape[0], *shape[2:]), "", low, high).transpose(0, 1)
    return td.rand(shape, dtype=td.float64) * (high - low) + low


def number(text):
    words = {"true": True, "false": False, "none": None}
    return words[text.lower()] if text.lower() in words else float(text) if re.search("[.ni]|e", text) else int(text)


def operand(text, low, high):
    """A function that makes the operand."""
    if text == "_":
        return lambda: None
    if text[0] == "{":
        parts = [operand(t, low, high) for t in TOKEN.findall(text[1:-1])]
        return lambda: [p() for p in parts]
    if text[0] != "[":
        return lambda: float(text)
    sizes, letter = text[1:].split("]")
    shape = tuple(int(n) for n in sizes.split(",") if n)
    return lambda: tensor(shape, letter, low, high)


def attribute(p, text):
    text = text.strip("'\"")
    if p.kind == "int[]" and text[0] == "[":
        return [int(n) for n in text[1:-1].split(",") if n]
    if p.kind == "dtype":
        return getattr(td, text)
    return text if p.kind in ("string", "device") and text != "None" else number(text)


def call_of(op, text, low=-2.0, high=2.0):
    """{parameter: function that makes its argument} of a sample's text."""
    call, inputs = {}, [p for p in op.parameters if p.takes_tensor]
    by_name = {p.name: p for p in op.parameters}
    for token in TOKEN.findall(text):
        name, equals, value = token.partition("=")
        if equals and name in by_name:
            value = attribute(by_name[name], value)
            call[name] = lambda value=value: value
        else:
            call[inputs.pop(0).name] = operand(token, low, high)
    return call


def read_samples(operators):
    """{operator: its sample calls}, those of add serving add_ too."""
    texts = {"UNARY": ["[2,3]", "[3,2]t", "[]"], "BINARY": ["[2,3] [2,3]", "[2,1,3] [4,1]", "[2,3] 1.5"]}
    calls = {}
    for name, kind, rest in SAMPLE.findall(SAMPLES.read_text()):
        text = "".join(re.findall(r'"([^"]*)"', rest))
        bounds = re.search(r"\.gradient\s*=\s*\{([^}]*)\}", rest)
        low, high = map(float, bounds[1].split(",")) if bounds else (-2, 2)
        for one in (name, name + "_"):
            if one in operators:
                calls.setdefault(one, []).extend(call_of(operators[one], t, low, high)
                                                 for t in texts.get(kind, [text]))
    return calls


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
    except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
        return False


GUESSES = {"int": [1, 0, 3], "int[]": [[2, 3], [1], [0], [0, 1]], "float": [0.5], "scalar": [1, 0.5], "bool": [False],
           "string": ["mean", "none", "nearest"], "dtype": [td.float64], "device": ["cpu"], "generator": [None]}


def guessed_call(op):
    """A call that works, found by trying; None if none does."""
    needed = [p for p in op.parameters if p.required]
    for shape, kinds in product([(2, 3), (3,), (3, 3), (2, 2, 3, 3), ()], product(["", "i2", "b", "p"], repeat=2)):
        for rest in product(*(GUESSES[p.kind] for p in needed if not p.takes_tensor)):
            rest, seen, call = list(rest), 0, {}
            for p in needed:
                if p.takes_tensor:
                    kind, seen = kinds[min(seen, 1)], seen + 1
                    call[p.name] = ((lambda kind=kind: [tensor(shape, kind)]) if p.kind == "tensor[]"
                                    else lambda kind=kind: tensor(shape, kind))
                else:
                    call[p.name] = lambda value=rest.pop(0): value
            if works(op, call):
                return call
    return None


OPERATORS = read_operators()
CALLS = read_samples(OPERATORS)
for _name, _op in OPERATORS.items():
    CALLS[_name] = [c for c in CALLS.get(_name, []) if works(_op, c)] or [c for c in [guessed_call(_op)] if c]
