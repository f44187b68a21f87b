# needs: order statistics package
"""Sorting, selection, running totals and their gradients; the reference is NumPy in float64."""
import copy
import math
import pickle

import numpy as np
import pytest
import treadle as td

INF, NAN = math.inf, math.nan
DTYPES = {td.float32: np.float32, td.float64: np.float64, td.int64: np.int64,
          td.int32: np.int32, td.uint8: np.uint8, td.bool: np.bool_}
SHAPES = [(), (1,), (0,), (7,), (2, 3), (3, 0), (2, 5, 3), (61,), (3, 101)]


def elements(shape, dtype, few):
    """Numbers without pattern; with `few`, many of them equal."""
    rng = np.random.default_rng(len(shape) + 7 * few)
    if dtype in (np.float32, np.float64):
        a = rng.normal(size=shape) * 2
        return np.asarray(np.round(a) if few else a, dtype=dtype)
    a = rng.integers(0, 2 if dtype == np.bool_ else 5, size=shape)
    return np.asarray(a - (2 if dtype in (np.int64, np.int32) else 0), dtype=dtype)


def layouts(a, dtype):
    """The same elements contiguous, transposed, sliced; and expanded ones."""
    x = td.tensor(a.tolist(), dtype=dtype).reshape(a.shape)
    yield a, x
    if a.ndim > 1:
        yield a.swapaxes(0, -1), x.transpose(0, -1)
        yield a[:, ::2], x[:, ::2]
    if 0 < a.ndim < 3:
        yield np.broadcast_to(a, (2,) + a.shape), x.expand(2, *a.shape)


def array(x):
    x = x.detach()
    return np.array(x.tolist(), dtype=DTYPES[x.dtype]).reshape(tuple(x.shape))


def equal(x, a, exact=True):
    got = array(x)
    assert got.shape == a.shape and got.dtype == a.dtype, (got.shape, a.shape, got.dtype, a.dtype)
    if exact:
        np.testing.assert_array_equal(got, a)
    else:
        tolerance = 1e-12 if a.dtype == np.float64 else 4e-6
        np.testing.assert_allclose(got, a, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=[d for d in DTYPES], ids=str)
def cases(request):
    """(array, tensor, dimension) over shapes, layouts and dimensions."""
    dtype = request.param
    return [(b, x, dim) for shape in SHAPES for few in (False, True)
            for b, x in layouts(elements(shape, DTYPES[dtype], few), dtype)
            for dim in ({0, b.ndim - 1, -1} if b.ndim else {0})]


def along(function, a, dim):
    """NumPy's functions know no lines of rank-0 arrays."""
    return function(a.reshape(1), 0).reshape(()) if a.ndim == 0 else function(a, dim)


def test_the_median_of_nothing():
    assert td.ones(0, 3).median().isnan() and td.ones(2, 0).long().median() == 0


def test_sort_and_argsort(cases):
    for a, x, dim in cases:
        places = along(lambda v, d: np.argsort(v, axis=d, kind="stable"), a, dim)
        values = along(lambda v, d: np.sort(v, axis=d, kind="stable"), a, dim)
        result = td.sort(x, dim)
        equal(result.values, values)
        equal(result.indices, places)
        equal(x.argsort(dim), places)
        down = x.sort(dim=dim, descending=True, stable=True)
        equal(down[0], np.flip(values, dim) if a.ndim else values)


def test_equal_elements_keep_their_order():
    a = np.arange(100) * 7 % 4
    for descending in (False, True):
        values, places = td.tensor(a.tolist()).sort(descending=descending)
        p = array(places)
        for v in range(4):
            assert (np.diff(p[array(values) == v]) > 0).all()


def test_nan_is_largest_and_zeros_are_equal():
    x = td.tensor([NAN, 1, -INF, INF, -0.0, 0.0, -NAN])
    values, places = x.sort()
    assert places.tolist() == [2, 4, 5, 1, 3, 0, 6]
    assert math.copysign(1, values[1].item()) == -1
    assert x.sort(descending=True).indices.tolist() == [0, 6, 3, 1, 4, 5, 2]
    for n in (5, 70):
        for at in range(n):
            a = np.arange(n, dtype=np.float64)[::-1].copy()
            a[at] = NAN
            equal(td.from_numpy(a).sort().values, np.sort(a))


def test_extreme_integers_sort():
    ends = [2 ** 63 - 1, -2 ** 63, 0, -1, 2 ** 53 + 1, 2 ** 53]
    assert td.tensor(ends).sort().values.tolist() == sorted(ends)
    assert td.tensor(ends * 20).sort().values.tolist() == sorted(ends * 20)


def test_topk_and_kthvalue(cases):
    for a, x, dim in cases:
        n = a.shape[dim] if a.ndim else 1
        ordered = along(lambda v, d: np.sort(v, axis=d), a, dim)
        for k in {0, 1, n // 5, n} if a.ndim else {1}:
            for largest in (True, False):
                values, places = td.topk(x, k, dim, largest) if k <= n else (None, None)
                if values is None:
                    continue
                best = np.flip(ordered, dim) if largest and a.ndim else ordered
                best = best if a.ndim == 0 else np.take(best, range(k), dim)
                equal(values, best)
                if a.ndim and a.size:
                    equal(values, np.take_along_axis(a, array(places), dim))
        if n > 0:
            values, places = x.kthvalue(n // 2 + 1, dim, keepdim=True)
            equal(values, ordered if a.ndim == 0 else np.take(ordered, [n // 2], dim))


def test_median(cases):
    for a, x, dim in cases:
        n = a.shape[dim] if a.ndim else 1
        if n == 0:
            continue
        ordered = along(lambda v, d: np.sort(v, axis=d), a, dim)
        result = x.median(dim)
        equal(result.values, ordered if a.ndim == 0 else np.take(ordered, (n - 1) // 2, dim))
        if a.size:
            equal(x.median(), np.sort(a, axis=None)[(a.size - 1) // 2])


def test_median_and_nan():
    x = td.tensor([[1.0, NAN, 2, NAN], [1, 5, 3, 4]])
    values, places = x.median(1)
    assert math.isnan(values[0].item()) and places.tolist() == [1, 2]
    assert values[1].item() == 3
    assert math.isnan(x.median().item()) and math.isnan(td.zeros(0).median().item())


def test_mode():
    values, places = td.tensor([[3, 1, 1, 3, 2], [5, 5, 4, 4, 4]]).mode()
    assert values.tolist() == [1, 4] and places.tolist() == [2, 4]
    result = td.tensor([1.0, 2, 2, 3]).mode(0, True)
    assert result.values.tolist() == [2] and result.indices.tolist() == [2]


def test_running_sums_and_products(cases):
    for a, x, dim in cases:
        wide = a.astype(np.int64) if a.dtype.kind in "iub" else a
        exact = wide.dtype == np.int64
        work = wide if exact else wide.astype(np.float64)
        equal(td.cumsum(x, dim), along(np.cumsum, work, dim).astype(wide.dtype), exact)
        few = np.take(work, range(min(20, a.shape[dim])), dim) if a.ndim else work
        part = x.slice(dim, 0, 20) if a.ndim else x
        product = along(np.cumprod, few, dim).astype(wide.dtype)
        if exact:
            equal(part.cumprod(dim), product)
        else:
            np.testing.assert_allclose(array(part.cumprod(dim)), product, rtol=4e-6)
        equal(x.cumsum(dim, dtype=td.float64), along(np.cumsum, a.astype(np.float64), dim), False)


def test_running_extremes(cases):
    for a, x, dim in cases:
        for ours, theirs in ((td.cummax, np.maximum), (td.cummin, np.minimum)):
            values, places = ours(x, dim)
            equal(values, along(lambda v, d: theirs.accumulate(v, d), a, dim))
            if a.ndim and a.size:
                equal(values, np.take_along_axis(a, array(places), dim))


def test_running_extremes_and_nan():
    values, places = td.tensor([1.0, 1, NAN, 2, NAN, 0]).cummax(0)
    assert places.tolist() == [0, 1, 2, 2, 4, 4] and math.isnan(values[5].item())
    assert td.tensor([1.0, 1, NAN, 0]).cummin(0).indices.tolist() == [0, 1, 2, 2]


def test_logcumsumexp():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(3, 11)) * 300
    equal(td.from_numpy(a).logcumsumexp(1), np.logaddexp.accumulate(a, 1), False)
    assert td.tensor([-INF, -INF, 1]).logcumsumexp(0).tolist() == [-INF, -INF, 1]
    assert td.tensor([INF, 1, INF]).logcumsumexp(0).tolist() == [INF] * 3
    x = td.tensor([-INF, -INF, 1000.0, 1001], requires_grad=True)
    x.logcumsumexp(0)[-1].backward()
    assert x.grad.tolist() == pytest.approx([0, 0, 0.26894143, 0.73105854], rel=1e-4)


@pytest.mark.parametrize("zeros", [(), (1,), (0, 3), (2, 3)])
def test_gradients_of_products_with_zeros(zeros):
    a = np.array([1.5, -2.0, 0.5, 3.0, -1.0])
    a[list(zeros)] = 0
    x = td.from_numpy(a).requires_grad_()
    g = np.array([1.0, -2, 0.5, 3, 2])
    (x.cumprod(0) * td.from_numpy(g)).sum().backward()
    others = [sum(g[k] * np.prod(np.delete(a[:k + 1], i)) for k in range(i, 5)) for i in range(5)]
    assert x.grad.tolist() == pytest.approx(others)
    x.grad = None
    x.prod().backward()
    assert x.grad.tolist() == pytest.approx([np.prod(np.delete(a, i)) for i in range(5)])


def test_products(cases):
    for a, x, dim in cases:
        wide = a.astype(np.int64) if a.dtype.kind in "iub" else a.astype(np.float64)
        part = np.take(wide, range(min(12, a.shape[dim])), dim) if a.ndim else wide
        y = x.slice(dim, 0, 12) if a.ndim else x
        out = along(lambda v, d: np.prod(v, axis=d).reshape(v.sum(axis=d).shape), part, dim)
        out = out.astype(wide.dtype if wide.dtype == np.int64 else a.dtype)
        np.testing.assert_allclose(array(y.prod(dim)), out, rtol=1e-5)
        assert y.prod(dim, True).ndim == a.ndim
    assert td.zeros(0).prod().item() == 1 and td.tensor([2, 3], dtype=td.uint8).prod().dtype is td.int64


def test_recurrence_runs_both_ways():
    links, b = td.tensor([2.0, 3.0]), td.tensor([1.0, 10.0, 100.0])
    assert td.recurrence(links, b, 0).tolist() == [1, 12, 136]
    assert td.recurrence(links, b, 0, True).tolist() == [621, 310, 100]
    assert td.recurrence(td.zeros(0), td.zeros(0), 0).tolist() == []
    with pytest.raises(RuntimeError, match="recurrence.*links"):
        td.recurrence(b, b, 0)


GRADIENTS = {
    "sort": lambda x: x.sort(0, True)[0], "topk": lambda x: x.topk(2, 1, False)[0],
    "kthvalue": lambda x: x.kthvalue(2, -1, True)[0], "median": lambda x: x.median(),
    "median_dim": lambda x: x.median(0)[0], "cummax": lambda x: x.cummax(1)[0],
    "cummin": lambda x: x.cummin(-2)[0], "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(0), "logcumsumexp": lambda x: x.logcumsumexp(1),
    "prod": lambda x: x.prod(), "prod_dim": lambda x: x.prod(-1, keepdim=True)}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_in_every_layout(name):
    f = GRADIENTS[name]
    a = np.random.default_rng(5).normal(size=(3, 4)) + np.arange(12).reshape(3, 4) * 0.1
    x, y = td.from_numpy(a), td.from_numpy(a.T.copy())
    reference = None
    for leaf, view in ((x.requires_grad_(), lambda t: t), (y.requires_grad_(), lambda t: t.T)):
        out = f(view(leaf))
        seed = td.arange(out.numel(), dtype=td.float64).cos().reshape(out.shape)
        (out * seed).sum().backward()
        got = array(leaf.grad) if leaf is x else array(leaf.grad).T
        reference = got if reference is None else reference
        np.testing.assert_allclose(got, reference, rtol=1e-12)
    eps, flat = 1e-6, a.reshape(-1)
    for i in range(12):
        both = []
        for step in (eps, -eps):
            b = flat.copy()
            b[i] += step
            out = array(f(td.from_numpy(b.reshape(3, 4))))
            both.append((out * np.cos(np.arange(out.size).reshape(out.shape))).sum())
        assert reference.reshape(-1)[i] == pytest.approx((both[0] - both[1]) / 2 / eps, rel=1e-5, abs=1e-7)


def test_second_derivative_of_a_product():
    x = td.tensor([2.0, 0.0, 3.0], dtype=td.float64, requires_grad=True)
    g, = td.autograd.grad(x.prod(), x, create_graph=True)
    h, = td.autograd.grad(g[0], x)
    assert g.tolist() == [0, 6, 0] and h.tolist() == [0, 3, 0]


def test_searchsorted_and_bucketize():
    rng = np.random.default_rng(2)
    for dtype in (np.float64, np.int64):
        line = np.sort(rng.integers(0, 9, 13)).astype(dtype)
        values = rng.integers(-1, 11, size=(3, 5)).astype(dtype)
        s, v = td.from_numpy(line), td.from_numpy(values)
        for right, side in ((False, "left"), (True, "right")):
            expected = np.searchsorted(line, values, side)
            equal(td.searchsorted(s, v, right=right), expected)
            equal(td.searchsorted(s, v.T, side=side), expected.T)
            equal(td.bucketize(v, s, right=right), expected)
    lines = td.tensor([[1, 3, 5], [2, 4, 6]])
    assert td.searchsorted(lines, td.tensor([[3, 6], [3, 6]]), right=True).tolist() == [[2, 3], [1, 3]]
    assert td.searchsorted(td.tensor([1, 3, 5]), 3).tolist() == 1
    assert td.searchsorted(td.tensor([1, 3, 5]), td.tensor([2.5]), out_int32=True).dtype is td.int32
    assert td.searchsorted(td.tensor([1.0, NAN]), td.tensor([NAN, 2.0])).tolist() == [2, 1]
    with pytest.raises(RuntimeError, match="side"):
        td.searchsorted(td.tensor([1]), 1, right=True, side="left")
    with pytest.raises(RuntimeError, match="sorted line"):
        td.searchsorted(lines, td.tensor([3]))


def test_named_results():
    result = td.sort(td.tensor([2, 1]))
    assert isinstance(result, tuple) and result.indices.tolist() == [1, 0]
    assert repr(result) == "treadle.return_types.sort(\nvalues=tensor([1, 2]),\nindices=tensor([1, 0]))"
    values, indices = td.tensor([1.0, 3]).topk(1)
    assert values.tolist() == [3] and indices.tolist() == [1]


NAMED = {"max": lambda x: x.max(1), "min": lambda x: td.min(x, 1), "median": lambda x: x.median(1), "nanmedian": lambda x: td.nanmedian(x, 1),
         "sort": lambda x: x.sort(), "topk": lambda x: x.topk(2), "mode": lambda x: x.mode(), "kthvalue": lambda x: x.kthvalue(1),
         "cummax": lambda x: x.cummax(1), "cummin": lambda x: x.cummin(1), "aminmax": lambda x: x.aminmax()}


def test_the_larger_of_two_by_name():
    a, b, out = td.tensor([1.0, 5]), td.tensor([2.0, 3]), td.empty(2)
    assert td.max(a, other=b).tolist() == [2, 5] and a.min(other=b).tolist() == [1, 3]
    assert td.max(a, b, out=out) is out and out.tolist() == [2, 5]


@pytest.mark.parametrize("name", NAMED)
def test_named_results_are_pickled_and_copied_under_pytorchs_names(name):
    result = NAMED[name](td.tensor([[1.0, 3, 2], [6, 5, 4]]))
    kind = type(result)
    assert kind is getattr(td.return_types, name) and (kind.__module__, kind.__name__) == ("treadle.return_types", name)
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(again) is kind and [x.tolist() for x in again] == [x.tolist() for x in result]
    assert repr(result).startswith(f"treadle.return_types.{name}(\n{kind.__match_args__[0]}=tensor(")


@pytest.mark.parametrize("call, error, words", [
    (lambda: td.tensor([3, 1]).sort(1), IndexError, "sort: dimension out of range"),
    (lambda: td.tensor([1.0]).topk(2), RuntimeError, "topk: k is 2"),
    (lambda: td.tensor([1.0]).topk(-1), RuntimeError, "topk: k is -1"),
    (lambda: td.tensor([1.0]).kthvalue(0), RuntimeError, "kthvalue"),
    (lambda: td.tensor([1.0]).kthvalue(2), RuntimeError, "kthvalue"),
    (lambda: td.zeros(2, 0).median(1), IndexError, "median: dimension 1 has size 0"),
    (lambda: td.zeros(2, 0).mode(), IndexError, "mode"),
    (lambda: td.tensor([1, 2]).logcumsumexp(0), RuntimeError, "logcumsumexp: needs floating"),
    (lambda: td.tensor([1.0]).cumsum(2), IndexError, "cumsum: dimension out of range"),
    (lambda: td.tensor([1.0]).cumsum(), TypeError, "dim"),
    (lambda: td.tensor([1], dtype=td.int8).sort(), (RuntimeError, NotImplementedError), "sort: .*int8"),
    (lambda: td.sort([1]), TypeError, "Tensor"),
])
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_results_do_not_depend_on_threads():
    td.manual_seed(1)
    x = td.randn(300, 211)
    before = td.get_num_threads()
    results = []
    for threads in (1, 3):
        td.set_num_threads(threads)
        results.append([t.tolist() for t in (*x.sort(0), x.cumsum(1), *x.topk(9), x.prod(0))])
    td.set_num_threads(before)
    assert results[0] == results[1]
