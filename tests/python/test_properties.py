# needs: layers vocabulary
# SPDX-License-Identifier: MIT
"""What must hold for every operator, whatever numbers and layouts it meets.

The operators and calls come from the registry; the numbers, sizes and views
from hypothesis, the same in every run.
"""
import copy
import functools
import inspect
import pickle
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import treadle as td
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.internal import reflection

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from peers import SUMS                                                  # noqa: E402
from registry_cases import DTYPES, OPERATORS, REFUSALS, cases           # noqa: E402

ROWS = cases.registry()
STRIDED = {"view", "strided_view", "detach_", "gated_backward_"} | {name for name in ROWS if name.endswith("_step_")}   # they ask about the layout
LAST_STAYS = {"put_points", "index_copy", "scatter"}     # what is written twice at one place has no derivative
RANDOM = cases.FACTS_ONLY | {"rrelu"}
ALL = td.float32, td.float64, td.int64, td.int32, td.uint8, td.bool
WHOLE = td.int64, td.int32, td.uint8
FLOATS = td.float32, td.float64


# Each of a thousand runs reads and parses the source of its test twice; there are twenty sources.
inspect.getsource = functools.cache(inspect.getsource)
reflection._clean_source = functools.cache(reflection._clean_source)
LONG = "TREADLE_LONG" in os.environ         # make test-long tries three times as many


def examples(n):
    return settings(derandomize=True, max_examples=n if LONG else -(-n // 3), deadline=None, database=None,
                    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])


# --- tensors at random ---------------------------------------------------------

def filled(data, shape, dtype, low=-3.0, high=3.0):
    """Numbers of few bits, so that sums of few of them are exact."""
    seed = data.draw(st.integers(0, 2 ** 16), label="seed")
    x = np.random.default_rng(seed).integers(int(low * 8), int(high * 8) + 1, shape) / 8
    if dtype is td.bool:
        return td.tensor(np.asarray(x > 0))
    x = x if dtype.is_floating_point else np.abs(np.trunc(x)) if dtype is td.uint8 else np.trunc(x)
    return td.tensor(np.asarray(x, "float64")).to(dtype)


def view_of(data, x):
    """The same numbers behind other strides: permuted, with gaps, turned round, in the middle of something."""
    how = data.draw(st.sampled_from(["plain", "permuted", "gaps", "offset"]), label="layout")
    if how == "permuted" and x.ndim > 1:
        order = data.draw(st.permutations(range(x.ndim)), label="order")
        return x.permute(order).contiguous().permute([order.index(d) for d in range(x.ndim)])
    if how == "gaps" and x.ndim:
        room = td.zeros([*x.shape[:-1], 2 * x.shape[-1]], dtype=x.dtype)
        room[..., ::2] = x
        return room[..., ::2]
    if how == "offset" and x.ndim:
        room = td.zeros([x.shape[0] + 2, *x.shape[1:]], dtype=x.dtype)
        room[1:-1] = x
        return room[1:-1]
    return x


def some(data, dtypes=ALL, least=0, most=4, smallest=0):
    """A tensor of any shape, dtype and layout."""
    shape = data.draw(st.lists(st.integers(smallest, 5), min_size=least, max_size=most), label="shape")
    return view_of(data, filled(data, shape, data.draw(st.sampled_from(dtypes), label="dtype")))


def same(a, b, bound=0.0):
    """Equal to the bit (NaN to NaN), or within bound of the larger one."""
    assert a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape), (a, b)
    a, b = (x.detach().double().numpy() for x in (a, b))
    if bound == 0:
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a)[a == 0], np.signbit(b)[b == 0])
    else:
        scale = max(1.0, float(np.max(np.abs(b), initial=0)))
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound * scale)


# --- every operator of the registry -----------------------------------------------

def resized(data, call):
    """The call with other sizes, equal ones staying equal."""
    sizes = {n: data.draw(st.integers(2, 5), label=f"size for {n}") for n in range(2, 6)}
    return call.changed(lambda shape: [sizes.get(n, n) for n in shape])


def operands_of(data, call):
    """Tensors for a call's operands: floats in the sample's range, in any layout."""
    draw = np.random.default_rng(data.draw(st.integers(0, 2 ** 16), label="seed"))

    def one(x):
        if isinstance(x, list):
            return [one(y) for y in x]
        if not isinstance(x, cases.Shape):
            return x
        if x.holds == "b":
            return td.tensor(np.asarray(draw.random(x.sizes) < 0.5))
        if x.holds == "i":
            n, distinct = int(np.prod(x.sizes)), call.op.name.rstrip("_") in LAST_STAYS
            at = draw.permutation(max(n, x.below))[:n] % x.below if distinct else draw.integers(0, max(1, x.below), n)
            return td.tensor(at.reshape(x.sizes))
        a = draw.uniform(call.low, call.high, x.sizes)
        a = td.tensor(np.asarray(np.sort(a) if x.holds == "s" and x.sizes else a))
        return a if call.op.name in STRIDED else view_of(data, a)
    return [one(x) for x in call.operands]


def bind(row, call, operands):
    """Positional and named arguments of the operands and the call's attributes."""
    operands, named = iter(operands), dict(call.attributes)
    for p in row.parameters:
        if p.operand:
            x = next(operands, None)
            if x is not None or p.default is None:
                named[p.name] = x
        elif p.kind == "dtype" and named.get(p.name):
            named[p.name] = getattr(td, named[p.name])
    return named


def drawn_call(data, row):
    """(call, operands) that the operator accepts: resized if it takes that."""
    call = data.draw(st.sampled_from(row.calls), label="call")
    for one in (resized(data, call), call):
        operands = operands_of(data, one)
        try:
            run(row, one, [copied(x) for x in operands])
            return one, operands
        except REFUSALS:
            continue
    return None, None


def copied(x):
    return [copied(y) for y in x] if isinstance(x, list) else x.clone() if isinstance(x, td.Tensor) else x


def run(row, call, operands):
    """The floating results that depend on the operands, or all results."""
    out = getattr(td._C, row.name)(**bind(row, call, operands))
    return list(out) if isinstance(out, tuple) else [out]


def leaves_of(operands):
    for x in operands:
        yield from leaves_of(x) if isinstance(x, list) else [x] if isinstance(x, td.Tensor) and x.is_floating_point() else []


def moved(operands, leaves):
    """The operands with the leaves put in the place of their floats."""
    leaves = iter(leaves)

    def one(x):
        if isinstance(x, list):
            return [one(y) for y in x]
        return next(leaves) if isinstance(x, td.Tensor) and x.is_floating_point() else x
    return [one(x) for x in operands]


def derived(row):
    """Whether the row's results can require a gradient."""
    for call in row.calls:
        try:
            operands = [cases_operand(call, x) for x in call.operands]
            leaves = [x.requires_grad_() for x in leaves_of(operands)]
            work = [x * 1 for x in leaves] if row.mutates else leaves
            if any(x.requires_grad for x in run(row, call, moved(operands, work))):
                return True
        except REFUSALS:
            continue
    return False


def cases_operand(call, x):
    if isinstance(x, list):
        return [cases_operand(call, y) for y in x]
    if not isinstance(x, cases.Shape):
        return x
    if x.holds == "i":
        return td.zeros(x.sizes, dtype=td.int64)
    return td.ones(x.sizes, dtype=td.bool if x.holds == "b" else td.float64) * ((call.low + call.high) / 2 if x.holds != "b" else True)


DIFFERENTIABLE = [name for name, row in ROWS.items() if name not in RANDOM and derived(row)]
DIFFERENTIABLE = [name for name in DIFFERENTIABLE if not (ROWS[name].mutates and name[:-1] in ROWS and name[:-1] not in DIFFERENTIABLE)]


ASKED = {}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@examples(4)
@given(data=st.data())
def test_forward_and_backward_are_adjoint(name, data):
    """<Jv, u> = <v, J'u>: by the rule, by the rule's own derivative, and by differences."""
    row = ROWS[name]
    ASKED.setdefault(name, 0)
    call, operands = drawn_call(data, row)
    if call is None or "padding_idx" in call.attributes:    # a row that gets no gradient on purpose
        return

    def function(leaves):
        leaves = [x * 1 for x in leaves] if row.mutates else leaves
        return [y for y in run(row, call, moved(operands, leaves)) if y.is_floating_point()]
    if name.rstrip("_") in LAST_STAYS and any(len(x.unique()) < x.numel() for x in operands
                                              if isinstance(x, td.Tensor) and x.dtype is td.int64):
        return
    leaves = [x.detach().requires_grad_() for x in leaves_of(operands)]
    outs = [y for y in function(leaves) if y.requires_grad]
    if not outs or any(y.isnan().any() or y.isinf().any() for y in outs):
        return
    td.manual_seed(1)
    u = [td.randn(y.shape, dtype=td.float64).requires_grad_() for y in outs]
    v = [td.randn(x.shape, dtype=td.float64) for x in leaves]
    back = td.autograd.grad(outs, leaves, [w.to(y.dtype) for w, y in zip(u, outs)], allow_unused=True, create_graph=True)
    pairs = [(g, w) for g, w in zip(back, v) if g is not None]
    right = sum((g * w).sum() for g, w in pairs)
    scale = 1 + sum(float((g * w).abs().sum()) for g, w in pairs)
    if isinstance(right, td.Tensor) and right.requires_grad:
        forth = td.autograd.grad(right, u, allow_unused=True)
        left = sum((g * w).sum() for g, w in zip(forth, u) if g is not None)
        assert abs(float(left) - float(right)) <= 1e-10 * scale, "the rule is not linear in the gradient"
    with td.no_grad():
        step = 1e-6

        def along(t):
            shifted = [x.detach() + t * w for x, w in zip(leaves, v)]
            every = run(row, call, moved(operands, shifted))
            return sum(float((y.double() * w).sum()) for y, w in zip([y for y in every if y.is_floating_point()], u))
        slope = (along(step) - along(-step)) / (2 * step)
    ASKED[name] += 1
    assert abs(slope - float(right)) <= 3e-5 * scale, f"{name}({call.text}): differences give {slope}, the rule {float(right)}"


@pytest.mark.parametrize("name", [name for name in ROWS if name not in RANDOM | STRIDED])
@examples(4)
@given(data=st.data())
def test_a_layout_changes_no_bit(name, data):
    row = ROWS[name]
    call, operands = drawn_call(data, row)
    if call is None:
        return
    plain = [[y.contiguous() for y in x] if isinstance(x, list) else x.contiguous() if isinstance(x, td.Tensor) else x
             for x in operands]
    there = [copied(x) for x in plain]
    here = operands if not row.mutates else [x if not isinstance(x, td.Tensor) else view_like(x) for x in operands]
    for a, b in zip(run(row, call, here), run(row, call, there)):
        same(a, b, 1e-14 if name.rstrip("_") in SUMS else 0)


def test_most_operators_were_compared_with_differences():
    if len(ASKED) == len(DIFFERENTIABLE):               # if all were asked at all
        assert len(DIFFERENTIABLE) > 200
        assert [name for name, times in ASKED.items() if times == 0] == []


def view_like(x):
    """A copy with the same strides."""
    room = td.zeros(max(1, 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()) if n)), dtype=x.dtype)
    y = room.as_strided(x.shape, x.stride())
    y.copy_(x)
    return y


TABLE = (Path(__file__).resolve().parents[2] / "generated/include/treadle/elementwise_rows.h").read_text()
ELEMENTWISE = [name for name in dict.fromkeys(re.findall(r"(?m)^[A-Z_]+\((\w+),", TABLE)) if name in ROWS and not name.endswith("_")]
BINARY = [name for name in ELEMENTWISE if sum(p.operand for p in ROWS[name].parameters) == 2]


def on(name, *operands):
    try:
        return getattr(td._C, name)(*operands)
    except REFUSALS:
        return None


@pytest.mark.parametrize("name", ELEMENTWISE)
@examples(4)
@given(data=st.data())
def test_a_value_does_not_depend_on_its_place(name, data):
    """f(x[permutation]) = f(x)[permutation], and of a part the part."""
    row = ROWS[name]
    n = data.draw(st.integers(1, 70))
    many = [filled(data, [n], data.draw(st.sampled_from([*FLOATS, td.int64]))) for p in row.parameters if p.operand]
    y = on(name, *many)
    if y is None:
        return
    order = td.tensor(data.draw(st.permutations(range(n))))
    same(on(name, *(x[order] for x in many)), y[order])
    start = data.draw(st.integers(0, n - 1))
    same(on(name, *(x[start:] for x in many)), y[start:])


@pytest.mark.parametrize("name", BINARY)
@examples(6)
@given(data=st.data())
def test_broadcasting_is_expanding_first(name, data):
    shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = data.draw(st.sampled_from(ALL))

    def part():
        cut = data.draw(st.integers(0, len(shape)))
        return filled(data, [1 if data.draw(st.booleans()) else n for n in shape[cut:]], dtype)
    a, b = part(), part()
    y = on(name, a, b)
    if y is None:
        return
    full = td.broadcast_shapes(a.shape, b.shape)
    assert tuple(y.shape) == tuple(full)
    same(y, on(name, a.expand(full).contiguous(), b.expand(full).contiguous()))


# --- round trips --------------------------------------------------------------------

def axis(data, x):
    return data.draw(st.integers(-x.ndim, x.ndim - 1), label="axis")


def twisted(data, x):
    order = data.draw(st.permutations(range(x.ndim)))
    return x.permute(order).permute([order.index(d) for d in range(x.ndim)])


def rolled(data, x):
    d, k = axis(data, x), data.draw(st.integers(-7, 7))
    return x.roll(k, d).roll(-k, d)


def gathered(data, x):
    d = axis(data, x)
    values, order = x.sort(d)
    same(td.gather(x, d, order), values)
    same(td.gather(x, d, td.argsort(x, d)).sort(d)[0], values)
    return td.gather(values, d, td.argsort(order, d))


def windows(data, x):
    d = axis(data, x)
    size = data.draw(st.integers(1, x.shape[d]))
    parts = x.unfold(d, size, size)
    whole = x.shape[d] // size * size
    back = parts.movedim(-1, d % x.ndim + 1).reshape([*x.shape[:d % x.ndim], whole, *x.shape[d % x.ndim + 1:]])
    return td.cat([back, x.narrow(d, whole, x.shape[d] - whole)], d)


ROUND_TRIPS = {
    "reshape": lambda data, x: x.reshape(-1).reshape(x.shape),
    "flatten and unflatten": lambda data, x: x.flatten(0, -1).unflatten(0, x.shape),
    "permute": twisted, "roll": rolled, "sort and gather": gathered, "windows": windows,
    "transpose": lambda data, x: (lambda a, b: x.transpose(a, b).transpose(b, a))(axis(data, x), axis(data, x)),
    "movedim": lambda data, x: (lambda a, b: x.movedim(a, b).movedim(b, a))(axis(data, x), axis(data, x)),
    "flip": lambda data, x: (lambda d: x.flip(d).flip(d))(axis(data, x)),
    "rot90": lambda data, x: x if x.ndim < 2 else (lambda k: x.rot90(k).rot90(-k))(data.draw(st.integers(-5, 5))),
    "split and cat": lambda data, x: (lambda d: td.cat(x.split(data.draw(st.integers(1, 6)), d), d))(axis(data, x)),
    "chunk and cat": lambda data, x: (lambda d: td.cat(x.chunk(data.draw(st.integers(1, 6)), d), d))(axis(data, x)),
    "tensor_split and cat": lambda data, x: (lambda d: td.cat(x.tensor_split(data.draw(st.integers(1, 6)), d), d))(axis(data, x)),
    "unbind and stack": lambda data, x: (lambda d: td.stack(x.unbind(d), d))(axis(data, x)),
    "unsqueeze and squeeze": lambda data, x: (lambda d: x.unsqueeze(d).squeeze(d))(axis(data, x)),
    "pad and crop": lambda data, x: td.nn.functional.pad(td.nn.functional.pad(x, [2, 1]), [-2, -1]),
    "take and put": lambda data, x: x.take(td.arange(x.numel())).reshape(x.shape),
    "nonzero and index": lambda data, x: td.zeros_like(x).index_put(x.nonzero(as_tuple=True), x[x != 0]),
    "mask and scatter": lambda data, x: td.zeros_like(x).masked_scatter(x != 0, x.masked_select(x != 0)),
    "pickle": lambda data, x: pickle.loads(pickle.dumps(x)), "numpy": lambda data, x: td.from_numpy(x.numpy()),
    "numpy copied": lambda data, x: td.tensor(x.numpy()), "tolist": lambda data, x: td.tensor(x.tolist(), dtype=x.dtype).reshape(x.shape),
    "dlpack": lambda data, x: td.from_dlpack(x), "clone": lambda data, x: x.clone(), "contiguous": lambda data, x: x.contiguous(),
    "double and back": lambda data, x: x.double().to(x.dtype), "deepcopy": lambda data, x: copy.deepcopy(x),
    "expand and sum of one": lambda data, x: x.unsqueeze(0).expand(3, *x.shape)[data.draw(st.integers(0, 2))],
    "repeat and narrow": lambda data, x: x.repeat(2, *[1] * (x.ndim - 1)).narrow(0, x.shape[0], x.shape[0]),
    "repeat_interleave and step": lambda data, x: x.repeat_interleave(3, 0)[1::3],
    "index by all": lambda data, x: x[td.arange(x.shape[0])], "write into zeros": lambda data, x: write(td.zeros_like(x), x),
}


def write(out, x):
    out[...] = x
    return out


@pytest.mark.parametrize("trip", ROUND_TRIPS)
@examples(15)
@given(data=st.data())
def test_there_and_back(trip, data):
    x = some(data, ALL, least=1, smallest=1)
    same(ROUND_TRIPS[trip](data, x), x)


@examples(30)
@given(data=st.data())
def test_pixels_and_patches_come_back(data):
    r, (n, c, h, w) = data.draw(st.integers(1, 3)), data.draw(st.tuples(*[st.integers(1, 3)] * 4))
    x = view_of(data, filled(data, [n, c * r * r, h, w], td.float64))
    same(td.nn.functional.pixel_unshuffle(td.nn.functional.pixel_shuffle(x, r), r), x)
    y = view_of(data, filled(data, [n, c, h * r, w * r], td.float64))
    same(td.nn.functional.fold(td.nn.functional.unfold(y, r, stride=r), (h * r, w * r), r, stride=r), y)


# --- algebra ---------------------------------------------------------------------------

def three(data, dtypes, shape=None):
    shape = shape or data.draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = data.draw(st.sampled_from(dtypes))
    return [view_of(data, filled(data, shape, dtype)) for _ in range(3)]


COMMUTATIVE = """add mul maximum minimum fmax fmin eq ne hypot logaddexp logical_and logical_or logical_xor
    bitwise_and bitwise_or bitwise_xor gcd lcm""".split()
ASSOCIATIVE = "maximum minimum fmax fmin logical_and logical_or bitwise_and bitwise_or bitwise_xor gcd".split()


@pytest.mark.parametrize("name", COMMUTATIVE)
@examples(15)
@given(data=st.data())
def test_commutes(name, data):
    a, b, _ = three(data, ALL)
    ab, ba = on(name, a, b), on(name, b, a)
    assert (ab is None) == (ba is None)
    if ab is not None:
        same(ab, ba)


@pytest.mark.parametrize("name", [*ASSOCIATIVE, "add", "mul"])
@examples(15)
@given(data=st.data())
def test_associates(name, data):
    a, b, c = three(data, ALL)          # of few bits: even sums and products are exact
    if on(name, a, b) is not None:
        same(on(name, on(name, a, b), c), on(name, a, on(name, b, c)))


@examples(30)
@given(data=st.data())
def test_sums_of_floats_associate_within_rounding(data):
    a, b, c = (td.rand(50, dtype=td.float32) * 10 ** data.draw(st.integers(-3, 3)) for _ in range(3))
    assert (((a + b) + c) - (a + (b + c))).abs().le(2 * td.finfo(td.float32).eps * (a.abs() + b.abs() + c.abs())).all()


LAWS = {
    "distributive": (FLOATS + WHOLE, lambda a, b, c: (a * (b + c), a * b + a * c)),
    "minus is plus the negative": (FLOATS + (td.int64, td.int32), lambda a, b, c: (a - b, a + -b)),
    "difference of squares": (FLOATS + (td.int64,), lambda a, b, c: ((a - b) * (a + b) + 0, a.square() - b.square())),
    "quotient and rest": (FLOATS + (td.int64, td.int32), lambda a, b, c: (
        lambda d: (a.floor_divide(d) * d + a.remainder(d) + 0, a + 0))(b.abs() + 1)),
    "fmod and trunc": (FLOATS + (td.int64,), lambda a, b, c: (
        lambda d: (td.div(a, d, rounding_mode="trunc") * d + a.fmod(d) + 0, a + 0))(b.abs() + 1)),
    "De Morgan, logical": (ALL, lambda a, b, c: (~(a.bool() & b.bool()), ~a.bool() | ~b.bool())),
    "De Morgan, bits": (WHOLE + (td.bool,), lambda a, b, c: (~(a | b), ~a & ~b)),
    "xor twice": (WHOLE + (td.bool,), lambda a, b, c: ((a ^ b) ^ b, a)),
    "not less is greater or equal": (ALL, lambda a, b, c: (~(a < b), a >= b)),
    "not equal": (ALL, lambda a, b, c: (~(a == b), a != b)),
    "max and min make both": (FLOATS + WHOLE, lambda a, b, c: (td.maximum(a, b) + td.minimum(a, b), a + b)),
    "absorption": (FLOATS + WHOLE, lambda a, b, c: (td.maximum(a, td.minimum(a, b)) + 0, a + 0)),
    "median of three": (FLOATS + WHOLE, lambda a, b, c: (
        td.maximum(td.minimum(a, b), td.minimum(td.maximum(a, b), c)), td.stack([a, b, c]).sort(0)[0][1])),
    "where": (ALL, lambda a, b, c: (td.where(a < b, a, b), td.where(a >= b, b, a))),
    "masked_fill is where": (ALL, lambda a, b, c: (a.masked_fill(b > c, 1), td.where(b > c, td.ones_like(a), a))),
    "sign times size": (FLOATS + (td.int64, td.int32), lambda a, b, c: (a.sign() * a.abs() + 0, a + 0)),
    "lerp's ends": (FLOATS, lambda a, b, c: (td.lerp(a, b, 0.0) + 0, a + 0)),
    "lerp from the other end": (FLOATS, lambda a, b, c: (td.lerp(a, b, 0.25), td.lerp(b, a, 0.75))),
    "addcmul": (FLOATS + (td.int64,), lambda a, b, c: (td.addcmul(a, b, c, value=2), a + 2 * b * c)),
    "clamp": (FLOATS + WHOLE, lambda a, b, c: (a.clamp(1, 2), td.minimum(td.maximum(a, td.ones_like(a)), td.full_like(a, 2)))),
    "shift": (WHOLE, lambda a, b, c: ((a << 2) >> 2, a)),
    "relu is half of the sum with its size": (FLOATS, lambda a, b, c: (td.relu(a) + 0, (a + a.abs()) / 2 + 0)),
}


@pytest.mark.parametrize("law", LAWS)
@examples(15)
@given(data=st.data())
def test_law(law, data):
    dtypes, sides = LAWS[law]
    left, right = sides(*three(data, dtypes))
    same(left, right)


IDEMPOTENT = ["abs", "floor", "ceil", "round", "trunc", "sign", "relu", "relu6", "nan_to_num", "contiguous", "tril", "triu", "detach",
              "isfinite", "flatten", "squeeze"]
IDEMPOTENT_BY = {"clamp": lambda x: x.clamp(-1, 1), "sort": lambda x: x.sort(-1)[0], "cummax": lambda x: x.cummax(-1)[0],
                 "hardtanh": td.nn.functional.hardtanh, "unique": lambda x: x.unique(), "amax": lambda x: x.amax(-1, keepdim=True),
                 "sum_to_size": lambda x: x.sum_to_size(x.shape)}
INVOLUTIONS = {"neg": td.neg, "not": lambda x: ~x if not x.is_floating_point() else x, "flip": lambda x: x.flip(-1),
               "transpose": lambda x: x.transpose(0, -1), "rot90": lambda x: x.rot90(2) if x.ndim > 1 else x, "logical_not": lambda x:
               x.logical_not() if x.dtype is td.bool else x}


@pytest.mark.parametrize("name", [*IDEMPOTENT, *IDEMPOTENT_BY])
@examples(10)
@given(data=st.data())
def test_twice_is_once(name, data):
    x = some(data, least=2, smallest=1)
    f = IDEMPOTENT_BY.get(name) or (lambda x: getattr(td._C, name)(x))
    try:
        once = f(x)
    except REFUSALS:
        return
    if name in ("isfinite",):
        once = once.to(x.dtype) if x.dtype is td.bool else f(once)
    same(f(once), once)


@pytest.mark.parametrize("name", INVOLUTIONS)
@examples(10)
@given(data=st.data())
def test_twice_is_nothing(name, data):
    x = some(data, FLOATS + (td.int64, td.int32) + ((td.bool, td.uint8) if name != "neg" else ()), least=1, smallest=1)
    same(INVOLUTIONS[name](INVOLUTIONS[name](x)), x)


PARTS = {
    "sum": (lambda x, d: x.sum(d), lambda a, b: a + b), "prod": (lambda x, d: x.prod(d), lambda a, b: a * b),
    "amax": (lambda x, d: x.amax(d), td.maximum), "amin": (lambda x, d: x.amin(d), td.minimum),
    "any": (lambda x, d: x.any(d), td.logical_or), "all": (lambda x, d: x.all(d), td.logical_and),
    "count_nonzero": (lambda x, d: x.count_nonzero(d), lambda a, b: a + b), "nansum": (lambda x, d: x.nansum(d), lambda a, b: a + b),
    "logsumexp": (lambda x, d: x.double().logsumexp(d), td.logaddexp), "last of cumsum": (lambda x, d: x.cumsum(d).select(d, -1), lambda a, b: a + b),
    "norm squared": (lambda x, d: td.linalg.vector_norm(x.double(), 2, d).square(), lambda a, b: a + b),
}


@pytest.mark.parametrize("name", PARTS)
@examples(15)
@given(data=st.data())
def test_the_parts_make_the_whole(name, data):
    whole, join = PARTS[name]
    x = some(data, least=1, most=3, smallest=2)
    d = axis(data, x)
    at = data.draw(st.integers(1, x.shape[d] - 1))
    exact = name not in ("prod", "logsumexp", "norm squared")
    same(join(whole(x.narrow(d, 0, at), d), whole(x.narrow(d, at, x.shape[d] - at), d)), whole(x, d), 0 if exact else 1e-5)


MONOTONE = """exp exp2 expm1 log1p log log2 log10 sqrt tanh sigmoid erf atan asinh sinh floor ceil round trunc sign relu relu6 softsign
    logsigmoid selu elu leaky_relu hardtanh square_of_positive cumsum_of_positive""".split()


@pytest.mark.parametrize("name", MONOTONE)
@examples(10)
@given(data=st.data())
def test_order_is_kept(name, data):
    dtype = data.draw(st.sampled_from(FLOATS))
    x = filled(data, [data.draw(st.integers(2, 99))], dtype, 0.125 if name in ("log", "log2", "log10", "log1p", "sqrt") else -3.0).sort()[0]
    f = {"square_of_positive": lambda x: x.abs().sort()[0].square(), "cumsum_of_positive": lambda x: x.abs().cumsum(0)}
    y = (f.get(name) or getattr(td._C, name))(x)
    assert (y[1:] >= y[:-1]).all()


LINEAR = {
    "sum": lambda x: x.sum(-1), "mean": lambda x: x.mean(0), "cumsum": lambda x: x.cumsum(-1), "trace": lambda x: x.trace(),
    "diagonal": lambda x: x.diagonal(1), "diag_embed": td.diag_embed, "tril": lambda x: x.tril(-1), "pad": lambda x: td.nn.functional.pad(x, [1, 2]),
    "roll": lambda x: x.roll(2, 1), "index_add": lambda x: td.zeros(3, x.shape[1], dtype=x.dtype).index_add(0, td.arange(x.shape[0]) % 3, x),
    "unfold": lambda x: td.nn.functional.unfold(x[None, None], 2), "gather": lambda x: x.gather(1, td.zeros(x.shape[0], 3, dtype=td.int64)),
    "interpolate": lambda x: td.nn.functional.interpolate(x[None, None], size=(5, 7), mode="bilinear"), "matmul": lambda x: x @ x.new_ones(x.shape[1], 3),
    "kron": lambda x: td.kron(x, td.eye(2, dtype=x.dtype)), "diff": lambda x: td.diff(x), "einsum": lambda x: td.einsum("ij->ji", x),
    "masked": lambda x: x.masked_fill(td.ones(x.shape[1]) > 2, 0.0), "conv2d": lambda x: td.nn.functional.conv2d(
        x[None, None], td.arange(4.0, dtype=x.dtype).reshape(1, 1, 2, 2), padding=1)}


@pytest.mark.parametrize("name", LINEAR)
@examples(10)
@given(data=st.data())
def test_linear(name, data):
    shape = data.draw(st.lists(st.integers(2, 5), min_size=2, max_size=2))
    x, y = (view_of(data, filled(data, shape, td.float64)) for _ in "xy")
    a, f = data.draw(st.sampled_from([2.0, -0.5, 3.0])), LINEAR[name]
    same(f(a * x + y), a * f(x) + f(y), 1e-14)


BACKWARDS = [name for name in ROWS if name.endswith("_backward") and ROWS[name].parameters[0].name == "grad" and name in DIFFERENTIABLE]


@pytest.mark.parametrize("name", BACKWARDS)
@examples(5)
@given(data=st.data())
def test_backward_operators_are_linear_in_the_gradient(name, data):
    row = ROWS[name]
    call, operands = drawn_call(data, row)
    if call is None:
        return
    g, rest = operands[0], operands[1:]
    h = td.rand(g.shape, dtype=g.dtype)
    for both, one, other in zip(*(run(row, call, [x, *rest]) for x in (2.0 * g + h, g, h))):
        same(both, 2.0 * one + other, 1e-13)


@examples(40)
@given(data=st.data())
def test_products_of_matrices(data):
    n, k, m = (data.draw(st.integers(0, 6)) for _ in range(3))
    dtype = data.draw(st.sampled_from([*FLOATS]))
    a, b = (view_of(data, filled(data, shape, dtype)) for shape in ([n, k], [k, m]))
    ab = a @ b                                      # of few bits: exact
    same((b.t() @ a.t()).t() + 0, ab + 0)
    same(a @ td.eye(k, dtype=dtype) + 0, a + 0)
    same(td.einsum("ik,kj->ij", a, b) + 0, ab + 0)
    same((a.unsqueeze(-1) * b.unsqueeze(0)).sum(1) + 0, ab + 0)
    same(td.stack([a @ b[:, j] for j in range(m)], 1) + 0 if m else ab, ab + 0 if m else ab)
    same(td.bmm(a[None], b[None])[0] + 0, ab + 0)
    same(td.linalg.vector_norm(ab - td.tensordot(a, b, 1)), td.zeros((), dtype=dtype))
    if n and k:
        same(td.trace(a @ a.t()), a.square().sum())


@examples(30)
@given(data=st.data())
def test_order_does_not_matter_to_what_has_none(data):
    x = some(data, ALL, least=1, most=1, smallest=1)
    y = x[td.tensor(data.draw(st.permutations(range(len(x)))))]
    for f in (td.sum, td.amax, td.amin, td.count_nonzero, lambda x: x.sort()[0], lambda x: x.unique(), td.median, lambda x: x.sort(descending=True)[0]):
        same(f(x), f(y))
    same(x.double().softmax(0).sort()[0], y.double().softmax(0).sort()[0], 1e-15)
    same(x.double().std(), y.double().std(), 1e-14)


@examples(30)
@given(data=st.data())
def test_every_dtype_converts_there_and_back(data):
    x = some(data, (td.uint8,), smallest=1)
    for dtype in DTYPES:
        if dtype is not td.bool:
            same(x.to(dtype).to(td.uint8), x)
    same(x.bool(), x != 0)
