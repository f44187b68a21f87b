# needs: statistics package
"""Variance, norms, counts, draws and unique elements, with NumPy in float64 as the reference."""
import math

import numpy as np
import pytest
import treadle as td

F = td.nn.functional
INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(11)
LAYOUTS = {"contiguous": lambda a: (a, td.from_numpy(a.copy())),
           "transposed": lambda a: (a.swapaxes(0, -1), td.from_numpy(a.copy()).transpose(0, -1)),
           "sliced": lambda a: (a[:, ::2], td.from_numpy(a.copy())[:, ::2]),
           "expanded": lambda a: (np.broadcast_to(a, (2,) + a.shape), td.from_numpy(a.copy()).expand(2, *a.shape))}
DIMS = [None, 0, -1, (0, 1), (0, 2)]


def array(x):
    return np.array(x.detach().tolist()).reshape(tuple(x.shape))


def close(x, a, dtype=np.float64):
    a = np.asarray(a)
    assert tuple(x.shape) == a.shape, (tuple(x.shape), a.shape)
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(array(x), a, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


@pytest.fixture(params=LAYOUTS)
def pair(request, dtype):
    a = RNG.normal(size=(3, 5, 4)).astype(dtype)
    return LAYOUTS[request.param](a)


def test_moments(pair, dtype):
    a, x = pair
    wide = a.astype(np.float64)
    for dim in DIMS:
        for keepdim in (False, True):
            for correction in (0, 1, 1.5):
                v = wide.var(axis=dim, ddof=correction, keepdims=keepdim)
                m = wide.mean(axis=dim, keepdims=keepdim)
                close(td.var(x, dim, correction=correction, keepdim=keepdim), v, dtype)
                close(x.std(dim, correction=correction, keepdim=keepdim), np.sqrt(v), dtype)
                for ours, value in ((td.var_mean, v), (td.std_mean, np.sqrt(v))):
                    first, mean = ours(x, dim, correction=correction, keepdim=keepdim)
                    close(first, value, dtype)
                    close(mean, m, dtype)


def test_spellings_of_the_correction():
    x = td.tensor([1.0, 2, 6])
    for call in (x.var(0), x.var(), x.var(True), x.var(dim=0, unbiased=True), x.var([0], correction=1),
                 x.var(0, correction=None), td.var(x, dim=None), x.var(())):
        assert call.item() == 7
    for call in (x.var(False), x.var(0, False), x.var(unbiased=False), td.var(x, False), x.var(correction=0)):
        assert call.item() == pytest.approx(14 / 3)
    assert x.var(0, True, True).shape == (1,)
    assert x.var(correction=0.5).item() == pytest.approx(14 / 2.5)
    with pytest.raises(TypeError, match="var"):
        x.var(0, unbiased=True, correction=0)


def test_corners_of_the_variance():
    assert math.isnan(td.tensor([1.0]).var().item()) and math.isnan(td.tensor(1.0).std(0).item())
    assert td.tensor([1.0]).var(unbiased=False).item() == 0
    assert all(map(math.isnan, td.zeros(2, 0).var(1).tolist())) and td.zeros(0, 2).var(1).shape == (0,)
    assert td.tensor([1.0, 2]).var(correction=5).item() == INF
    x = td.tensor([10001.0, 10000, 9999])
    assert x.var().item() == pytest.approx(1)
    y = td.full((4,), 3.0, requires_grad=True)
    y.std().backward()
    assert y.grad.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 2.5, 3, -1, -2, INF, -INF])
def test_norms(pair, dtype, p):
    a, x = pair
    wide = np.abs(a.astype(np.float64))
    for dim in DIMS:
        for keepdim in (False, True):
            if p == 0:
                norm = (wide != 0).sum(axis=dim, keepdims=keepdim)
            elif math.isinf(p):
                norm = (wide.max if p > 0 else wide.min)(axis=dim, keepdims=keepdim)
            else:
                norm = (wide ** p).sum(axis=dim, keepdims=keepdim) ** (1 / p)
            got = td.linalg.vector_norm(x, p, dim, keepdim)
            np.testing.assert_allclose(array(got), norm, rtol=1e-11 if dtype == np.float64 else 2e-4)
            assert tuple(got.shape) == norm.shape


def test_corners_of_norms():
    x = td.tensor([3.0, -4.0])
    for call in (x.norm(), x.norm("fro"), x.norm(None), td.norm(x, 2), td.linalg.norm(x), x.norm(p=2, dim=0)):
        assert call.item() == 5
    assert td.tensor([0.0, NAN, 2]).norm(0).item() == 2 and math.isnan(td.tensor([1.0, NAN]).norm().item())
    assert td.zeros(0).norm().item() == 0 and td.tensor([0.0, 4]).norm(-1).item() == 0
    assert td.tensor([3, 4]).norm(2, dtype=td.float64).dtype is td.float64
    for p in (0, 0.5, 1, 2, 3, INF):
        y = td.zeros(3, requires_grad=True)
        y.norm(p).backward()
        assert y.grad.tolist() == [0, 0, 0], p
    y = td.tensor([3.0, -3, 1], requires_grad=True)
    y.norm(INF).backward()
    assert y.grad.tolist() == [0.5, -0.5, 0]
    with pytest.raises(RuntimeError, match="norm: needs floating"):
        td.tensor([3, 4]).norm()
    with pytest.raises(RuntimeError, match="-1-norm of nothing"):
        td.zeros(0).norm(-1)
    with pytest.raises(IndexError, match="norm: dimension out of range"):
        x.norm("nuc")
    with pytest.raises(RuntimeError, match="Order 3"):
        td.linalg.norm(td.ones(2, 2), 3)


def test_normalize_and_cosine():
    x, y = td.randn(4, 3), td.randn(4, 3)
    a, b = array(x), array(y)
    close(F.normalize(x), a / np.linalg.norm(a, axis=1, keepdims=True), np.float32)
    close(F.normalize(x, p=1, dim=0), a / np.abs(a).sum(0), np.float32)
    assert F.normalize(td.zeros(1, 2)).tolist() == [[0, 0]]
    expected = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    close(F.cosine_similarity(x, y), expected, np.float32)
    assert td.cosine_similarity(td.ones(2, 3, 4), td.ones(3, 4), 1).shape == (2, 4)
    assert td.cosine_similarity(td.zeros(1, 2), td.ones(1, 2)).tolist() == [0]
    with pytest.raises(RuntimeError, match="cosine_similarity: needs floating"):
        td.cosine_similarity(td.tensor([[1]]), td.tensor([[1]]))


def test_counting():
    x = td.tensor([[0, 1.0, NAN], [0, 0, -2]])
    assert td.count_nonzero(x).item() == 3 and x.count_nonzero(0).tolist() == [0, 1, 2]
    assert x.count_nonzero((0, 1)).dtype is td.int64 and td.tensor([True, False]).count_nonzero().item() == 1
    assert td.nansum(x).item() == -1 and td.nansum(td.tensor([1, 2])).dtype is td.int64
    assert td.nanmean(x, 1, True).tolist() == [[0.5], [pytest.approx(-2 / 3)]]
    assert math.isnan(td.nanmean(td.tensor([NAN])).item())
    low, high = td.aminmax(td.tensor([[3, 1], [2, 5]]), dim=1)
    assert low.tolist() == [1, 2] and high.tolist() == [3, 5]
    assert td.aminmax(td.tensor([3.0, 1])).max.item() == 3
    with pytest.raises(RuntimeError, match="nanmean"):
        td.nanmean(td.tensor([1]))
    with pytest.raises(IndexError, match="var: dimension out of range"):
        x.var(5)


def test_bincount_and_histc():
    assert td.bincount(td.tensor([1, 1, 3])).tolist() == [0, 2, 0, 1]
    assert td.bincount(td.tensor([1], dtype=td.uint8), minlength=3).tolist() == [0, 1, 0]
    assert td.bincount(td.tensor([], dtype=td.int64), minlength=2).tolist() == [0, 0]
    weighed = td.bincount(td.tensor([1, 1]), weights=td.tensor([0.5, 1]))
    assert weighed.tolist() == [0, 1.5] and weighed.dtype is td.float32
    assert td.bincount(td.tensor([0]), td.tensor([2])).dtype is td.float64
    for bad in (td.tensor([-1]), td.tensor([1.0]), td.tensor([[1]])):
        with pytest.raises(RuntimeError, match="bincount"):
            td.bincount(bad)
    a = RNG.normal(size=500).astype(np.float32)
    assert td.histc(td.from_numpy(a), 7, -2, 1).tolist() == np.histogram(a, 7, (-2, 1))[0].tolist()
    assert td.histc(td.tensor([1.0, 2, 1]), 4).tolist() == [2, 0, 0, 1]
    assert td.histc(td.tensor([1.0, 1]), 3).tolist() == [0, 2, 0]
    assert td.histc(td.tensor([NAN, 5, 3]), 2, 0, 3).tolist() == [0, 1]
    assert td.histc(td.zeros(0), 2).tolist() == [0, 0]
    for bad in (lambda: td.histc(td.tensor([INF]), 3), lambda: td.histc(td.ones(1), 0), lambda: td.histc(td.ones(1), 3, 2, 1)):
        with pytest.raises(RuntimeError, match="histc"):
            bad()


@pytest.mark.parametrize("make", [lambda s: RNG.integers(-3, 3, s), lambda s: RNG.integers(0, 2, s) > 0,
                                  lambda s: np.round(RNG.normal(size=s)), lambda s: RNG.integers(0, 9, s).astype(np.uint8)])
def test_unique(make):
    for shape in ((), (0,), (1,), (60,), (5, 7), (3, 4, 2), (0, 2)):
        a = np.asarray(make(shape))
        x = td.tensor(a.tolist(), dtype=td.from_numpy(np.zeros(1, a.dtype)).dtype).reshape(shape)
        for dim in [None, *range(a.ndim)]:
            if dim is not None and a.size == 0 and a.shape[dim] > 0:
                with pytest.raises(RuntimeError, match="unique"):
                    x.unique(dim=dim)
                continue
            values, inverse, counts = np.unique(a, return_inverse=True, return_counts=True, axis=dim)
            got = td.unique(x, return_inverse=True, return_counts=True, dim=dim)
            np.testing.assert_array_equal(array(got[0]), values)
            np.testing.assert_array_equal(array(got[1]).ravel(), inverse.ravel())
            assert got[1].shape == (x.shape if dim is None else (a.shape[dim],))
            assert got[2].tolist() == counts.tolist()
            assert td.unique(x, dim=dim).tolist() == values.tolist()


def test_unique_neighbours():
    values, counts = td.unique_consecutive(td.tensor([1, 1, 2, 1]), return_counts=True)
    assert values.tolist() == [1, 2, 1] and counts.tolist() == [2, 1, 1]
    rows, inverse = td.unique_consecutive(td.tensor([[1, 1], [2, 1], [2, 1]]), True, dim=0)
    assert rows.tolist() == [[1, 1], [2, 1]] and inverse.tolist() == [0, 1, 1]
    assert td.unique(td.tensor([NAN, 1.0, NAN]), return_counts=True)[1].tolist() == [1, 1, 1]
    assert td.unique(td.tensor([-0.0, 0.0])).shape == (1,)


def test_draws_follow_the_weights():
    w = td.tensor([[1.0, 0, 3, 4], [0, 0, 0, 2]])
    again = array(td.multinomial(w, 8000, replacement=True))
    shares = np.bincount(again[0], minlength=4) / 8000
    assert np.abs(shares - [0.125, 0, 0.375, 0.5]).max() < 0.02 and (again[1] == 3).all()
    once = array(td.multinomial(w[0].expand(8000, 4), 3))
    assert all(set(row) == {0, 2, 3} for row in once.tolist())
    first = np.bincount(once[:, 0], minlength=4) / 8000
    assert np.abs(first - [0.125, 0, 0.375, 0.5]).max() < 0.02
    second = np.bincount(once[once[:, 0] == 3, 1], minlength=4)
    assert abs(second[2] / second.sum() - 0.75) < 0.03
    assert td.multinomial(td.tensor([1.0, 0]), 2).tolist() == [0, 1]
    g = td.Generator()
    a = td.multinomial(w[0], 2, generator=g.manual_seed(3)).tolist()
    assert a == td.multinomial(w[0], 2, generator=g.manual_seed(3)).tolist()


@pytest.mark.parametrize("weights, n, again", [
    ([1.0, 0], 3, False), ([0.0, 0], 1, True), ([-1.0, 2], 1, False), ([NAN, 2], 1, True), ([INF, 2], 1, False),
    ([1, 2], 1, False), ([[[1.0]]], 1, False), (1.0, 1, True), ([1.0], 0, True), ([[1.0, 1], [0, 0]], 1, False)])
def test_weights_that_cannot_be_drawn_from(weights, n, again):
    with pytest.raises(RuntimeError, match="multinomial"):
        td.multinomial(td.tensor(weights), n, again)


CHECKED = {
    "var": lambda x: x.var(0), "std": lambda x: x.std((0, 1), correction=0), "var_mean": lambda x: td.var_mean(x, 1)[1],
    "norm": lambda x: x.norm(dim=1), "norm3": lambda x: x.norm(3), "norm_inf": lambda x: x.norm(INF, 0),
    "normalize": lambda x: F.normalize(x), "cosine": lambda x: td.cosine_similarity(x, x.flatten()[:4].reshape(1, 4)),
    "nansum": lambda x: td.nansum(x, 0), "nanmean": lambda x: td.nanmean(x), "aminmax": lambda x: td.aminmax(x, dim=0)[1]}


@pytest.mark.parametrize("name", CHECKED)
def test_gradients(name):
    x = td.from_numpy(RNG.normal(size=(3, 4))).requires_grad_()
    y = td.from_numpy(array(x).T.copy()).requires_grad_()
    assert td.autograd.gradcheck(CHECKED[name], (x,))
    CHECKED[name](x).sum().backward()
    CHECKED[name](y.T).sum().backward()
    close(y.grad.T, array(x.grad))


def test_norm_writes_where_it_is_told():
    x, out = td.tensor([3.0, 4.0]), td.zeros(())
    assert td.norm(x, out=out) is out and out.item() == 5
