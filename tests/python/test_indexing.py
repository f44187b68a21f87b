# needs: python indexing
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
