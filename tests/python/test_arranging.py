# needs: arranging layers
"""The operators of the chapter on arranging, against NumPy.

Each call meets several dtypes and four layouts; what NumPy lacks is compared
with numbers that PyTorch 1.13 gave.  Gradients are checked by differences.
"""
import itertools
import math

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import gradcheck

F = nn.functional
DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")
SHAPES = ((), (0,), (1,), (5,), (2, 3), (3, 0), (4, 4), (2, 3, 4), (1, 2, 3, 2))


def array(shape, dtype="float64"):
    a = np.cos(1.0 + 3.0 * np.arange(np.prod(shape))).reshape(shape) * 9
    return np.array(a > 0) if dtype == "bool" else np.array(a.astype(
        "int64" if "int" in dtype else dtype).astype(dtype))


def layouts(a):
    """The tensor of an array: dense, turned, with gaps, expanded."""
    yield td.from_numpy(a.copy()), a
    if a.ndim == 0:
        return
    turned = np.ascontiguousarray(a.swapaxes(0, -1))
    yield td.from_numpy(turned).transpose(0, -1), a
    wide = np.repeat(a, 2, -1)
    yield td.slice(td.from_numpy(wide), -1, 0, None, 2), a
    line = a[:1]
    yield td.from_numpy(line.copy()).expand((3, *a.shape[1:])) \
        if len(line) else td.from_numpy(a.copy()), \
        np.broadcast_to(line, (3, *a.shape[1:])) if len(line) else a


def same(ours, theirs, tolerance=0.0):
    if isinstance(ours, (tuple, list)):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for x, y in zip(ours, theirs):
            same(x, y, tolerance)
        return
    theirs = np.asarray(theirs)
    assert tuple(ours.shape) == theirs.shape
    assert str(ours.dtype) == f"treadle.{theirs.dtype}"
    np.testing.assert_allclose(ours.numpy(), theirs, tolerance, tolerance)


def circular(a, pads):
    return np.pad(a, pads, "wrap")


def widths(a, pad):
    pairs = [tuple(pad[i:i + 2]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (a.ndim - len(pairs)) + pairs[::-1]


ANY = {
    "tril": (lambda x, k: x.tril(k), np.tril, 2, [(-2,), (0,), (1,), (99,)]),
    "triu": (td.triu, np.triu, 2, [(-99,), (-1,), (0,), (2,)]),
    "flip": (td.flip, lambda a, d: np.flip(a, d), 2, [((0,),), ((0, -1),), ((),)]),
    "flip many": (lambda x: x.flip(1, -2), lambda a: np.flip(a, (1, -2)), 4, [()]),
    "roll": (td.roll, lambda a, s, d=None: np.roll(a, s, d), 1,
             [(1,), (-3, 0), ((1, 2), (0, -1)), (7, -1)]),
    "rot90": (td.rot90, lambda a, k, d: np.rot90(a, k, d), 2,
              [(k, d) for k in (-1, 0, 1, 2, 3, 6) for d in ((0, 1), (-1, 0))]),
    "fliplr": (td.fliplr, np.fliplr, 2, [()]),
    "flipud": (td.flipud, np.flipud, 1, [()]),
    "repeat": (lambda x, r: x.repeat(*r), np.tile, 1,
               [((2, 1, 1, 1),), ((1, 1, 2, 3),), ((0, 1, 1, 2),)]),
    "tile": (td.tile, np.tile, 0, [((2,),), ((2, 3),), ((),), ((1, 1),)]),
    "repeat_interleave": (td.repeat_interleave, np.repeat, 0, [(2,), (0,), (1,)]),
    "repeat_interleave dim": (lambda x, n, d: x.repeat_interleave(n, dim=d),
                              np.repeat, 1, [(3, 0), (2, -1)]),
    "diagonal": (td.diagonal, np.diagonal, 2, [(0,), (1, -1, 0), (-2, 0, 1), (9,)]),
    "movedim": (td.movedim, np.moveaxis, 2,
                [(0, -1), (-1, 0), ((0, 1), (1, 0))]),
    "swapaxes": (td.swapaxes, np.swapaxes, 2, [(0, -1)]),
    "narrow": (lambda x: x.narrow(-1, 1, 2), lambda a: a[..., 1:3], 9, [()]),
    "hstack": (lambda x: td.hstack([x, x]), lambda a: np.hstack([a, a]), 0, [()]),
    "vstack": (lambda x: td.vstack([x, x]), lambda a: np.vstack([a, a]), 0, [()]),
    "dstack": (lambda x: td.dstack([x, x]), lambda a: np.dstack([a, a]), 0, [()]),
    "column_stack": (lambda x: td.column_stack([x, x]),
                     lambda a: np.column_stack([a, a]), 1, [()]),
    "atleast_3d": (td.atleast_1d, np.atleast_1d, 0, [()]),
    "atleast_2d": (td.atleast_2d, np.atleast_2d, 0, [()]),
    "unbind": (lambda x: x.unbind(), list, 1, [()]),
    "tensor_split": (td.tensor_split, lambda a, at: np.array_split(a, at), 1,
                     [(1,), (3,), ((1, 2),), ((-1, 9),)]),
    "broadcast_to": (td.broadcast_to, np.broadcast_to, 9, [()]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ANY)
def test_arrangements_match_numpy(name, dtype):
    ours, theirs, rank, calls = ANY[name]
    for shape in SHAPES:
        if len(shape) < rank:
            continue
        for x, a in layouts(array(shape, dtype)):
            for args in calls:
                same(ours(x, *args), theirs(a, *args))


@pytest.mark.parametrize("k", (-3, -1, 0, 1, 2))
def test_diagonals_of_vectors_and_matrices(k):
    for shape in ((0,), (3,), (2, 3), (4, 2)):
        for x, a in layouts(array(shape)):
            same(td.diag(x, k), np.diag(a, k))
    for x, a in layouts(array((2, 3))):
        same(td.diag_embed(x, k), np.stack([np.diag(v, k) for v in a]))
        same(td.diag_embed(x, k, 0, 1),
             np.stack([np.diag(v, k) for v in a], -1))
        same(x.trace(), np.trace(a), 1e-15)


def test_results_that_were_asked_for_as_copies_share_nothing():
    for f in (lambda x: x.repeat(1, 1), lambda x: x.tile(()), lambda x: x.roll(0, 0),
              lambda x: x.roll(6), lambda x: td.rot90(x, 0), lambda x: x.expand(2, 3).tile(1),
              lambda x: x.repeat_interleave(1, 0), lambda x: x.tril(99),
              lambda x: td.matrix_power(x[:, :2], 1),
              lambda x: F.interpolate(x[None], size=3, mode="linear")):
        x = td.zeros(2, 3)
        f(x).fill_(1)
        assert x.sum().item() == 0
    ones = td.zeros(1).repeat(4)
    ones[0] = 1
    assert ones.tolist() == [1, 0, 0, 0]


def test_views_write_through():
    x = td.zeros(3, 4)
    x.diagonal(1).fill_(2)
    x.narrow(0, 2, 1).fill_(5)
    td.movedim(x, 0, 1)[0].add_(1)
    x.unflatten(1, (2, -1))[0, 1, 1] = 9
    for part, value in zip(td.split(x, (1, 3), 1), (-1, 1)):
        part[1] = value
    same(x, np.array([[1, 2, 0, 9], [-1, 1, 1, 1], [6, 5, 5, 5]], "float32"))


@pytest.mark.parametrize("n", range(12))
def test_parts_add_up_to_the_whole(n):
    x = td.arange(n * 2).reshape(n, 2)
    for k in range(1, 7):
        for parts in (x.split(k), x.chunk(k), x.tensor_split(k),
                      td.split(x.t(), k, 1)):
            assert isinstance(parts, tuple)
            assert sum(len(p.reshape(-1)) for p in parts) == 2 * n
        same(td.cat(x.split(k)), x.numpy())
        same(x.tensor_split(k), np.array_split(x.numpy(), k))
        sizes = [len(p) for p in x.chunk(k)]
        assert len(sizes) <= k and all(s == sizes[0] for s in sizes[:-1])
    assert [len(p) for p in x.split([n, 0])] == [n, 0]


PADS = ([1, 2], [0, 0], [2, 1, 1, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_borders_match_numpy(dtype):
    for shape in ((1, 2, 3), (2, 3, 3, 4)):
        for x, a in layouts(array(shape, dtype)):
            for pad in PADS[:2] if len(shape) == 3 else PADS:
                if len(pad) < 2 * len(shape) - 4:
                    continue
                w = widths(a, pad)
                same(F.pad(x, pad), np.pad(a, w))
                same(F.pad(x, pad, "reflect"), np.pad(a, w, "reflect"))
                same(F.pad(x, pad, "replicate"), np.pad(a, w, "edge"))
                same(F.pad(x, pad, mode="circular"), np.pad(a, w, "wrap"))
    x, a = next(layouts(array((3, 4), dtype)))
    same(F.pad(x, [-1, 2, 0, -2], value=1),
         np.pad(a[:1, 1:], [(0, 0), (0, 2)], constant_values=1))
    same(F.pad(td.zeros(0), [1, 1], value=3), np.full(2, 3, "float32"))


def test_negative_margins_in_other_modes():
    x = td.arange(4.0).reshape(1, 1, 4)
    assert F.pad(x, [-1, 2], "replicate").tolist() == [[[1, 2, 3, 3, 3]]]
    assert F.pad(x, [2, -1], "reflect").tolist() == [[[2, 1, 0, 1, 2]]]
    assert F.pad(x, [-1, 1], "circular").tolist() == [[[1, 2, 3, 1]]]


@pytest.mark.parametrize("size, step", [(1, 1), (3, 1), (2, 3), (5, 2), (0, 2)])
def test_windows_match_numpy(size, step):
    for x, a in layouts(array((5, 6))):
        for d in (0, -1):
            if size > a.shape[d]:
                continue
            if size:
                windows = np.lib.stride_tricks.sliding_window_view(a, size, d)
                windows = windows[::step] if d == 0 else windows[:, ::step]
                same(x.unfold(d, size, step), windows)
            else:
                assert x.unfold(d, 0, step).shape[-1] == 0


@pytest.mark.parametrize("k, dilation, padding, stride", [
    (1, 1, 0, 1), (2, 1, 0, 1), (3, 1, 1, 2), ((2, 3), 1, (0, 2), (2, 1)),
    (2, 2, 1, 1), ((1, 2), (3, 2), 2, 3)])
def test_columns_are_windows_and_fold_is_their_transpose(k, dilation, padding, stride):
    pair = lambda v: (v, v) if isinstance(v, int) else v
    (kh, kw), (dh, dw) = pair(k), pair(dilation)
    (ph, pw), (sh, sw) = pair(padding), pair(stride)
    a = array((2, 3, 5, 6))
    b = np.pad(a, [(0, 0), (0, 0), (ph, ph), (pw, pw)])
    h = (b.shape[2] - dh * (kh - 1) - 1) // sh + 1
    w = (b.shape[3] - dw * (kw - 1) - 1) // sw + 1
    columns = np.stack([b[:, :, i * sh:i * sh + dh * (kh - 1) + 1:dh,
                          j * sw:j * sw + dw * (kw - 1) + 1:dw].reshape(2, -1)
                        for i in range(h) for j in range(w)], -1)
    x = td.from_numpy(a)
    ours = F.unfold(x, k, dilation, padding, stride)
    same(ours, columns)
    same(F.unfold(x[0], k, dilation, padding, stride), columns[0])
    v = td.from_numpy(array(columns.shape))
    back = F.fold(v, (5, 6), k, dilation, padding, stride)
    assert abs((back * x).sum().item() - (ours * v).sum().item()) < 1e-9
    count = F.fold(F.unfold(x * 0 + 1, k, dilation, padding, stride),
                   (5, 6), k, dilation, padding, stride)
    twice = F.fold(ours, (5, 6), k, dilation, padding, stride)
    same(twice, a * count.numpy(), 1e-12)


def test_pixels_from_channels_and_back():
    a = np.arange(48).reshape(1, 12, 2, 2)
    x = td.from_numpy(a)
    there = a.reshape(1, 3, 2, 2, 2, 2).transpose(0, 1, 4, 2, 5, 3)
    same(F.pixel_shuffle(x, 2), there.reshape(1, 3, 4, 4))
    same(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), a)
    assert td.pixel_shuffle(td.zeros(2, 0, 4, 3, 0), 2).shape == (2, 0, 1, 6, 0)


@pytest.mark.parametrize("mode, align, golden", [
    ("bilinear", False, [[0, .625, 1.375, 2], [2, 2, 1.8125, 1.5], [4, 3.375, 2.25, 1]]),
    ("bilinear", True, [[0, 2 / 3, 4 / 3, 2], [2, 2, 11 / 6, 1.5], [4, 10 / 3, 7 / 3, 1]]),
    ("bicubic", False, [
        [-0.4314609103732631, 0.2650027804904521, 1.4095187717013893, 2.1772749159071183],
        [2.0, 2.054931640625, 1.81982421875, 1.4641113281250002],
        [4.431460910373265, 3.8448605007595495, 2.230129665798611, 0.7509477403428817]]),
    ("nearest", None, [[0, 0, 1, 2], [0, 0, 1, 2], [4, 4, 3, 1]]),
    ("nearest-exact", None, [[0, 1, 1, 2], [4, 3, 3, 1], [4, 3, 3, 1]])])
def test_resized_pictures_are_pytorchs(mode, align, golden):
    a = np.array([[[[0.0, 1, 2], [4, 3, 1]]]])
    for x, _ in itertools.islice(layouts(a), 3):
        same(F.interpolate(x, (3, 4), mode=mode, align_corners=align),
             np.array([[golden]], "float64"), 1e-12)
        up = nn.Upsample(size=(3, 4), mode=mode, align_corners=align)
        same(up(x.float()), np.array([[golden]], "float32"), 1e-6)


def test_factors_and_their_rounding():
    x = td.tensor([[[0.0, 1, 2], [4, 3, 1]]], dtype=td.float64)
    same(F.interpolate(x, scale_factor=0.7, mode="linear"),
         [[[0.2142857142857143, 1.6428571428571428],
           [3.7857142857142856, 1.7142857142857144]]], 1e-12)
    same(F.interpolate(x, scale_factor=1.7), [[[0.0, 0, 1, 1, 2], [4, 4, 3, 3, 1]]])
    same(F.interpolate(x[:, :1], size=5, mode="linear"), [[[0, .4, 1, 1.6, 2]]], 1e-12)
    assert F.interpolate(x, scale_factor=1.7, recompute_scale_factor=True).shape == (1, 2, 5)
    volume = F.interpolate(x[None, None], size=(3, 2, 2), mode="trilinear")
    assert volume.shape == (1, 1, 3, 2, 2)


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3)),
    ("ji", (2, 3)), ("ij->", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)),
    ("i,j->ij", (2,), (3,)), ("i,i", (3,), (3,)), ("bij,bjk->bik", (2, 3, 2), (2, 2, 3)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 4, 2)), ("...ij,...jk->...ik", (2, 3, 2), (2, 3)),
    ("...ij,...jk", (2, 1, 3, 2), (4, 2, 3)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
    ("iij,jkk->ik", (2, 2, 3), (3, 2, 2)), (",->", (), ()), ("i,->i", (3,), ()),
    ("ab,cd,ef->acebdf", (2, 1), (2, 3), (1, 2)), (" i j , j k -> k i", (2, 3), (3, 4)),
    ("bn,anm,bm->ba", (2, 3), (4, 3, 2), (2, 2)), ("ij,jk->ik", (2, 0), (0, 4)),
    ("ijij->ij", (2, 3, 2, 3)), ("...,...->...", (2, 3), (3,)), ("iii->i", (2, 2, 2)),
    ("i...->...i", (2, 3, 2)), ("ij,kl->i", (2, 3), (2, 4))]


@pytest.mark.parametrize("equation, shapes", [(e, s) for e, *s in EQUATIONS])
def test_subscripts_match_numpy(equation, shapes):
    for dtype in ("float64", "int64"):
        arrays = [array(s, dtype) for s in shapes]
        expected = np.einsum(equation.strip(), *arrays)
        for tensors in ([next(layouts(a))[0] for a in arrays],
                        [list(layouts(a))[:2][-1][0] for a in arrays]):
            same(td.einsum(equation, *tensors), expected, 1e-12)
        same(td.einsum(equation, tensors), expected, 1e-12)


def test_subscripts_as_numbers_and_sizes_of_one():
    x, y = td.from_numpy(array((2, 3))), td.from_numpy(array((3, 4)))
    same(td.einsum(x, [0, 1], y, [1, 30], [30, 0]), (x @ y).t().numpy(), 1e-12)
    same(td.einsum(x, [..., 1], y, [1, 2]), (x @ y).numpy(), 1e-12)
    same(td.einsum("ij,ij->i", x, y[:1, :3]), (x * y[:1, :3]).sum(1).numpy(), 1e-12)


PRODUCTS = {
    "outer": (np.outer, [((2,), (3,)), ((0,), (2,))]),
    "mm": (np.matmul, [((2, 3), (3, 4)), ((2, 0), (0, 3))]),
    "mv": (np.matmul, [((2, 3), (3,)), ((2, 0), (0,))]),
    "vdot": (np.vdot, [((3,), (3,)), ((0,), (0,))]),
    "inner": (np.inner, [((3,), (3,)), ((2, 3), (4, 3)), ((), (2, 3)), ((2, 1, 3), (2, 3))]),
    "kron": (np.kron, [((2,), (3,)), ((2, 3), (2,)), ((), (2,)), ((2, 3), (3, 2)), ((2, 1, 2), (3, 2, 2))])}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_match_numpy(name):
    theirs, cases = PRODUCTS[name]
    for (left, right), dtype in itertools.product(cases, DTYPES[:4]):
        a, b = array(left, dtype), array(right, dtype)
        for (x, _), (y, _) in zip(itertools.islice(layouts(a), 3),
                                  itertools.cycle(itertools.islice(layouts(b), 2))):
            same(getattr(td, name)(x, y), np.asarray(theirs(a, b)).astype(dtype), 1e-5)


def test_products_over_chosen_dimensions():
    a, b = array((2, 3, 4)), array((4, 3, 5))
    x, y = td.from_numpy(a), td.from_numpy(b)
    for dims in (1, 0, ([2], [0]), ([1, 2], [1, 0]), ([-1], [0])):
        if dims == 0:
            same(td.tensordot(x[0], y[0], 0), np.tensordot(a[0], b[0], 0), 1e-12)
        else:
            same(td.tensordot(x, y, dims), np.tensordot(a, b, dims), 1e-12)
    m = array((2, 3, 3))
    for n in (0, 1, 2, 5, 6):
        same(td.matrix_power(td.from_numpy(m), n), np.linalg.matrix_power(m, n), 1e-12)


@pytest.mark.parametrize("beta, alpha", [(1, 1), (2, 3), (0, 2), (0.5, 1)])
def test_sums_with_products(beta, alpha):
    x, y, z = array((2, 1, 3)), array((2, 4, 2)), array((2, 2, 3))
    nan = beta == 0
    c = [td.from_numpy(v) for v in (x * np.nan if nan else x, y, z)]
    expected = (0 if nan else beta * x) + alpha * (y @ z)
    same(td.baddbmm(*c, beta=beta, alpha=alpha), expected, 1e-12)
    same(td.addmv(c[0][0, 0, :1], c[1][0], c[2][0, :, 0], beta=beta, alpha=alpha), expected[0, :, 0]
         if nan else beta * x[0, 0, 0] + alpha * (y[0] @ z[0, :, 0]), 1e-12)
    same(td.addr(c[0][0], c[1][0, :, 0], c[2][0, 0], beta=beta, alpha=alpha),
         (0 if nan else beta * x[0]) + alpha * np.outer(y[0, :, 0], z[0, 0]), 1e-12)


def test_meshes_and_triangles_and_counts():
    a, b = np.arange(2.0), np.arange(3.0)
    x, y = td.from_numpy(a), td.from_numpy(b)
    for indexing in ("ij", "xy"):
        same(td.meshgrid(x, y, indexing=indexing), np.meshgrid(a, b, indexing=indexing))
    same(td.meshgrid([x]), [a])
    same(td.cartesian_prod(x, y), [[0., 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
    same(td.broadcast_tensors(x[:, None], y), np.broadcast_arrays(a[:, None], b))
    assert td.broadcast_shapes((2, 1), 3, ()) == (2, 3)
    for k in (-2, 0, 1, 5):
        same(td.tril_indices(3, 4, k), np.stack(np.tril_indices(3, k, 4)))
        same(td.triu_indices(3, 4, k), np.stack(np.triu_indices(3, k, 4)))
    counts = td.tensor([2, 0, 1])
    same(td.repeat_interleave(counts), np.array([0, 0, 2]))
    same(td.repeat_interleave(y, counts), [0.0, 0, 2])
    assert td.ones(2, 3).reshape_as(td.ones(3, 2)).shape == (3, 2)


@pytest.mark.parametrize("error, match, call", [
    (IndexError, "narrow.*start 7.*size 3", lambda x: x.narrow(1, 7, 1)),
    (RuntimeError, "narrow.*length 3", lambda x: x.narrow(1, 1, 3)),
    (RuntimeError, "unflatten.*multiply", lambda x: x.unflatten(1, (2, -1))),
    (RuntimeError, "movedim.*twice", lambda x: x.movedim((0, 0), (0, 1))),
    (RuntimeError, "repeat.*each dimension", lambda x: x.repeat(2)),
    (RuntimeError, "tile.*repeat so often", lambda x: x.tile(-1)),
    (RuntimeError, "repeat_interleave.*each position",
     lambda x: x.repeat_interleave(td.tensor([1, 2]), 1)),
    (RuntimeError, "flip.*twice", lambda x: x.flip(0, 0)),
    (IndexError, "flip.*out of range", lambda x: x.flip(2)),
    (RuntimeError, "roll.*shift", lambda x: x.roll((1, 2), 0)),
    (RuntimeError, "rot90.*two dimensions", lambda x: td.rot90(x, 1, (0, 0))),
    (RuntimeError, "tril.*two dimensions", lambda x: x[0].tril()),
    (RuntimeError, "diagonal.*different", lambda x: x.diagonal(0, 1, -1)),
    (RuntimeError, "diag.*vector or a matrix", lambda x: td.diag(x[None])),
    (RuntimeError, "split.*add up.*3", lambda x: x.split([1, 1], 1)),
    (RuntimeError, "split.*positive", lambda x: x.split(0)),
    (RuntimeError, "chunk.*> 0", lambda x: x.chunk(0)),
    (IndexError, "unbind.*range", lambda x: x.unbind(2)),
    (RuntimeError, "pad.*two margins", lambda x: F.pad(x, [1])),
    (RuntimeError, "300 does not fit uint8", lambda x: F.pad(x.to(td.uint8), [1, 1], value=300)),
    (RuntimeError, "nan does not fit int64", lambda x: F.pad(x.to(td.int64), [1, 1], value=math.nan)),
    (RuntimeError, "margins.*size 3", lambda x: F.pad(x, [3, 0], "reflect")),
    (NotImplementedError, "'mirror'", lambda x: F.pad(x, [1, 1], "mirror")),
    (RuntimeError, "negative|numel|size", lambda x: F.pad(x, [-9, 0])),
    (RuntimeError, "unfold.*size 4", lambda x: x.unfold(1, 4, 1)),
    (RuntimeError, "fold.*go with", lambda x: F.fold(x, (2, 2), 1)),
    (RuntimeError, "unfold.*window", lambda x: F.unfold(x[None], 4)),
    (RuntimeError, "pixel_shuffle.*factor", lambda x: F.pixel_shuffle(x[None], 2)),
    (ValueError, "either size", lambda x: F.interpolate(x[None])),
    (NotImplementedError, "rank 2", lambda x: F.interpolate(x, size=())),
    (NotImplementedError, "int64", lambda x: F.interpolate(x[None].long(), size=2, mode="linear")),
    (RuntimeError, "einsum.*i has size 2 .* 3", lambda x: td.einsum("ij,ki", x, x)),
    (RuntimeError, "einsum.*does not name", lambda x: td.einsum("i", x)),
    (RuntimeError, "einsum.*occur", lambda x: td.einsum("ij->ik", x)),
    (RuntimeError, "einsum.*more operands", lambda x: td.einsum("ij", x, x)),
    (RuntimeError, "einsum.*follow", lambda x: td.einsum("ij,jk", x)),
    (RuntimeError, "9 dimensions", lambda x: td.einsum("abcdefgh,i", td.zeros((1,) * 8), x[0])),
    (RuntimeError, "10 dimensions", lambda x: td.tensordot(td.zeros((1,) * 8), x, 0)),
    (RuntimeError, "tensordot.*partner", lambda x: td.tensordot(x, x, ([0], [1]))),
    (RuntimeError, "outer.*vectors", lambda x: td.outer(x, x)),
    (RuntimeError, "mm.*ranks 2 and 2", lambda x: td.mm(x, x[0])),
    (RuntimeError, "square", lambda x: td.matrix_power(x, 2)),
    (RuntimeError, "meshgrid.*indexing", lambda x: td.meshgrid(x[0], indexing="yx")),
    (RuntimeError, "does not broadcast", lambda x: td.broadcast_tensors(x, x.t())),
])
def test_mistakes_are_explained(error, match, call):
    x = td.zeros(2, 3)
    with pytest.raises(error, match=match):
        call(x)


def test_gradients_of_what_python_adds():
    x = td.from_numpy(array((4, 3))).requires_grad_()
    v = td.from_numpy(array((3,))).requires_grad_()
    for f in (lambda x, v: td.cat([p * (i + 1.0) for i, p in enumerate(x.split(3))]),
              lambda x, v: td.stack([r * v for r in x.unbind()]),
              lambda x, v: td.meshgrid(v, v)[1] * x[:3],
              lambda x, v: td.broadcast_tensors(x, v)[1] * x,
              lambda x, v: td.vstack([x, v * v]), lambda x, v: td.column_stack([x.t(), v * v]),
              lambda x, v: td.tensordot(x, v, 1), lambda x, v: td.einsum("ij,j,ij->i", x, v, x),
              lambda x, v: td.cartesian_prod(v, x[:, 0]),
              lambda x, v: nn.ReflectionPad1d(1)(x[None]) * 2.0,
              lambda x, v: nn.Fold((2, 2), 1)(nn.Unfold(1)(x.reshape(1, 3, 2, 2)))):
        assert gradcheck(f, (x, v))


def test_modules_print_as_pytorchs_and_pad():
    assert repr(nn.ZeroPad2d((1, 0, 2, 0))) == "ZeroPad2d((1, 0, 2, 0))"
    assert nn.ConstantPad1d(2, 3.5)(td.zeros(1, 1)).tolist() == [[3.5, 3.5, 0, 3.5, 3.5]]
    assert nn.ReplicationPad2d(1)(td.ones(1, 2, 2)).sum().item() == 16
    assert nn.PixelShuffle(2)(td.ones(1, 4, 2, 2)).shape == (1, 1, 4, 4)


def test_a_trace_keeps_parts_and_constants():
    @td.jit
    def f(x):
        y = F.pad(x, [1, 1], "reflect").tril().flip(0).roll(1, 0)
        y = F.interpolate(y[None], size=4, mode="linear")[0]
        return td.einsum("ij,kj->ik", y, x.repeat(1, 1)).diagonal().sum()
    x = td.from_numpy(array((4, 4)))
    plain = f.__wrapped__(x) if hasattr(f, "__wrapped__") else None
    first, second = f(x).item(), f(x * 1).item()
    assert abs(first - second) < 1e-12
    assert plain is None or abs(first - plain.item()) < 1e-9


def test_repeated_rows_have_places_of_their_own():
    for name in ("repeat", "tile"):
        y = getattr(td.arange(3), name)(2, 2)
        assert y.is_contiguous()
        y[0] += 10
        assert y.tolist() == [[10, 11, 12] * 2, [0, 1, 2] * 2]


def test_words_that_a_method_and_a_function_spell_differently():
    assert [len(x) for x in td.arange(5).split(split_size=2)] == [2, 2, 1]
    assert td.arange(end=3).tolist() == [0, 1, 2]
    assert nn.Parameter().shape == (0,)
    for call in (td.arange, td.arange(5).split):
        with pytest.raises(TypeError):
            call()
