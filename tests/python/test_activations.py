# needs: activations layers
"""The operators of the chapter on activations, against NumPy and PyTorch.

References are computed by NumPy and math in float64; numbers that PyTorch
1.13 gave are written out.  Every operator meets every dtype, four layouts,
rank 0 and size 0.
"""
import copy
import math
import pickle

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import gradcheck, gradgradcheck

F = nn.functional
INF, NAN = math.inf, math.nan
vec = np.vectorize
sig = lambda x: 1 / (1 + np.exp(-x))
softplus = lambda x: np.logaddexp(0, x)
phi = vec(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))


def rational(x, k):
    return np.clip(x / 6 + 0.5, 0, 1) * k


UNARY = {
    "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "exp2": np.exp2, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": vec(math.erf), "erfc": vec(math.erfc),
    "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "trunc": np.trunc, "frac": lambda x: x - np.trunc(x),
    "silu": lambda x: x * sig(x), "logsigmoid": lambda x: -softplus(-x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "gelu": lambda x: x * phi(x),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "selu": lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "hardsigmoid": lambda x: rational(x, 1),
    "hardswish": lambda x: rational(x, x),
    "softsign": lambda x: x / (1 + abs(x)),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "softplus": softplus, "tanhshrink": lambda x: x - np.tanh(x),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardshrink": lambda x: np.where(abs(x) <= 0.5, 0, x),
    "softshrink": lambda x: x - np.clip(x, -0.5, 0.5),
}
FLOATS_ONLY = {"silu", "logsigmoid", "mish", "gelu", "gelu_tanh", "selu",
               "hardsigmoid", "hardswish", "leaky_relu", "elu", "softplus"}
KEEPS_INT = {"floor", "ceil", "round", "trunc", "frac", "relu6",
             "hardtanh"}
BINARY = {
    "logaddexp": np.logaddexp, "atan2": np.arctan2, "hypot": np.hypot,
    "xlogy": lambda a, b: np.where(a == 0, 0, a * np.log(b)),
    "fmod": np.fmod, "remainder": np.remainder,
    "floor_divide": np.floor_divide, "fmax": np.fmax, "fmin": np.fmin,
    "heaviside": np.heaviside, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
}
WHOLE = {n for n in BINARY if n.startswith("bitwise")}
FLOATING = {"logaddexp", "atan2", "hypot", "xlogy"}
DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool"]


def array(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return rng.normal(0, 2, shape).astype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(1, 7, shape).astype(dtype)


def tensor(a):
    return td.tensor(a.tolist(), dtype=getattr(td, str(a.dtype))).reshape(
        a.shape)


def layouts(a):
    """The same elements in four layouts."""
    yield tensor(a)
    yield tensor(np.ascontiguousarray(a.T)).permute(
        *range(a.ndim)[::-1]) if a.ndim else tensor(a)
    if a.ndim:
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        wide[..., ::2] = a
        yield tensor(wide)[..., ::2]
    yield tensor(a[None])[0]


def close(x, expected, dtype):
    got = np.array(x.tolist(), float).reshape(tuple(x.shape))
    assert got.shape == expected.shape
    tol = 4e-6 if dtype == "float32" else 2e-14
    np.testing.assert_allclose(got, expected.astype(float), tol, tol / 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    f = getattr(td, name)
    for shape in ((3, 7), (5,), (), (0, 3), (2, 1, 17)):
        a = array(shape, dtype)
        if dtype == "bool" and name in KEEPS_INT | {"softsign"} or \
                not dtype.startswith("float") and name in FLOATS_ONLY:
            if name in ("hardtanh", "softsign"):
                continue
            with pytest.raises(RuntimeError, match=dtype):
                f(tensor(a))
            continue
        if name == "hardtanh" and dtype == "uint8":
            continue
        if not dtype.startswith("float") and name in (
                "hardshrink", "softshrink", "celu", "tanhshrink"):
            continue
        with np.errstate(all="ignore"):
            wide = a.astype("float64")
            expected = UNARY[name](wide) if a.size else wide
        for x in layouts(a):
            y = f(x)
            keeps = dtype.startswith("float") or name in KEEPS_INT
            assert y.dtype is (x.dtype if keeps else td.float32)
            close(y, expected, "float64" if dtype == "float64"
                  else "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    f = getattr(td, name)
    if dtype == "bool" and name not in WHOLE and "logical" not in name:
        return
    if dtype == "bool" and "shift" in name:
        return
    for left, right in (((3, 7), (3, 7)), ((3, 1, 7), (5, 1)), ((), (4,)),
                        ((0, 3), (3,))):
        a, b = array(left, dtype), array(right, dtype, 1)
        if dtype.startswith("float") and name in WHOLE:
            with pytest.raises(RuntimeError, match="not defined for flo"):
                f(tensor(a), tensor(b))
            continue
        if name in ("xlogy", "logaddexp"):
            b = abs(b)
        wide = "float64" if name in FLOATING else dtype
        with np.errstate(all="ignore"):
            expected = BINARY[name](a.astype(wide), b.astype(wide))
        for x, y in zip(layouts(a), layouts(b)):
            z = f(x, y)
            assert z.dtype is (
                td.bool if "logical" in name else td.float32
                if name in FLOATING and not dtype.startswith("float")
                else x.dtype)
            close(z, expected, "float64" if dtype == "float64"
                  else "float32")


ULP = {"expm1": (np.expm1, -60, 88), "log1p": (np.log1p, -0.999, 1e6),
       "log2": (np.log2, 1e-30, 1e30), "log10": (np.log10, 1e-30, 1e30),
       "exp2": (np.exp2, -120, 127), "erf": (vec(math.erf), -4.5, 4.5)}


@pytest.mark.parametrize("name", ULP)
def test_primitives_are_within_2_ulp(name):
    f, low, high = ULP[name]
    tiny = np.geomspace(1e-30, 1, 3000)
    x = np.concatenate([np.linspace(low, high, 6000), tiny, -tiny,
                        np.linspace(-1, 1, 6000)])
    x = x[(x >= low) & (x <= high)].astype("float32")
    exact = f(x.astype("float64"))
    got = np.array(getattr(td, name)(tensor(x)).tolist())
    error = abs(got - exact) / np.spacing(abs(exact).astype("float32"))
    worst = error.argmax()
    assert error[worst] <= 2, (x[worst], got[worst], exact[worst])


SPECIAL = {
    "expm1": [(INF, INF), (-INF, -1), (NAN, NAN), (-0.0, -0.0)],
    "log1p": [(INF, INF), (-1, -INF), (-2, NAN), (NAN, NAN),
              (-0.0, -0.0), (1e-20, 1e-20)],
    "log2": [(0, -INF), (-1, NAN), (INF, INF), (8, 3)],
    "log10": [(0, -INF), (-1, NAN), (INF, INF), (1000, 3)],
    "exp2": [(INF, INF), (-INF, 0), (NAN, NAN), (10, 1024)],
    "erf": [(INF, 1), (-INF, -1), (NAN, NAN), (-0.0, -0.0), (9, 1)],
    "round": [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, -0.0), (-1.5, -2),
              (INF, INF), (NAN, NAN)],
    "floor": [(-0.5, -1), (-INF, -INF), (NAN, NAN), (-0.0, -0.0)],
    "relu6": [(NAN, NAN), (INF, 6), (-INF, 0)],
    "hardtanh": [(NAN, NAN), (INF, 1), (-INF, -1)],
    "silu": [(INF, INF), (NAN, NAN)],
    "mish": [(INF, INF), (100, 100), (NAN, NAN)],
    "logsigmoid": [(INF, 0), (-INF, -INF), (-200, -200), (NAN, NAN)],
    "softplus": [(INF, INF), (-INF, 0), (21, 21), (NAN, NAN)],
    "selu": [(-INF, -1.7580993408473766), (INF, INF), (NAN, NAN)],
    "hardswish": [(-3, 0), (3, 3), (INF, INF), (NAN, NAN)],
    "isinf": [(INF, 1), (-INF, 1), (NAN, 0), (3, 0)],
    "isfinite": [(INF, 0), (-INF, 0), (NAN, 0), (3, 1)],
    "isposinf": [(INF, 1), (-INF, 0), (NAN, 0)],
    "isneginf": [(INF, 0), (-INF, 1), (NAN, 0)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name):
    for dtype in (td.float32, td.float64):
        x, y = zip(*SPECIAL[name])
        got = getattr(td, name)(td.tensor(x, dtype=dtype)).tolist()
        want = td.tensor(y, dtype=dtype).tolist()
        for a, g, w in zip(x, got, want):
            assert math.isnan(w) and math.isnan(g) or g == w, (name, a, g)
            if w == 0 and not isinstance(g, bool):
                assert math.copysign(1, g) == math.copysign(1, w) or \
                    name not in ("expm1", "log1p", "erf", "round")


# What PyTorch 1.13 answers, to seven digits: values and gradients.
GOLDEN = [
    (lambda x: F.gelu(x), [-3, -1, -0.5, 0, 0.5, 1, 3],
     [-0.00404987, -0.15865529, -0.15426877, 0, 0.34573123, 0.84134474,
      2.99595013], None),
    (lambda x: F.gelu(x, approximate="tanh"), [-3, -1, -0.5, 0, 0.5, 1, 3],
     [-0.00363743, -0.15880800, -0.15428600, 0, 0.34571400, 0.84119201,
      2.99636257], None),
    (F.relu, [-1, 0, NAN], [0, 0, NAN], [0, 0, 1]),
    (F.leaky_relu, [-1, 0, 2], [-0.01, 0, 2], [0.01, 0.01, 1]),
    (F.elu, [0.0, 1], [0, 1], [1, 1]),
    (F.selu, [0.0, 1], [0, 1.05070099], [1.75809934, 1.05070099]),
    (F.relu6, [0, 3, 6, 7], [0, 3, 6, 6], [0, 1, 0, 0]),
    (F.hardtanh, [-1, 0, 1, 2], [-1, 0, 1, 1], [0, 1, 0, 0]),
    (F.hardsigmoid, [-3, 0, 3], [0, 0.5, 1], [0, 1 / 6, 0]),
    (F.hardswish, [-3, 0, 3], [0, 0, 3], [0, 0.5, 1]),
    (lambda x: F.softplus(x, 2, 3), [-1, 1, 2, -200],
     [0.06346400, 1.06346400, 2, 0], [0.11920292, 0.88079708, 1, 0]),
    (lambda x: F.celu(x, 0.5), [-1, 1], [-0.43233236, 1],
     [0.13533528, 1]),
    (lambda x: F.threshold(x, 0.5, 7), [0.5, 1], [7, 1], [0, 1]),
    (F.hardshrink, [-0.5, 0.6], [0, 0.6], [0, 1]),
    (F.softshrink, [-1, 0.3, 1], [-0.5, 0, 0.5], [1, 0, 1]),
    (lambda x: td.remainder(x, 2.5), [-7, 7], [0.5, 2], [1, 1]),
    (lambda x: td.fmod(x, 2.5), [-7, 7], [-2, 2], [1, 1]),
    (lambda x: td.atan2(x, x * 0 + 1), [0, 1], [0, 0.78539816], [1, 0.5]),
    (td.log1p, [0, -0.5], [0, -0.69314718], [1, 2]),
    (td.round, [0.5, 1.5], [0, 2], [0, 0]),
    (td.nan_to_num, [NAN, INF, 1], [0, 1.7976931348623157e308, 1],
     [0, 0, 1]),
]


@pytest.mark.parametrize("case", range(len(GOLDEN)))
def test_golden(case):
    f, given, values, slopes = GOLDEN[case]
    x = td.tensor(given, dtype=td.float64, requires_grad=True)
    y = f(x)
    np.testing.assert_allclose(y.tolist(), values, 1e-7, 3e-7)
    if slopes is not None:
        y.backward(td.ones_like(y))
        np.testing.assert_allclose(x.grad.tolist(), slopes, 1e-7, 1e-8)


@pytest.mark.parametrize("name", sorted(
    set(UNARY) - {"floor", "ceil", "round", "trunc", "gelu_tanh"}))
def test_gradients_far_from_zero_stay_finite(name):
    if name in ("asin", "acos", "atanh", "acosh", "sinh", "cosh", "exp2",
                "expm1", "log1p", "log2", "log10", "tan"):
        return
    f = getattr(td, name)
    x = td.tensor([-1e4, -800.0, 800.0, 1e4], dtype=td.float64,
                  requires_grad=True)
    g, = td.autograd.grad(f(x).sum(), x, create_graph=True)
    assert td.isfinite(g).all()
    if g.requires_grad:
        second, = td.autograd.grad(g.sum(), x)
        assert td.isfinite(second).all(), name


@pytest.mark.parametrize("n", [1, 40])
def test_gelu_and_its_slope_at_nan_and_infinity(n):
    x = td.tensor([NAN, -NAN, INF, -INF, 1e30, -1e30] * n, requires_grad=True)
    y = td.nn.functional.gelu(x)
    y.sum().backward()
    for got, wanted in ((y, [NAN, NAN, INF, NAN, 1e30, 0]), (x.grad, [NAN, NAN, 1, 0, 1, 0])):
        np.testing.assert_allclose(got.detach().numpy(), np.array(wanted * n, "f4"), atol=1e-40)


def test_gradcheck_of_composites():
    td.manual_seed(3)
    new = lambda *s: (td.rand(*s, dtype=td.float64) + 0.6).requires_grad_()
    for f, shapes in (
            (td.lerp, [(2, 3), (3,), (2, 1)]),
            (lambda a, b, c: td.addcmul(a, b, c, value=0.3),
             [(2, 3), (3,), (2, 1)]),
            (lambda a, b, c: td.addcdiv(a, b, c, value=0.3),
             [(2, 3), (3,), (2, 1)]),
            (F.prelu, [(2, 3, 2), (3,)]), (F.glu, [(2, 4)]),
            (lambda a: a.masked_fill(td.tensor([True, False, True]), 2.0),
             [(2, 3)])):
        inputs = tuple(new(*s) for s in shapes)
        assert gradcheck(f, inputs) and gradgradcheck(f, inputs)


def test_a_product_is_added_in_the_type_of_all():
    whole, half = td.tensor([1, 2]), td.tensor([60000.0], dtype=td.float16)
    three = td.tensor([3, 4])
    assert td.addcmul(whole, three, whole).tolist() == [4, 10]
    y = td.addcmul(whole, three, whole, value=0.5)
    assert y.dtype is td.float32 and y.tolist() == [2.5, 6]
    y = td.addcmul(half, half, half / 60000, value=-0.5)
    assert y.dtype is td.float16 and y.tolist() == [30000]
    y = td.addcmul(half, td.ones(2), half.double() * 0)
    assert y.dtype is td.float64 and y.tolist() == [60000, 60000]
    with pytest.raises(ValueError, match="300 does not fit uint8"):
        td.addcmul(*[td.ones(1, dtype=td.uint8)] * 3, value=300)
    with pytest.raises(RuntimeError, match="3.*2|2.*3"):
        td.addcmul(td.ones(3), td.ones(2), td.ones(3))


def test_formulas_of_halves_are_computed_wide():
    a = td.tensor([60000.0], dtype=td.float16).requires_grad_()
    for w in (0.25, td.tensor([0.25], dtype=td.float16)):
        y = td.lerp(a, -a, w)
        assert y.dtype is td.float16 and y.tolist() == [30000]
        assert td.autograd.grad(y, a)[0].tolist() == [0.5]
    assert td.addcdiv(-a, a, a / 600, value=16).tolist() == [-50400]
    assert td.isclose(a, a).dtype is td.bool
    assert F.softshrink(td.tensor([-0.3]).bfloat16(), 0.3).tolist() == [0]
    for kind, most in ((td.float16, 65504), (td.bfloat16, float.fromhex("0x1.fep127"))):
        assert td.nan_to_num(td.tensor([float("inf"), -float("inf")], dtype=kind)).tolist() == [most, -most]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integer_division(dtype):
    kind = getattr(td, dtype)
    signs = (1,) if dtype == "uint8" else (1, -1)
    a = [s * v for s in signs for v in range(9)]
    for d in [s * v for s in signs for v in (1, 2, 3, 7)]:
        x = td.tensor(a, dtype=kind)
        assert (x // d).tolist() == [v // d for v in a]
        assert (x % d).tolist() == [v % d for v in a]
        assert td.fmod(x, d).tolist() == [int(math.fmod(v, d)) for v in a]
        assert td.div(x, d, rounding_mode="trunc").tolist() == \
            [int(v / d) for v in a]
        assert td.div(x, d, rounding_mode="floor").dtype is kind
    for f in (td.fmod, td.remainder, td.floor_divide):
        for zero in (0, td.tensor([1, 0], dtype=kind)):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                f(td.tensor([1, 2], dtype=kind), zero)
        assert f(td.ones(0, dtype=kind), td.ones(0, dtype=kind)).numel() == 0


def test_integer_division_at_the_edge():
    low = td.tensor([-2 ** 63, -2 ** 31])
    assert (low // -1).tolist() == [-2 ** 63, 2 ** 31]
    assert (low % -1).tolist() == [0, 0]


def test_float_division():
    x = td.tensor([5.0, -5.0, 1.0, -1.0, 0.0, -0.0])
    assert (x % INF).tolist() == [5, INF, 1, INF, 0, 0]
    assert (x // 0.0).tolist()[:4] == [INF, -INF, INF, -INF]
    assert math.isnan((x // 0.0)[4].item())
    assert (td.tensor([-7.5]) // 2).tolist() == [-4]
    assert (td.tensor([1.0]) // 0.1).tolist() == [9]


def test_python_operators():
    x, y = td.tensor([1, 2, 7, 9]), td.tensor([1, 3, 2, 4])
    a, b = np.array(x.tolist()), np.array(y.tolist())
    for f in (lambda p, q: p // q, lambda p, q: p % q, lambda p, q: p & q,
              lambda p, q: p | q, lambda p, q: p ^ q, lambda p, q: p << q,
              lambda p, q: p >> q):
        assert f(x, y).tolist() == f(a, b).tolist()
        assert f(x, 2).tolist() == f(a, 2).tolist()
        assert f(13, y).tolist() == f(13, b).tolist()
    assert (~x).tolist() == (~a).tolist()
    assert (~td.tensor([True, False])).tolist() == [False, True]
    assert (~td.tensor([0, 200], dtype=td.uint8)).tolist() == [255, 55]
    assert (x << 64).tolist() == [0] * 4 and (-x >> 70).tolist() == [-1] * 4
    m = td.tensor([True, False]) & td.tensor([True, True])
    assert m.dtype is td.bool and m.tolist() == [True, False]
    assert ((x > 1) | (y > 3)).tolist() == [False, True, True, True]


def test_python_operators_in_place():
    for change in ("//= 2", "%= 4", "&= 6", "|= 9", "^= 5", "<<= 2",
                   ">>= 1", "**= 2"):
        x, a = td.tensor([1, 2, 7, 9]), np.array([1, 2, 7, 9])
        space = {"x": x, "a": a}
        exec(f"x {change}; a {change}", space)
        assert space["x"] is x and x.tolist() == a.tolist(), change


UPDATES = sorted(n[:-1] for n in dir(td.Tensor)
                 if n[-1] == "_" and n[0] != "_" and n[:-1] in UNARY)


@pytest.mark.parametrize("name", UPDATES)
def test_forms_in_place(name):
    a = array((3, 4), "float64") * 0.1 + (2 if name == "acosh" else 0.6)
    whole = tensor(a)
    part, want = whole[:, 1:], getattr(td, name)(tensor(a)[:, 1:])
    assert getattr(part, name + "_")() is part
    assert whole[:, 1:].tolist() == want.tolist()
    assert whole[:, 0].tolist() == a[:, 0].tolist()


def test_forms_in_place_refuse_what_does_not_fit():
    for f, words in (
            (lambda: td.ones(2, dtype=td.int64).exp_(),
             "exp_: the result is float32 and cannot be stored in int64"),
            (lambda: td.ones(2).pow_(td.ones(3, 2)),
             r"pow_: a tensor of shape \[2\] cannot hold"),
            (lambda: td.ones(2, dtype=td.bool).bitwise_or_(
                td.ones(2, dtype=td.int64)), "int64"),
            (lambda: td.ones(1).expand(3).exp_(), "expanded")):
        with pytest.raises(RuntimeError, match=words):
            f()
    x = td.tensor([1.0, 5.0])
    assert x.clamp_(max=2).tolist() == [1, 2]
    assert x.masked_fill_(x > 1, 9).tolist() == [1, 9]
    assert x.lerp_(td.zeros(2), 0.5).tolist() == [0.5, 4.5]
    assert x.addcmul_(x, x, value=2).tolist() == [1, 45]
    assert x.eq_(1).tolist() == [1, 0] and x.dtype is td.float32


def test_masked_fill():
    x = td.tensor([[1.0, 2.0], [3.0, 4.0]])
    mask = td.tensor([True, False])
    assert x.masked_fill(mask, -INF).tolist() == [[-INF, 2], [-INF, 4]]
    assert x.masked_fill(mask, td.tensor(7, dtype=td.float64)).dtype \
        is td.float32
    i = td.tensor([1, 2])
    assert i.masked_fill(mask, 1.7).tolist() == [1, 2]
    assert i.masked_fill(mask, 9.7).tolist() == [9, 2]
    for bad, words in ((INF, "int64"), (td.ones(2), "rank 0")):
        with pytest.raises(RuntimeError, match=words):
            i.masked_fill(mask, bad)
    with pytest.raises(RuntimeError, match="bool"):
        x.masked_fill(i, 0)


def test_closeness():
    x = td.tensor([1.0, INF, -INF, NAN, 1e-9])
    y = td.tensor([1.000001, INF, INF, NAN, 0.0])
    assert td.isclose(x, y).tolist() == [True, True, False, False, True]
    assert td.isclose(x, y, equal_nan=True).tolist()[3] is True
    assert not td.allclose(x, y) and td.allclose(x[:2], y[:2])
    assert td.allclose(td.tensor([1]), td.tensor([1]))
    for kind in (td.bool, td.uint8):
        a, b = td.tensor([1, 0], dtype=kind), td.tensor([1, 1], dtype=kind)
        assert td.isclose(a, b).tolist() == [True, False]
    assert not td.allclose(td.tensor([INF]), td.tensor([1.0]))
    assert td.equal(x[:2], x[:2]) and not td.equal(x, x)
    assert not td.equal(td.ones(2), td.ones(1, 2))


def test_arguments_of_python():
    x = td.tensor([1.0, -2.0])
    assert td.div(x, 0.7, rounding_mode="floor").tolist() == [1, -3]
    assert td.div(x, 0.7, rounding_mode="trunc").tolist() == [1, -2]
    assert x.clone().div_(0.7, rounding_mode="trunc").tolist() == [1, -2]
    with pytest.raises(RuntimeError, match="rounding_mode"):
        td.div(x, 2, rounding_mode="up")
    y = td.tensor([1234.5678], dtype=td.float64)
    assert td.round(y, decimals=2).tolist() == [1234.57]
    assert y.round(decimals=-2).tolist() == [1200]
    assert x.clip(0, 1).tolist() == [1, 0]
    assert td.clamp_min(x, 0).tolist() == [1, 0]
    low = td.tensor([2.0, -3.0], requires_grad=True)
    z = x.clone().requires_grad_()
    td.clamp(z, low, 5).sum().backward()
    assert z.grad.tolist() == [0, 1] and low.grad.tolist() == [1, 0]
    assert x.clamp(max=low).tolist() == [1, -3]
    assert td.clamp_max(x, 0).tolist() == [0, -2]
    assert td.arctan2(x, x).tolist() == td.atan2(x, x).tolist()
    assert x.greater(0).tolist() == [True, False]
    assert x.absolute().tolist() == [1, 2] and td.fix(x) is not x
    assert x.clone().multiply_(2).tolist() == [2, -4]
    with pytest.raises(RuntimeError, match="none.tanh"):
        td.gelu(x, approximate="erf")
    with pytest.raises(RuntimeError, match="prelu.*3 elem.*2 chan"):
        td.prelu(td.ones(4, 2), td.ones(3))
    assert td.leaky_relu(x, negative_slope=0.5).tolist() == [1, -1]


MODULES = [n for n in nn.activation.__all__ if n != "PReLU"]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_their_functions(name):
    kind, options = getattr(nn, name), (0, 0) if name == "Threshold" else ()
    m = kind(*options)
    x = td.tensor([[-1.3, 0.2, 4.0, -0.4]])
    f = {"LogSoftmax": "log_softmax", "LogSigmoid": "logsigmoid",
         "LeakyReLU": "leaky_relu"}.get(name, name.lower())
    want = getattr(F, f)(x, *options)
    assert m(x).tolist() == want.tolist()
    assert type(copy.deepcopy(m)) is type(pickle.loads(pickle.dumps(m)))
    if "inplace" in m._given:
        m = kind(*options, inplace=True)
        y = x.clone()
        assert m(y) is y and y.tolist() == want.tolist()
        assert "inplace=True" in repr(m)


def test_modules_in_place_can_be_trained():
    x = td.tensor([-1.0, 2.0], requires_grad=True)
    net = nn.Sequential(nn.ReLU(inplace=True), nn.ELU(inplace=True))
    net(x * 3).sum().backward()
    assert x.grad.tolist() == [0, 3]


def test_modules_print_as_in_pytorch():
    assert repr(nn.ReLU()) == "ReLU()"
    assert repr(nn.LeakyReLU(0.2)) == "LeakyReLU(negative_slope=0.2)"
    assert repr(nn.GELU()) == "GELU(approximate='none')"
    assert repr(nn.Hardtanh(-2, 2, True)) == \
        "Hardtanh(min_val=-2, max_val=2, inplace=True)"
    assert repr(nn.PReLU(3)) == "PReLU(num_parameters=3)"
    assert nn.PReLU(3).weight.tolist() == [0.25] * 3
    assert nn.PReLU()(td.tensor([-4.0, 4.0])).tolist() == [-1, 4]
    for bad, words in ((lambda: nn.ReLU(1, 2), "too many positional"), (lambda: nn.ELU(beta=1), "argument 'beta'"),
                       (lambda: nn.Threshold(1), "argument: 'value'"), (lambda: nn.ReLU(True, inplace=True), "'inplace'")):
        with pytest.raises(TypeError, match=words):
            bad()


@pytest.mark.parametrize("f", [td.abs, F.relu, F.relu6, F.leaky_relu, F.hardsigmoid])
def test_the_slope_of_a_kinked_curve_can_be_derived(f, no_leaks):
    x = td.tensor([-7.0, -0.4, 0.0, 0.4, 7.0, float("inf"), float("nan")], requires_grad=True)
    g, = td.autograd.grad(f(x).sum(), x, create_graph=True)
    plain, = td.autograd.grad(f(x).sum(), x)
    assert g.requires_grad and g.tolist()[:6] == plain.tolist()[:6]
    assert td.autograd.grad(g.square().sum(), x)[0].tolist() == [0] * 7
    assert not plain.requires_grad


def test_rests_of_floats_are_exact_near_and_far():
    random = np.random.default_rng(3)
    bits = random.integers(0, 2**32, 40000, dtype="u4").view("f4")
    a, b = np.exp(random.uniform(-20, 20, (2, 40000))).astype("f4") * random.choice([-1, 1], (2, 40000)).astype("f4")
    edge = np.nextafter(b * random.integers(0, 2**22, 40000).astype("f4"), random.choice([-np.inf, np.inf], 40000).astype("f4"), dtype="f4")
    kinds = np.array([0, -0.0, 1, -1, 1e-45, 3e38, 2**22, np.inf, -np.inf, np.nan], "f4")
    for x, y in ((a, b), (edge, b), (bits, b), (a, bits), (a, np.full_like(a, 0.3)), (edge * 8, b), np.meshgrid(kinds, kinds)):
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        with np.errstate(all="ignore"):
            rest = np.fmod(x, y)
            turned = rest + np.where((rest != 0) & ((rest < 0) != (y < 0)), y, np.float32(0))
            whole = np.floor_divide(x, y)
        got = td.fmod(td.from_numpy(x), td.from_numpy(y)).numpy()
        np.testing.assert_array_equal(got, rest)
        assert (np.signbit(got) == np.signbit(rest))[rest == 0].all()
        np.testing.assert_array_equal(td.remainder(td.from_numpy(x), td.from_numpy(y)).numpy(), turned)
        small = np.isfinite(x) & np.isfinite(y) & (y != 0) & (abs(whole) < 2**22)
        np.testing.assert_array_equal(td.floor_divide(td.from_numpy(x), td.from_numpy(y)).numpy()[small], whole[small])
