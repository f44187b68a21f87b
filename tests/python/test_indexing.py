# needs: package indexing
"""Subscripts of every kind, and operators at given places, against NumPy."""
import numpy as np
import pytest
import treadle as td


def make(a, layout=0):
    """A tensor of the values of `a`: plain, turned, every second, or expanded."""
    dtype = td.bool if a.dtype == bool else getattr(td, str(a.dtype))
    flat = td.tensor(a.ravel().tolist(), dtype=dtype)
    x = flat.reshape(a.shape)
    if layout == 1 and a.ndim > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == 2 and a.ndim > 0:
        return td.stack([x, x], -1)[..., 0]
    return x


def same(x, a):
    a = np.asarray(a)
    assert tuple(x.shape) == a.shape
    np.testing.assert_allclose(np.array(x.tolist(), dtype=float).reshape(a.shape),
                               a.astype(float), rtol=1e-12, atol=1e-12)


def random_key(rng, shape):
    """A subscript for `shape`, for NumPy, and the same without its integers.

    PyTorch takes integers first, as views, and lets lists fall where they
    fall afterwards; NumPy counts an integer as a list.  So the reference
    takes the integers in a first step."""
    first, rest, d = [], [], 0
    lists = int(rng.integers(1, 4))
    size = int(rng.integers(1, 4))
    while d < len(shape):
        kind = rng.integers(0, 7)
        n = shape[d]
        if kind == 0:
            first.append(int(rng.integers(-n, n)))
            rest.append(("int", first[-1]))
            d += 1
            continue
        if kind == 1:
            rest.append(("key", None))
            continue
        if kind in (2, 3) and lists > 0:
            lists -= 1
            count = size if rng.random() < .8 else 1
            pick = rng.integers(-n, n, count if rng.random() < .7 else (2, count))
            rest.append(("key", pick))
        elif kind == 4 and lists > 0:
            lists = 0
            k = min(int(rng.integers(1, 3)), len(shape) - d)
            mask = np.zeros(shape[d:d + k], bool)
            for place in rng.choice(mask.size, min(size, mask.size), replace=False):
                mask.flat[place] = True
            if mask.sum() != size:      # would not broadcast
                mask[...] = False
                mask.flat[0] = True
            first += [slice(None)] * k
            rest.append(("key", mask))
            d += k
            continue
        elif kind == 5:
            break
        else:
            a, b = sorted(rng.integers(-n - 1, n + 2, 2).tolist())
            rest.append(("key", slice(a, b, int(rng.integers(1, 3)))))
        first.append(slice(None))
        d += 1
    if d < len(shape) and rng.random() < .5:
        rest.append(("key", Ellipsis))
    whole = tuple(k for _, k in rest)
    return whole, (*first, Ellipsis), tuple(k for kind, k in rest if kind == "key")


def ours(rng, key):
    """Arrays of a key as tensors, lists or arrays; sometimes no tuple."""
    def one(k):
        if not isinstance(k, np.ndarray):
            return k
        how = rng.integers(0, 3)
        return k if how == 0 else k.tolist() if how == 1 else make(k)
    key = tuple(map(one, key))
    return key[0] if len(key) == 1 and rng.random() < .5 else key


def cases(n, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 5)).tolist())
        a = rng.standard_normal(shape)
        key, first, rest = random_key(rng, shape)
        try:
            read = a[first][rest]
        except IndexError:              # lists that do not broadcast
            with pytest.raises(IndexError):
                make(a)[key]
            continue
        if read.ndim <= 8:
            yield rng, a, key, first, rest, read


def test_reading_with_random_subscripts():
    for rng, a, key, _, _, read in cases(1500, 1):
        same(make(a, rng.integers(0, 3))[ours(rng, key)], read)


def test_writing_with_random_subscripts():
    for rng, a, key, first, rest, read in cases(1500, 2):
        x = make(a, rng.integers(0, 3))
        part = list(read.shape)
        for d in range(len(part)):
            part[d] = 1 if rng.random() < .3 else part[d]
        value = rng.standard_normal(part[rng.integers(0, len(part) + 1):])
        if rng.random() < .2:
            x[ours(rng, key)] = 2.5
            value = 2.5
        else:
            x[ours(rng, key)] = make(np.asarray(value))
        a[first][rest] = value
        same(x, a)


def test_gradients_of_random_subscripts():
    for rng, a, key, first, rest, read in cases(600, 3):
        x = make(a).requires_grad_()
        w = rng.standard_normal(read.shape)
        (x[ours(rng, key)] * make(np.asarray(w))).sum().backward()
        g = np.zeros_like(a)
        np.add.at(g[first], rest, w)
        same(x.grad, g)


def test_new_axes_beside_lists_never_make_nine_dimensions_on_the_way():
    a = np.arange(32.0).reshape(2, 1, 2, 2, 1, 1, 2, 2)
    for key in (([0, 1], None, [0, 0]), (None, [0, 1], [0, 0]), (..., [0, 1], [1, 0], None),
                (slice(None), [0], None, [1, 0]), ([0, 1], [0, 0], None)):
        read = a[key]
        x = make(a).requires_grad_()
        same(x.detach()[key], read)
        (x[key] * make(read)).sum().backward()
        g = np.zeros_like(a)
        np.add.at(g, key, read)
        same(x.grad, g)
        value = np.random.default_rng(4).standard_normal(read.shape)
        for part in (value, value[..., :1], value[(0,) * read.ndim], value[0]):
            y, b = make(a), a.copy()
            y[key], b[key] = make(np.asarray(part)), part
            same(y, b)
    x = td.zeros(3, 4)
    with pytest.raises(RuntimeError, match="expand"):
        x[[0, 1, 2], None] = td.ones(3, 4)      # no place of its own for each of the three
    assert x.sum().item() == 0


def test_subscripts_that_need_care():
    x = td.arange(12).reshape(3, 4)
    assert x[td.tensor(1)].tolist() == [4, 5, 6, 7]
    assert x[td.tensor([1])].tolist() == [[4, 5, 6, 7]]
    assert x[np.array([2, 0]), 1].tolist() == [9, 1]
    assert x[True].shape == (1, 3, 4) and x[False].shape == (0, 3, 4)
    assert x[td.tensor(True), 0].shape == (1, 4)
    assert x[[]].shape == (0, 4) and x[[], 1].shape == (0,)
    assert x[range(2), [0, 1]].tolist() == [0, 5]
    assert x[td.tensor([1, 0, 1], dtype=td.uint8)].shape == (2, 4)
    assert x[td.tensor([0, 2], dtype=td.int32)].shape == (2, 4)
    y = td.zeros(2, 3, 4)
    assert y[0, :, [1, 2]].shape == (3, 2)          # NumPy: (2, 3)
    assert y[[0, 1], :, [1, 2]].shape == (2, 3)
    assert y[:, [0, 1], [1, 2]].shape == (2, 2)
    assert y[[[0], [1]], :, [1, 2]].shape == (2, 2, 3)
    y[0] = td.ones(1, 1, 3, 4)
    assert y.sum().item() == 12
    y[y > 0] = 3
    assert y.sum().item() == 36
    a, b = td.tensor([[1., 2.], [3., 4.]]), [1, 0]
    a[b] = a[[0, 1]]
    assert a.tolist() == [[3, 4], [1, 2]]
    a[0, a[0] > 3] = td.tensor(7)
    assert a.tolist() == [[3, 7], [1, 2]]


@pytest.mark.parametrize("key, error, words", [
    (([0, 1], [0, 1, 2]), IndexError, "broadcast"),
    ([0, 3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    ([-4], IndexError, "index -4 is out of bounds"),
    (([0], [4]), IndexError, "index 4 is out of bounds for dimension 1 with size 4"),
    (([0], [0], [0]), IndexError, "too many indices"),
    ([0.5], IndexError, "integers or bools"),
    ("a", IndexError, "not str"),
    ([True, False], IndexError, "mask has 2 entries in dimension 0"),
    (slice(None, None, -1), ValueError, "greater than zero"),
])
def test_subscripts_that_are_refused(key, error, words):
    x = td.zeros(3, 4)
    with pytest.raises(error, match=words):
        x[key]
    with pytest.raises(error, match=words):
        x[key] = 1


def test_values_that_do_not_fit():
    x = td.zeros(3, 4)
    with pytest.raises(RuntimeError, match="expand"):
        x[[0, 1]] = td.ones(3, 4)
    with pytest.raises(RuntimeError, match="the source is int64"):
        x[[0, 1]] = td.ones(2, 4, dtype=td.int64)
    with pytest.raises(RuntimeError, match="expanded"):
        td.zeros(1, 4).expand(3, 4)[[0, 1]] = 1


def test_functions_along_a_dimension():
    rng = np.random.default_rng(4)
    for _ in range(200):
        shape = rng.integers(1, 5, rng.integers(1, 4))
        a, d = rng.standard_normal(shape), int(rng.integers(0, len(shape)))
        x = make(a, rng.integers(0, 3))
        few = [int(rng.integers(1, n + 1)) for n in shape]
        few[d] = int(rng.integers(1, 6))
        k = rng.integers(0, shape[d], few)
        corner = a[tuple(slice(n) if e != d else slice(None) for e, n in enumerate(few))]
        same(td.gather(x, d - len(shape), make(k)), np.take_along_axis(corner, k, d))
        src, at = rng.standard_normal(few), list(np.indices(few))
        at[d] = k
        for op, how in ((np.add, "add"), (np.multiply, "multiply")):
            b = a.copy()
            op.at(b, tuple(at), src)
            same(x.scatter(d, make(k), make(src), reduce=how), b)
        b = a.copy()
        b[tuple(at)] = 2
        same(x.scatter(d, make(k), value=2), b)
        n = int(rng.integers(1, 5))
        k, part = rng.integers(0, shape[d], n), list(shape)
        part[d] = n
        src, b = rng.standard_normal(part), np.moveaxis(a.copy(), d, 0)
        np.add.at(b, k, 2 * np.moveaxis(src, d, 0))
        same(td.index_add(x, d, make(k), make(src), alpha=2), np.moveaxis(b, 0, d))
        mask = rng.random(shape) < .5
        same(td.masked_select(x, make(mask)), a[mask])
        same(td.nonzero(make(mask)), np.argwhere(mask))
        for one, other in zip(td.where(make(mask)), np.nonzero(mask)):
            same(one, other)
        k = rng.integers(-a.size, a.size, (2, 2))
        same(td.take(x, make(k)), np.take(a, k))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_every_dtype(dtype):
    a = np.array([[0, 1, 2], [3, 0, 1]]).astype(dtype)
    x, at = make(a), td.tensor([[0, 0], [2, 1]])
    assert x.dtype is getattr(td, dtype)
    same(x.gather(1, at), np.take_along_axis(a, np.array(at.tolist()), 1))
    same(x[[1, 0, 1]], a[[1, 0, 1]])
    same(x.scatter_add(1, at, x), {"bool": np.array([[1, 1, 1], [1, 0, 1]])}.get(
        dtype, np.array([[1, 1, 2], [3, 0, 4]])))
    same(td.index_fill(x, 0, td.tensor([0]), 1), np.array([[1, 1, 1], a[1]]).astype(dtype))
    half = td.tensor([1.5, 2.5]).half()
    assert half[[1, 0]].float().tolist() == [2.5, 1.5]


def test_empty_and_rank_nought():
    x, one, none = td.tensor(3.0), td.tensor(0), td.zeros(0, dtype=td.int64)
    assert x.gather(0, one).tolist() == 3 and x.gather(0, td.tensor([0, 0])).shape == (2,)
    assert x.scatter(0, one, 5.0).tolist() == 5 and x.take(one).tolist() == 3
    assert td.zeros(2, 3)[none].shape == (0, 3) and td.zeros(0, 3)[none].shape == (0, 3)
    assert td.nonzero(x).shape == (1, 0) and td.nonzero(td.zeros(0, 3)).shape == (0, 2)
    assert td.zeros(2).index_add(0, none, td.zeros(0)).tolist() == [0, 0]
    assert td.masked_select(td.ones(2, 3), td.tensor(False)).shape == (0,)
    with pytest.raises(IndexError):
        td.zeros(0, 3)[[0]]


def test_embedding_and_one_hot():
    F = td.nn.functional
    w = td.tensor([[1., 2.], [3., 4.], [5., 6.]], requires_grad=True)
    words = td.tensor([[0, 2], [2, 1]])
    y = F.embedding(words, w, padding_idx=-1)
    assert y.tolist() == [[[1, 2], [5, 6]], [[5, 6], [3, 4]]]
    (y * y).sum().backward()
    assert w.grad.tolist() == [[2, 4], [6, 8], [0, 0]]
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        F.embedding(td.tensor([3]), w)
    with pytest.raises(RuntimeError, match="padding_idx 3"):
        F.embedding(words, w, 3)
    table = td.tensor([[3., 4.], [.3, .4]])
    F.embedding(td.tensor([0, 1, 0]), table, max_norm=1.0)
    np.testing.assert_allclose(table.tolist(), [[.6, .8], [.3, .4]], rtol=1e-6)
    assert F.one_hot(td.tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert F.one_hot(td.tensor([[2]])).tolist() == [[[0, 0, 1]]]
    for bad, n in (([-1], 3), ([3], 3), ([], -1)):
        with pytest.raises(RuntimeError, match="classes"):
            F.one_hot(td.tensor(bad, dtype=td.int64), n)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: x.gather(0, td.tensor([[2]])), IndexError, "index 2 is out of bounds"),
    (lambda x: td.ones(3, 0).index_select(0, td.tensor([4])), IndexError, "index 4 is out of bounds"),
    (lambda x: td.ones(3, 0)[td.tensor([0, -4])], IndexError, "index -4 is out of bounds"),
    (lambda x: x.gather(0, td.tensor([[-1]])), IndexError, "index -1 is out of bounds"),
    (lambda x: x.gather(0, td.tensor([0])), RuntimeError, r"\[1\] does not fit"),
    (lambda x: x.gather(2, td.tensor([[0]])), IndexError, "dim"),
    (lambda x: x.gather(0, td.tensor([[0.]])), IndexError, "integers"),
    (lambda x: x.scatter(0, td.tensor([[0]]), x.long()), RuntimeError, "int64"),
    (lambda x: x.scatter(0, td.tensor([[0]]), 1., reduce="mean"), RuntimeError, "'mean'"),
    (lambda x: x.scatter(0, td.tensor([[0, 0]]), td.ones(1, 1)), RuntimeError, "source has 1"),
    (lambda x: x.index_add(0, td.tensor([0]), td.ones(2, 3)), RuntimeError, r"\[1, 3\]"),
    (lambda x: x.index_copy(0, td.tensor([[0]]), x), IndexError, "vector"),
    (lambda x: x.masked_select(x), RuntimeError, "'mask' must be bool"),
    (lambda x: x.masked_scatter(x > 0, td.ones(2)), RuntimeError, "6 places"),
    (lambda x: x.take(td.tensor([6])), IndexError, "index 6 is out of bounds"),
])
def test_arguments_that_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(td.ones(2, 3))


def test_scattering_nothing_keeps_the_graph():
    x = td.zeros(0, 3, requires_grad=True)
    index = td.zeros(0, 3, dtype=td.int64)
    for name in ("scatter", "scatter_add"):
        y = getattr(td.zeros(0, 3), name)(0, index, x)
        grad, = td.autograd.grad(y.sum(), x)
        assert grad.shape == (0, 3)
    y = td.ones(2).scatter(0, td.zeros(0, dtype=td.int64), td.ones(2))
    assert y.tolist() == [1.0, 1.0]


def test_numbers_of_rank_0_are_gathered_and_scattered():
    x, at = td.tensor(2.0, requires_grad=True), td.tensor(0)
    assert x.gather(0, at).shape == () and x.gather(0, at.reshape(1)).tolist() == [2.0]
    y = td.zeros(3).scatter_add(0, td.tensor(1), td.tensor([5.0, 6.0]))
    assert y.tolist() == [0.0, 5.0, 0.0]
    x.max(0)[0].backward()
    assert x.grad.tolist() == 1.0


def test_a_change_in_place_that_is_refused_changes_nothing():
    x = td.zeros(4, 3)
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        x[td.tensor([0, 1, 4])] = 1
    with pytest.raises(IndexError, match="scatter_: index 9 is out of bounds"):
        x.scatter_(1, td.tensor([[0, 1], [2, 9]]), 1.0)
    assert not x.any()
    n = td.arange(5)
    n[n.flip(0)] = n                        # an index that is written to is read first
    assert n.tolist() == [4, 3, 2, 1, 0]


def test_windows_and_parts_put_their_gradients_back():
    x = td.randn(2, 9, 4, dtype=td.float64, requires_grad=True)
    g = td.randn(2, 4, 4, 3, dtype=td.float64)
    x.unfold(1, 3, 2).backward(g)
    want = np.zeros((2, 9, 4))
    for i in range(4):
        want[:, 2 * i:2 * i + 3] += np.moveaxis(g.numpy()[:, i], -1, 1)
    assert np.allclose(x.grad.numpy(), want)


def test_one_number_of_another_dtype_goes_to_places_beside_a_new_axis():
    a = td.zeros(2, 2, dtype=td.float64)
    a[None, td.tensor([True, False])] = td.tensor(7)
    assert a.tolist() == [[7, 7], [0, 0]]
    with pytest.raises(RuntimeError, match=r"expected add\|multiply, got 'bad'"):
        td.zeros(2).scatter(0, td.tensor([0]), td.ones(1), reduce="bad")
