# needs: layers
# SPDX-License-Identifier: MIT
"""Cases for every operator: dtypes, layouts and corners of its samples.

An operator's calls come from the registry's samples, which the checks of
gradients read too; from its signature, if that has only the usual operands;
or else from CALLS below.  An operator that has none is an error: a new row
joins the matrix with its sample.  `matrix(op)` yields the cases; `Case.run`
makes one of them in treadle or in PyTorch, from the same numbers.
"""
import itertools
import os
import random
import re
import subprocess
import zlib
from pathlib import Path

import numpy as np

HOME = Path(__file__).resolve().parents[2]
DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")
LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")

# Calls of operators that have no sample, or more calls of those that have
# one, in the notation of the samples.
CALLS = {
    "empty": ["size=[2,3]", "size=[]", "size=[0,2]"],
    "full": ["size=[2,3] fill_value=2.5", "size=[2] fill_value=3", "size=[] fill_value=true", "size=[0] fill_value=1"],
    "arange": ["start=0 end=5", "start=0.5 end=3.0 step=0.5", "start=5 end=0 step=-2", "start=1 end=1", "start=0 end=1 step=-1",
               "start=0 end=1 step=0", "start=0.5 end=7 step=1.5"],
    "linspace": ["start=0 end=1 steps=5", "start=3 end=-2 steps=7", "start=1 end=2 steps=1", "start=1 end=2 steps=0"],
    "eye": ["n=3", "n=2 m=4", "n=0", "n=3 m=1"],
    "view_dtype": ["[2,3] dtype=float32", "[2,3] dtype=float64", "[4] dtype=int32", "[2,4] dtype=uint8", "[] dtype=int64"],
    "full_like": ["[2,3] fill_value=2", "[2,3] fill_value=1.5"],
    "copy_": ["[2,3] [2,3]", "[2,3] [3]", "[2,3] []", "[3] [2,3]"],
    "fill_": ["[2,3] value=2", "[2,3] value=1.5", "[2,3] value=true"],
    "argsort": ["[2,5]", "[2,5] dim=0 descending=true"],
    "argmax": ["[2,3]", "[2,3,2] dim=1 keepdim=true"], "argmin": ["[2,3]", "[2,3,2] dim=1 keepdim=true"],
    "searchsorted": ["[5]s [3]", "[2,5]s [2,3] right=true", "[5]s 0.5", "[5]s [2,2] side=right out_int32=true"],
    "bucketize": ["[2,3] [5]s", "[3] [5]s right=true", "0.5 [5]s"],
    "one_hot": ["[2,3]i4", "[3]i4 num_classes=6", "[0]i4 num_classes=3", "[]i3", "[3]i4 num_classes=2"],
    "bincount": ["[7]i5", "[7]i5 [7] minlength=8", "[0]i5"],
    "histc": ["[7] bins=5 min=-1 max=1", "[2,3] bins=4", "[1] bins=3"],
    "multinomial": ["[3,4] num_samples=2", "[4] num_samples=6 replacement=true"],
    "unique": ["[7]", "[2,5] return_inverse=true return_counts=true", "[4,2] dim=0 return_inverse=true"],
    "unique_consecutive": ["[7]", "[2,5] return_inverse=true return_counts=true", "[4,2] dim=0 return_inverse=true"],
    "isclose": ["[2,3] [2,3]", "[2,3] [3] rtol=0.5", "[2,3] [2,3] equal_nan=true"],
    "uniform_": ["[2,3]", "[2,3] a=1.0 b=2.0"], "normal_": ["[2,3]"], "bernoulli_": ["[2,3]", "[2,3] p=0.25"],
    "randint": ["low=2 high=7 size=[2,3]"], "randperm": ["n=5", "n=0"],
    "standardise_backward": ["[2,3,4] [2,3,4] [3] eps=0.01"], "affine_backward": ["[2,3,4] [2,3,4] [4]", "[2,3,16] [2,3,16] [3,1]"],
    "log_softmax_backward": ["[2,3] [2,3] dim=1", "[2,3] [2,3] dim=0", "[2,3] [3,2] dim=1", "[] [] dim=-1"],
    "gated_backward_": ["[2,1,10]i9 [1,2] [1,2] [8,2] [1,2] [1,2] [2,1,2] [2,1,2] reverse=true"],
    "attend_backward": ["[2,3,2] [2,4,2] [2,4,2] [2,3,2] dropout_p=0 is_causal=false"],
    "check_labels": ["[4]i3 classes=3 ignore_index=-100"],
    "sgd_step_": ["[2,3] [2,3] _ lr=0.1", "[2,3] [2,3] [2,3] lr=0.1 momentum=0.9"],
    "adam_step_": ["[2,3] [2,3] [] [2,3] [2,3] _ lr=0.1", "[4] [4] [] [4] [4] [4] lr=0.1 weight_decay=0.1 decoupled=true"],
    "rmsprop_step_": ["[2,3] [2,3] [] [2,3] _ _ lr=0.1", "[4] [4] [] [4] [4] [4] lr=0.1 momentum=0.9"],
    "adagrad_step_": ["[2,3] [2,3] [] [2,3] lr=0.1 lr_decay=0.1"],
    "sum": ["[2,3,4]", "[2,3,4] dim=[1]", "[17,29]", "[2,3,4] dim=[0,2] keepdim=true"],
    "mean": ["[2,3,4] dim=[1]", "[17,29]"], "clamp": ["[3,4] min=2 max=-1", "[3,4] min=0"],
    "pow": ["[2,3] 2", "[2,3] 0.5", "[2,3] -1", "2 [2,3]", "[2,3] 0"],
    "matmul": ["[5,7] [7,3]", "[2,3] [4,5]", "[] [3]", "[17,33] [33,19]"],
    "reshape": ["[2,3] shape=[4,2]", "[6] shape=[-1,-1]"], "transpose": ["[2,3] dim0=0 dim1=2"],
    "cat": ["{[0] [2,3]}", "{[2,3] [3,3] [1,3]} dim=-2", "{[2,3] [2,4]}"], "squeeze": ["[1,1]", "[2,1,3] dim=[0]"],
    "expand": ["[3] size=[2,-1]", "[2,3] size=[2,4]"], "topk": ["[2,5] k=6", "[5] k=0", "[5] k=5"],
    "index_select": ["[3,4] [2]i9 dim=0"], "gather": ["[3,4] [2,2]i9 dim=0"], "where": ["[2,3]b 1.5 2", "[2,3]b [2,3] [2,3]"],
    "var": ["[1]", "[5,3] dim=[0] unbiased=false"], "prelu": ["[2,3,2] [2]"], "nan_to_num": ["[2,3] nan=1.0 posinf=2.0 neginf=-2.0"],
    "logsumexp": ["[2,3] dim=[0]"], "cumsum": ["[31] dim=0"], "softmax": ["[3,37] dim=1"], "log_softmax": ["[3,37] dim=1"],
    "embedding": ["[2,4]i3 [3,2] padding_idx=1"], "pad": ["[2,3] pad=[1,1,-1,0]", "[1,2,3] pad=[3,1] mode=reflect"],
}
UNARY = ["[2,3]", "[3,37]", "[]"]
BINARY = ["[2,3] [2,3]", "[2,1,3] [4,1]", "[3,37] [37]", "[] [2]", "[2,3] [4]", "[2,3] 1.5", "[2,3] 2", "[2,3] true", "1.5 [2,3]",
          "3 [2,3]", "[] 1.5"]
INPLACE = ["[2,3] [2,3]", "[2,3] [3]", "[3] [2,3]", "[2,3] []", "[2,3] 1.5", "[2,3] 2"]
CALLS |= {"count_nonzero": UNARY, "signbit": UNARY, "lcm": BINARY}      # composites with nothing to derive
# Operators of random results: only facts are compared.
FACTS_ONLY = {"empty", "empty_like", "rand", "randn", "rand_like", "randn_like", "randint", "randperm", "uniform_", "normal_",
              "bernoulli_", "bernoulli", "multinomial", "randint_like", "dropout", "dropout_", "alpha_dropout", "alpha_dropout_",
              "feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"}


# --- signatures and samples ---------------------------------------------------

PARAMETER = re.compile(r"(tensor|operand|\w+)(\[\])?(\?)?(!)? (\w+)(?:=(.*))?")


class Parameter:
    def __init__(self, text, keyword):
        self.kind, many, optional, change, self.name, self.default = PARAMETER.fullmatch(text).groups()
        self.many, self.optional, self.mutated, self.keyword = bool(many), bool(optional), bool(change), keyword
        self.operand = self.kind in ("tensor", "operand")


class Operator:
    """A row of the registry: name, parameters, calls."""

    def __init__(self, row, samples):
        self.row = row
        self.name, given, results = re.fullmatch(r"(\w+)\((.*)\) -> (.*)", row).groups()
        words = [w for w in re.split(r", (?![^\[]*\])", given) if w]
        star = words.index("*") if "*" in words else len(words)
        self.parameters = [Parameter(w, i > star) for i, w in enumerate(words) if w != "*"]
        self.results = results.count("tensor")
        self.mutates = any(p.mutated for p in self.parameters)
        self.calls = [Call(self, n, text, low, high) for n, (text, low, high) in enumerate(self.texts(samples))]
        self.elementwise = bool(samples.get(self.name)) and samples[self.name][0][0] != "CALL" \
            or self.usual() is UNARY and not self.mutates

    def usual(self):
        """The calls of an operator whose signature is like many others'."""
        kinds = [p.kind for p in self.parameters if p.default is None]
        if kinds in (["tensor", "operand"], ["operand", "operand"]) and not any(p.many for p in self.parameters):
            return INPLACE if self.mutates else BINARY
        return {("tensor",): UNARY, ("int[]",): ["size=[2,3]", "size=[]", "size=[0,2]"]}.get(
            tuple(p.kind + "[]" * p.many for p in self.parameters if p.default is None))

    def texts(self, samples):
        plain = self.name[:-1] if self.mutates else self.name
        for kind, text, low, high in samples.get(self.name) or samples.get(plain, []):
            for call in {"UNARY": UNARY, "BINARY": INPLACE if self.mutates else BINARY}.get(kind, [text]):
                yield call, low, high
        known = samples.get(self.name) or samples.get(plain)
        for call in CALLS.get(self.name) or CALLS.get(plain) or ([] if known else self.usual() or [self.plainest()]):
            yield call, -2, 2

    def plainest(self):
        """A call that gives every argument that has no default, or is changed."""
        simple = {"int": "1", "float": "0.1", "scalar": "0.5", "bool": "false", "int[]": "[1]", "dtype": "float64", "device": "cpu"}
        words = [("{[2,3] [2,3]}" if p.many else "[2,3]") if p.default is None or p.mutated else "_" for p in self.parameters if p.operand]
        return " ".join(words + [f"{p.name}={simple.get(p.kind + '[]' * p.many, 'none')}" for p in self.parameters
                                 if not p.operand and p.default is None])


class Shape:
    """An operand to be made: sizes, and what it holds (r, i, b or s)."""

    def __init__(self, sizes, holds="r", below=0):
        self.sizes, self.holds, self.below = tuple(sizes), holds, below

    def resized(self, change):
        return Shape(change(self.sizes), self.holds, self.below)


class Call:
    """One call of an operator: its operands and attributes."""

    def __init__(self, op, index, text, low, high):
        self.op, self.index, self.text, self.low, self.high = op, index, text, low, high
        self.operands, self.attributes = [], {}
        words = re.findall(r"\{[^}]*\}|\w+=(?:\[[^\]]*\]|\"[^\"]*\"|'[^']*'|\S+)|\[[\d,]*\]\w*|[-\w.]+", text)
        by_name = {p.name: p for p in op.parameters}
        for word in words:
            if re.match(r"\w+=", word):
                name, _, value = word.partition("=")
                self.attributes[name] = read_value(by_name[name], value)
            elif word[0] == "{":
                self.operands.append([read_shape(w) for w in word[1:-1].split()])
            else:
                self.operands.append(read_shape(word) if word[0] == "[" else read_number(word))

    def shapes(self):
        for x in self.operands:
            yield from x if isinstance(x, list) else [x] if isinstance(x, Shape) else []

    def changed(self, change=None, **attributes):
        """The call with other sizes of its operands, other attributes."""
        new = object.__new__(Call)
        new.__dict__.update(self.__dict__)
        new.attributes = {**self.attributes, **attributes}
        if change:
            new.operands = [[y.resized(change) for y in x] if isinstance(x, list) else
                            x.resized(change) if isinstance(x, Shape) else x for x in self.operands]
        return new


def read_number(word):
    words = {"_": None, "None": None, "true": True, "false": False, "True": True, "False": False}
    return words[word] if word in words else float(word) if re.search(r"[.ein]", word) else int(word)


def read_shape(word):
    sizes, letter, below = re.fullmatch(r"\[([\d,]*)\]([a-z]?)(\d*)", word).groups()
    return Shape([int(n) for n in sizes.split(",") if n], letter if letter in "ibs" and letter else "r", int(below or 0))


def read_value(parameter, text):
    if text == "None":
        return None
    if text[0] == "[":
        return [read_number(w) for w in text[1:-1].split(",") if w]
    if parameter.kind in ("string", "dtype", "device"):
        return text.strip("\"'")
    value = read_number(text)
    return float(value) if parameter.kind == "float" and value is not None else value


def read_samples():
    """{name: [(kind, call, low, high)]} of the registry's samples."""
    built = Path(os.environ.get("TREADLE_BUILD", HOME / "build")) / "generated/tests/samples.inc"
    text = subprocess.run([*os.environ.get("CC", "cc").split(), "-E", "-P", "-x", "c", built if built.exists() else
                           HOME / "generated/tests/samples.inc"], check=True, capture_output=True, text=True).stdout
    samples = {}
    for name, kind, rest in re.findall(r"SAMPLE\((\w+),\s*(\w+)((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*)\)", text):
        call = "".join(re.findall(r'"([^"]*)"', rest))
        low, high = re.search(r"\.gradient = \{\s*(\S+),\s*(\S+)\s*\}", rest + ".gradient = { -2, 2 }").groups()
        samples.setdefault(name, []).append((kind, call, float(low), float(high)))
    return samples


def registry():
    """{name: Operator} of the library that is imported."""
    import treadle
    samples = read_samples()
    rows = [f.__doc__.splitlines()[0] for f in vars(treadle._C).values()
            if type(getattr(f, "__self__", None)).__name__ == "Operator"]
    return {op.name: op for op in (Operator(row, samples) for row in rows)}


# --- numbers and layouts --------------------------------------------------------

SPECIAL = {"f": [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, 20.5, 100.0, -1e4],
           "i": [0, 1, -1, 2, 7, -5, 127, 40], "u": [0, 1, 255, 2, 128, 7], "b": [0, 1]}


def numbers(shape, dtype, corner, low, high, draw):
    """An array of the shape; a corner says of what its numbers are."""
    n = int(np.prod(shape.sizes, dtype=int))
    kind = "fiub"[["float32", "float64", "int64", "int32", "uint8", "bool"].index(dtype) // 2] if dtype != "bool" else "b"
    kind = "u" if dtype == "uint8" else kind
    if shape.holds == "i":
        return np.array([int(draw.random() * shape.below) for _ in range(n)], "int64").reshape(shape.sizes)
    if shape.holds == "b":
        return np.array([draw.random() < 0.5 for _ in range(n)], "bool").reshape(shape.sizes)
    if corner == "special":
        some = [draw.choice(SPECIAL[kind]) for _ in range(n)]
    elif corner == "sweep":
        some = [draw.choice((1, low < 0 and -1 or 1)) * 2 ** draw.uniform(-12, 6) for _ in range(n)]
    elif kind == "f":
        some = [draw.uniform(low, high) for _ in range(n)]
    elif kind == "b":
        some = [draw.random() < 0.6 for _ in range(n)]
    else:
        some = [draw.randint(0 if kind == "u" else -4 if low < 0 else 1, 6) for _ in range(n)]
    x = np.array(some, dtype).reshape(shape.sizes)
    return np.sort(x, -1) if shape.holds == "s" and x.ndim else x


def spread(x, layout):
    """The array that a tensor of the layout is a view of."""
    if layout == "transposed" and x.ndim:
        return np.ascontiguousarray(x.T)
    if layout == "sliced":
        base = np.full([2 * x.shape[-1] + 3 if x.ndim else 2] if x.ndim < 2 else
                       [x.shape[0] + 1, *x.shape[1:-1], 2 * x.shape[-1] + 3], 77, x.dtype)
        np.copyto(sliced(base, x.shape), x)
        return base
    if layout == "expanded":
        d = wide(x.shape)
        return np.ascontiguousarray(x[tuple(slice(0, 1) if i == d else slice(None) for i in range(x.ndim))])
    return x


def sliced(base, sizes):
    if not sizes:
        return base[1:2].reshape(()) if isinstance(base, np.ndarray) else base[1]
    last = slice(1, 2 * sizes[-1] + 1, 2)
    return base[last] if len(sizes) < 2 else base[1:][..., last]


def wide(sizes):
    return next((i for i, n in enumerate(sizes) if n > 1), None)


def laid_out(module, x, layout):
    """A tensor of the module with the numbers of x, in the layout."""
    base = module.from_numpy(spread(x, layout).copy())
    if layout == "transposed":
        return base.permute(*reversed(range(x.ndim))) if x.ndim else base
    if layout == "sliced":
        return sliced(base, x.shape)
    return base.expand(*x.shape) if layout == "expanded" else base


# --- the product ------------------------------------------------------------------

MADE = {}


class Case:
    """A call with a dtype for each operand, a layout and a corner."""

    def __init__(self, call, dtypes, layout="contiguous", corner="ordinary"):
        self.call, self.dtypes, self.layout, self.corner = call, dtypes, layout, corner

    def key(self):
        return str(self).partition(":")[2].replace(":contiguous:", ":") + f" #{self.call.index}"

    def __str__(self):
        more = {k: v for k, v in self.call.attributes.items() if f"{k}=" not in self.call.text or f"{k}={v}" not in self.call.text}
        sizes = " ".join(str(list(s.sizes)).replace(" ", "") for s in self.call.shapes())
        return f"{self.call.op.name}:{'x'.join(self.dtypes)}:{self.layout}:{self.corner}:{self.call.text}" \
            + f" @ {sizes}" * (self.corner in ("zero", "one", "rank0")) \
            + "".join(f" {k}={v}" for k, v in more.items())

    def arrays(self):
        """The operands as arrays (and numbers), the same for every module and layout but expanded; made once, not to be written."""
        key = (self.call.op.name, self.call.index, self.corner, self.dtypes, self.layout == "expanded",
               tuple(shape.sizes for shape in self.call.shapes()))
        if key not in MADE:
            MADE[key] = self.make()
        return MADE[key]

    def make(self):
        draw, dtypes = random.Random(zlib.crc32(f"{self.call.op.name}{self.call.index}{self.corner}".encode())), iter(self.dtypes)
        last = self.dtypes[-1]

        def one(x):
            if not isinstance(x, Shape):
                return x
            real = x.holds in "rs"
            a = numbers(x, next(dtypes, last) if real else "int64", self.corner, self.call.low, self.call.high, draw)
            if self.layout == "expanded" and wide(a.shape) is not None:
                d = wide(a.shape)
                a = np.ascontiguousarray(np.broadcast_to(np.take(a, [0], d), a.shape))
            a.flags.writeable = False
            return a
        return [[one(y) for y in x] if isinstance(x, list) else one(x) for x in self.call.operands]

    def widened(self):
        """The same case, its float32 numbers given as float64."""
        wide = Case(self.call, self.dtypes, self.layout, self.corner)
        narrow = self.arrays()
        more = lambda x: [more(y) for y in x] if isinstance(x, list) else \
            x.astype("float64") if getattr(x, "dtype", None) == "float32" else x
        wide.arrays = lambda: [more(x) for x in narrow]
        return wide

    def arguments(self, module, laid):
        """Positional and named arguments; `laid` makes a tensor of an array."""
        parameters, operands = self.call.op.parameters, iter(self.arrays())
        given, values = [], {}
        for p in parameters:
            if p.operand:
                x = next(operands, None)
                values[p.name] = [laid(y) for y in x] if isinstance(x, list) else laid(x) if isinstance(x, np.ndarray) else x
            elif p.name in self.call.attributes:
                v = self.call.attributes[p.name]
                values[p.name] = getattr(module, v) if p.kind == "dtype" and v else v
        upto = next((i for i, p in enumerate(parameters) if p.keyword or p.optional or p.default is not None), len(parameters))
        for p in parameters[:upto]:
            given.append(values.pop(p.name, default_of(p)))
        return given, {k: v for k, v in values.items() if v is not None or k in self.call.attributes}

    def run(self, module, function, gradient=False, contiguous=False):
        """(results, gradients): lists of tensors; raises what the call raises."""
        leaves = []

        def laid(array):
            x = laid_out(module, array, self.layout if array.dtype.kind != "x" else "contiguous")
            if contiguous:
                x = x.contiguous()
            if gradient and array.dtype.kind == "f":
                x.requires_grad_()
                leaves.append(x)
                return x.clone() if self.call.op.mutates else x
            return x
        given, named = self.arguments(module, laid)
        out = function(*given, **named)
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        if not gradient:
            return results, None
        outs = [y for y in results if isinstance(y, module.Tensor) and y.requires_grad]
        if not outs or not leaves:
            return results, None
        draw = np.random.RandomState(5)
        seeds = [module.from_numpy(np.asarray(draw.uniform(0.5, 1.5, tuple(y.shape)), str(y.dtype).split(".")[1])) for y in outs]
        return results, list(module.autograd.grad(outs, leaves, seeds, allow_unused=True))


def default_of(p):
    return None if p.default in (None, "None") else read_value(p, p.default)


DIMS = {"dim", "dims", "dim0", "dim1", "dim2", "source", "destination", "start_dim", "end_dim", "dimension"}


def flat(call):
    """Its attributes, with dimensions that a number (rank 0) has."""
    near = lambda d: 0 if d >= 0 else -1
    return {k: [near(d) for d in v][:1] if isinstance(v, list) else near(v) for k, v in call.attributes.items()
            if k in DIMS and v is not None}


def variants(call):
    """The call with other attributes: dimensions, switches, a dtype."""
    names = {p.name: p for p in call.op.parameters}
    dim = names.get("dim")
    if dim and dim.many:
        yield from (call.changed(dim=d) for d in ([0], [-1], [0, -1], [9], []))
    elif dim and dim.kind == "int":
        yield from (call.changed(dim=d) for d in (0, -1, 9))
    here = {"dim": [0] if dim.many else 0} if dim else {}
    for p in names.values():
        if p.kind == "bool":
            yield call.changed(**here, **{p.name: p.default != "True"})
        elif p.kind == "dtype" and any(True for _ in call.shapes()):
            yield from (call.changed(**here, **{p.name: d}) for d in ("float64", "float32", "int64", "bool"))


def matrix(op):
    """The cases of one operator."""
    for call in op.calls:
        shapes = list(call.shapes())
        real = sum(s.holds in "rs" for s in shapes)
        if not shapes:
            yield Case(call, ("float32",))
            if any(p.kind == "dtype" for p in op.parameters):
                yield from (Case(call.changed(dtype=d), (d,)) for d in DTYPES)
            continue
        dtypes = DTYPES if real else ("int64",)
        for dtype in dtypes:
            sizes = {n for s in shapes for n in s.sizes if n > 0}
            for layout in LAYOUTS:
                if layout != "expanded" or all(wide(s.sizes) is not None for s in shapes):
                    yield Case(call, (dtype,), layout)
            for layout in ("contiguous", "sliced") if real else ():
                yield Case(call, (dtype,), layout, "special")
            yield Case(call.changed(lambda s: [1] * len(s)), (dtype,), corner="one")
            for n in sizes:
                yield Case(call.changed(lambda s: [0 if m == n else m for m in s]), (dtype,), corner="zero")
            for layout in ("contiguous", "sliced"):
                yield Case(call.changed(lambda s: [], **flat(call)), (dtype,), layout, "rank0")
            if call.index == 0 and dtype in ("float32", "float64", "int64", "bool"):
                yield from (Case(v, (dtype,), corner="attribute") for v in variants(call))
        if real > 1 and call.index in (0, 3):
            yield from (Case(call, pair, corner="mixed") for pair in itertools.permutations(DTYPES, 2))
        if op.elementwise and call.index == 0 and not op.mutates:
            yield from (Case(call.changed(lambda s: [3000]), (d,), corner="sweep") for d in ("float32", "float64"))


# --- what comes out -------------------------------------------------------------

def outcome(case, module, function, gradient, contiguous=False):
    """("raises", exception) or ("returns", [arrays], [dtypes], [gradients])."""
    try:
        results, grads = case.run(module, function, gradient, contiguous)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        return "raises", error
    facts = [str(y.dtype).split(".")[-1] if isinstance(y, module.Tensor) else type(y).__name__ for y in results]
    return "returns", [array(y) for y in results], facts, grads and [None if g is None else array(g) for g in grads]


def array(x):
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)


def ulps(a, b, scale=0.0):
    """The largest difference in units of the last place of b, or of scale."""
    if a.size == 0:
        return 0.0
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else np.inf
    with np.errstate(all="ignore"):
        same = (a == b) | np.isnan(a) & np.isnan(b)
        size = np.maximum(np.maximum(abs(a), abs(b)), a.dtype.type(scale))
        unit = np.spacing(np.where(np.isfinite(size), size, 1).astype(a.dtype)).astype("float64")
        apart = np.where(same, 0, abs(a.astype("float64") - b.astype("float64")) / unit)
    return float(np.where(np.isnan(apart), np.inf, apart).max())


def summary(got):
    """An outcome for the file of golden numbers: dtypes, shapes, first numbers."""
    def digits(x, most):
        return [float(f"{v:.{9 if x.dtype == 'float32' else 14}g}") if x.dtype.kind == "f" else v.item() for v in x.reshape(-1)[:most]]
    return "raises" if got[0] == "raises" else \
        [[kind, list(a.shape), digits(a, 4)] for kind, a in zip(got[2], got[1])] \
        + [None if g is None else digits(g, 2) for g in got[3] or () if "float32" not in got[2]]


def magnitude(case, results):
    """The largest finite number that goes in or comes out: what a sum's rounding is measured by."""
    flat = [x for y in case.arrays() for x in (y if isinstance(y, list) else [y])]
    some = [abs(x[np.isfinite(x)]).max() for x in map(np.asarray, (*(x for x in flat if x is not None), *results))
            if x.dtype.kind == "f" and np.isfinite(x).any()]
    return max(map(float, some), default=0.0)
