# needs: exchange
# SPDX-License-Identifier: MIT
"""Copies, pickles, several roots, and operands of NumPy."""
import copy
import gzip
import pickle
import struct

import numpy
import pytest
import treadle as td
from treadle import nn


@pytest.mark.parametrize("dtype", [
    td.float32, td.float64, td.int64, td.int32, td.uint8, td.bool,
    td.float16, td.bfloat16, td.int8, td.int16])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 0, 4)])
def test_a_pickle_keeps_type_shape_and_bits(dtype, shape):
    x = (td.rand(*shape) * 100 if shape else td.tensor(37.5)).to(dtype)
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype is x.dtype and y.shape == x.shape
    assert y.tolist() == x.tolist()


def test_a_pickle_of_a_transposed_view_has_its_elements():
    x = td.arange(6).reshape(2, 3).t()
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy,
                                 lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_class_attributes_and_requires_grad(way):
    p = nn.Parameter(td.tensor([1.5, -2.0]))
    p.label = "weights"
    q = way(p)
    assert type(q) is nn.Parameter and q.requires_grad and q.is_leaf
    assert q.label == "weights" and q.tolist() == p.tolist()


def test_a_shallow_copy_shares_and_a_deep_copy_does_not():
    x = td.zeros(3)
    shared, own = copy.copy(x), copy.deepcopy(x)
    x[1] = 7
    assert shared.tolist() == [0, 7, 0] and own.tolist() == [0, 0, 0]


def test_pickles_and_copies_of_all_kinds():
    for x in (td.randn(3, 2), td.arange(4), td.tensor([True]), td.zeros(0, 3),
              td.randn(2, requires_grad=True)):
        for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert y.tolist() == x.tolist() and y.dtype is x.dtype
            assert y.shape == x.shape
            assert y.requires_grad == x.requires_grad and y is not x
    assert pickle.loads(pickle.dumps(td.float32)) is td.float32
    p = td.nn.Parameter(td.ones(2))
    assert type(copy.deepcopy(p)) is td.nn.Parameter
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(p * 2)


def test_copies_of_modules():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    twin = copy.deepcopy(net)
    assert twin[0].weight is not net[0].weight
    assert isinstance(twin[0].weight, nn.Parameter)
    x = td.randn(2, 3)
    assert twin(x).tolist() == net(x).tolist()
    again = pickle.loads(pickle.dumps(net))
    assert again(x).tolist() == net(x).tolist()


def test_a_deep_copy_keeps_ties_and_gradients():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    m(td.ones(1, 2)).sum().backward()
    twin = copy.deepcopy(m)
    assert twin[0].weight is twin[1].weight is not m[0].weight
    assert twin[0].weight.grad.tolist() == m[0].weight.grad.tolist()
    again = pickle.loads(pickle.dumps(m))
    assert again[0].weight is again[1].weight


def test_backward_from_several_roots_is_one_pass():
    x = td.tensor([2.0, 3.0], requires_grad=True)
    y, calls = x * x, []
    y.register_hook(lambda g: calls.append(g.tolist()))
    td.autograd.backward([y.sum(), (2 * y).sum()])
    assert calls == [[3.0, 3.0]]
    assert x.grad.tolist() == [12.0, 18.0]


def test_backward_names_a_wrong_number_of_gradients():
    x = td.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        td.autograd.backward([x.sum(), x.sum()], [td.tensor(1.0)])
    with pytest.raises(TypeError, match="expected a Tensor"):
        td.autograd.backward([x.sum(), 3])


class Passing(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def test_an_input_marked_non_differentiable_stays_so():
    x = td.ones(2, requires_grad=True)
    assert not Passing.apply(x).requires_grad


class Nothing(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return None


def test_a_forward_that_returns_nothing_is_named():
    with pytest.raises(TypeError, match="Nothing.forward must return"):
        Nothing.apply(td.ones(2))


class Wrong(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return td.ones(3)


def test_a_gradient_of_another_shape_names_the_function():
    x = td.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"WrongBackward .*index 0 - got "
                       r"\[3\] but expected shape compatible with \[2\]"):
        Wrong.apply(x).sum().backward()


def test_arrays_of_numpy_are_operands_on_both_sides():
    a, t = numpy.array([1.0, 2.0, 4.0]), td.tensor([2.0, 3.0, 5.0])
    for left, right in ((a, t), (t, a)):
        product = left * right
        assert isinstance(product, td.Tensor)
        assert product.tolist() == [2.0, 6.0, 20.0]
    assert (a - t).tolist() == [-1.0, -1.0, -1.0]
    assert (a < t).tolist() == [True, True, True]
    assert (a @ t.double()).item() == 28.0


def test_an_object_that_is_no_operand_is_a_type_error():
    with pytest.raises(TypeError):
        td.ones(2) * "three"
    with pytest.raises((TypeError, ValueError)):
        td.ones(2) * numpy.array(["a", "b"])


def test_gradgradcheck_finds_a_wrong_second_derivative():
    x = td.rand(3, dtype=td.float64, requires_grad=True)
    assert td.autograd.gradgradcheck(lambda v: (v * v * v).exp(), (x,))

    class Flat(td.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return v * v

        @staticmethod
        def backward(ctx, g):
            v, = ctx.saved_tensors
            return 2 * v.detach() * g
    with pytest.raises(RuntimeError, match="gradcheck"):
        td.autograd.gradgradcheck(Flat.apply, (x,))


def test_messages_say_what_is_wrong():
    with pytest.raises(RuntimeError, match=r"shape \[3\] cannot hold the "
                       r"broadcast shape \[2, 3\]"):
        td.zeros(3).add_(td.zeros(2, 3))
    with pytest.raises(ValueError, match="number >= 0, got nan"):
        td.optim.SGD([td.ones(1, requires_grad=True)], lr=float("nan"))
    assert repr(td.device("cpu:0")) == "device(type='cpu', index=0)"


def test_a_gzip_file_of_several_members_is_read(tmp_path):
    data = struct.pack(">IIII", 0x803, 2, 3, 4) + bytes(range(24))
    path = tmp_path / "images-idx3-ubyte.gz"
    parts = [gzip.compress(data[:5]), gzip.compress(data[5:20]),
             gzip.compress(data[20:])]
    for behind in (b"", bytes(512), b"x"):          # what is no stream is passed over, as by gzip
        path.write_bytes(b"".join(parts) + behind)
        assert td._C._idx_read(str(path)).reshape(-1).tolist() == list(range(24))
    for broken, word in ((b"".join(parts[:2]), "truncated"),
                         (b"".join(parts + parts[:1]), "bytes after")):
        path.write_bytes(broken)
        with pytest.raises(OSError, match=word):
            td._C._idx_read(str(path))


def test_gradgradcheck_of_a_scalar_and_gradcheck_of_nothing():
    x = td.randn(3, dtype=td.float64, requires_grad=True)
    assert td.autograd.gradgradcheck(lambda v: (v * v * v).sum(), (x,))
    with pytest.raises(ValueError, match="no input requires a gradient"):
        td.autograd.gradcheck(lambda v: v * 2, (x.detach(),))


def test_functions_are_pickled_by_name():
    for f in (td.tanh, td.nn.functional.gelu, td.Tensor.add):
        assert pickle.loads(pickle.dumps(f)) is f
        assert copy.deepcopy(f) is f
    assert not hasattr(td.Tensor.add, "mul")


@pytest.mark.parametrize("dtype, first", [(td.float16, 0x7d01), (td.bfloat16, 0x7f81), (td.float32, 0x7f800001)])
def test_copies_keep_the_bits_of_every_nan(dtype, first):
    whole = td.int32 if dtype is td.float32 else td.int16
    bits = td.arange(first, first + 600, dtype=whole).reshape(20, 30)
    x = bits.view(dtype)
    for copied in (x.t().contiguous().t(), x.t().clone().t(), td.empty(30, 20, dtype=dtype).t().copy_(x), x.t().to(dtype, copy=True).t(),
                   td.cat([x.t()]).t(), td.stack([x[:, k] for k in range(30)], 1), x.t().reshape(600).view(30, 20).t(), x.flip(0).flip(0),
                   x[:, ::3].clone().new_empty(20, 30).copy_(x), td.stack([x, x])[1], x.repeat(2, 1)[20:]):
        assert copied.contiguous().view(whole).tolist() == bits.tolist()


@pytest.mark.parametrize("shape", [(300, 260), (2, 300, 260), (260, 1, 300)])
def test_large_turned_operands_give_what_straight_ones_do(shape):
    n = td.Size(shape).numel()
    x = td.arange(n, dtype=td.float32).reshape(shape)
    other = td.arange(n, 0, -1, dtype=td.float32).reshape(shape)
    turned, straight = x.transpose(-1, 0), x.transpose(-1, 0).contiguous()
    z = other.transpose(-1, 0)
    for got, wanted in ((turned + z, straight + z.contiguous()), (turned - 1, straight - 1), (td.relu(turned), straight),
                        (td.where(turned > z, turned, z), td.maximum(straight, z.contiguous())), (turned > 5, straight > 5),
                        (straight.clone().mul_(turned), straight * straight), (turned.long() // 7, straight.long() // 7)):
        assert got.equal(wanted)
    assert x.equal(td.arange(n, dtype=td.float32).reshape(shape))


def test_a_large_square_takes_its_own_transpose_in_place():
    x = td.arange(90000, dtype=td.float32).reshape(300, 300)
    assert x.clone().sub_(x.t()).equal(x - x.t().contiguous())
    y = x.clone()
    assert y.sub_(y.t()).equal(x - x.t().contiguous())


def test_every_half_there_and_back_and_every_tie():
    """NumPy's conversions: all halves, what lies midway between two, and its neighbours; what integers cannot hold is held."""
    bits = numpy.arange(65536, dtype=numpy.uint16)
    wide = bits.view(numpy.float16).astype(numpy.float32)
    got = td.from_numpy(bits.view(numpy.float16)).float().numpy()
    assert numpy.array_equal(got, wide, equal_nan=True) and numpy.array_equal(numpy.signbit(got), numpy.signbit(wide))
    size = wide[:0x7c00]
    middle = (size[:-1] + size[1:]) / 2
    some = numpy.concatenate([wide, middle, -middle, numpy.nextafter(middle, numpy.float32(9e9)), numpy.nextafter(middle, numpy.float32(-9e9)),
                           numpy.float32([65519.996, 65520, 1e30, 1e-30, -1e-45])])
    with numpy.errstate(over="ignore"):
        want = some.astype(numpy.float16)
    got = td.from_numpy(some).half().numpy()
    known = ~numpy.isnan(want)
    assert numpy.array_equal(got.view(numpy.uint16)[known], want.view(numpy.uint16)[known]) and numpy.isnan(got[~known]).all()
    u = some.view(numpy.uint32).astype(numpy.uint64)
    want = (((u + 0x7fff + (u >> 16 & 1)) >> 16) << 16).astype(numpy.uint32)
    got = td.from_numpy(some).bfloat16().float().numpy()
    assert numpy.array_equal(got.view(numpy.uint32)[known], want[known])
    wild = numpy.float32([numpy.nan, numpy.inf, -numpy.inf, 3e9, -3e9, 300.7, -0.5, 41.9, -129])
    for dtype, low, high in (td.uint8, 0, 255), (td.int8, -128, 127), (td.int16, -2**15, 2**15 - 1), (td.int32, -2**31, 2**31 - 1):
        want = [0 if v != v else int(min(max(v, low), high)) for v in wild.tolist()]
        assert td.from_numpy(wild).to(dtype).tolist() == want
        assert td.from_numpy(numpy.repeat(wild, 2))[::2].to(dtype).tolist() == want


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1500, 50), (3, 700, 33), (40, 5, 300), (9, 2, 3, 5), (2, 1100)])
def test_a_column_is_repeated_along_its_rows(shape, dtype):
    source = numpy.arange(numpy.prod(shape[:-1])).reshape(shape[:-1] + (1,)) % 251
    matrix = numpy.arange(numpy.prod(shape)).reshape(shape) % 5
    column = td.tensor(source).to(getattr(td, dtype))
    expected = (source + matrix).astype(dtype)
    threads = td.get_num_threads()
    try:
        for many in (1, 2, 3):
            td.set_num_threads(many)
            assert (column.expand(shape).contiguous().numpy() == numpy.broadcast_to(source, shape).astype(dtype)).all()
            assert (column.expand(shape).to(td.float32).numpy() == numpy.broadcast_to(source.astype(dtype), shape)).all()
            for other in (dtype, "float32"):
                y = column + td.tensor(matrix).to(getattr(td, other))
                assert (y.numpy().astype(dtype) == expected).all()
            every = column[::2].expand(-1, *shape[1:]) + td.tensor(matrix)[::2].to(getattr(td, dtype))
            assert (every.numpy() == expected[::2]).all()
    finally:
        td.set_num_threads(threads)


def test_a_row_is_repeated_from_any_place():
    for width in (1, 3, 10, 255, 256, 700, 1000, 1024, 1025):
        x = numpy.arange((5000 // (width // 8 + 1) + 1) * width).reshape(-1, width) % 1000
        row = numpy.arange(width) * 7 % 100
        one = td.tensor(x).float() + td.tensor(row).float()
        two = td.addcmul(td.tensor(row).float(), td.tensor(x).float(), td.tensor(row).float())
        assert (one.numpy() == x + row).all() and (two.numpy() == row + x * row).all()
