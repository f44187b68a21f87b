# needs: package
"""Making, subscripting and reading tensors, with NumPy as the reference."""
import array

import numpy as np
import pytest
import treadle as td


def same(x, a):
    assert tuple(x.shape) == a.shape
    got = np.array(x.tolist(), dtype=a.dtype).reshape(a.shape)
    np.testing.assert_array_equal(got, a)


def test_dtype_of_literals():
    assert td.tensor(1).dtype is td.int64 and td.tensor(1).shape == ()
    assert td.tensor(1.0).dtype is td.float32
    assert td.tensor(True).dtype is td.bool
    assert td.tensor([1, 2.5]).dtype is td.float32
    assert td.tensor([True, 2]).tolist() == [1, 2]
    assert td.tensor([]).shape == (0,) and td.tensor([]).dtype is td.float32
    assert td.tensor([[], []]).shape == (2, 0)
    assert td.tensor([1, 2], dtype=td.float64).dtype is td.float64
    assert td.tensor([1.9, -1.9], dtype=td.int64).tolist() == [1, -1]
    assert td.tensor(range(3)).tolist() == [0, 1, 2]
    assert td.tensor((1, (2))).tolist() == [1, 2]
    assert td.tensor([2 ** 53 + 1]).tolist() == [2 ** 53 + 1]


def test_tensors_and_numpy_numbers_inside_lists():
    assert td.tensor([td.tensor(1.5), 2]).tolist() == [1.5, 2.0]
    assert td.tensor([np.float32(1.5), np.int64(2)]).tolist() == [1.5, 2.0]


@pytest.mark.parametrize("bad", [
    [[1, 2], [3]], [1, [2]], [[1], 2], [[[1]], [[1, 2]]]])
def test_ragged_lists_are_value_errors(bad):
    with pytest.raises(ValueError, match="tensor"):
        td.tensor(bad)


def test_lists_that_are_no_data():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="8"):
        td.tensor(loop)
    for bad in ("text", ["a"], [None], object(), {1: 2}):
        with pytest.raises((TypeError, ValueError)):
            td.tensor(bad)


@pytest.mark.parametrize("key", [
    0, -1, slice(None), slice(1, None), slice(None, None, 2),
    slice(5, 2), slice(-3, -1), (0, 1), (0, slice(1, 3)), None,
    (None, 0), (..., 0), (0, ...), (..., None), (slice(None), 1),
    (slice(None), None, slice(0, 2)), (slice(1, 4, 2), -1, slice(2)),
    (1, 2, 3), (..., slice(None, None, 3)), (), ...])
def test_basic_subscripts_match_numpy(key):
    a = np.arange(5 * 3 * 7, dtype=np.float32).reshape(5, 3, 7)
    x = td.tensor(a)
    same(x[key], a[key])
    assert isinstance(x[key], td.Tensor)
    # a subscript is a view
    x[key].fill_(-1.0)
    a[key] = -1
    same(x, a)


@pytest.mark.parametrize("key", [
    [0, 2], [-1, 0, 0], np.array([3, 1]), (slice(None), [2, 0]),
    (1, [0, 2]), ([4, 0], 1), [[0, 1], [2, 3]], [],
    (..., [0, 6]), (None, [1])])
def test_picks_match_numpy(key):
    a = np.arange(5 * 3 * 7, dtype=np.float32).reshape(5, 3, 7)
    x = td.tensor(a)
    b = a[tuple(np.array(k, dtype=int) if isinstance(k, list) else k
                for k in (key if isinstance(key, tuple) else (key,)))]
    if isinstance(key, tuple) and isinstance(key[0], int):
        b = a[key[0]][np.array(key[1])]
    same(x[key], b)


def test_masks_match_numpy():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = td.tensor(a)
    same(x[x > 5], a[a > 5])
    rows = np.array([True, False, True])
    same(x[td.tensor([True, False, True])], a[rows])
    same(x[:, [True, False, False, True]], a[:, [True, False, False, True]])
    x[x > 5] = 0
    a[a > 5] = 0
    same(x, a)
    with pytest.raises(IndexError, match="mask"):
        x[td.tensor([True, False])]


def test_assignment_broadcasts():
    a = np.zeros((4, 3), dtype=np.float32)
    x = td.zeros(4, 3)
    for key, value in ((0, 1.0), ((slice(None), 1), [1, 2, 3, 4]),
                       (slice(1, 3), [[7, 8, 9]]), ([0, 3], 5.0),
                       ((..., -1), 2), ([[0, 1], [2, 3]], 6)):
        x[key] = value if np.isscalar(value) else td.tensor(value)
        a[key] = value
        same(x, a)
    with pytest.raises(RuntimeError):
        x[0] = td.ones(4)
    with pytest.raises(TypeError, match="deleted"):
        del x[0]


def test_assignment_converts_the_dtype():
    x = td.zeros(3, dtype=td.int64)
    x[1] = 2.9
    x[2] = td.tensor(7.0)
    assert x.tolist() == [0, 2, 7]


@pytest.mark.parametrize("key, error", [
    (5, IndexError), (-6, IndexError), ((0, 0, 0, 0), IndexError),
    (1.5, IndexError), ("a", IndexError), (slice(None, None, -1), ValueError),
    (slice(None, None, 0), ValueError), ((..., ...), IndexError),
    ([9], IndexError), ([0.5], IndexError), ({}, IndexError),
    ((None,) * 30, IndexError), (2 ** 70, IndexError)])
def test_bad_subscripts(key, error):
    x = td.zeros(5, 3, 7)
    with pytest.raises(error):
        x[key]
    with pytest.raises(error):
        x[key] = 1


def test_subscripts_carry_gradients():
    x = td.arange(6.0).reshape(2, 3).requires_grad_()
    (x[0, 1:] * 2).sum().backward()
    assert x.grad.tolist() == [[0, 2, 2], [0, 0, 0]]
    x.grad = None
    x[[1, 1]].sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [2, 2, 2]]


def test_sequences():
    x = td.arange(6).reshape(3, 2)
    assert len(x) == 3 and [r.tolist() for r in x] == [[0, 1], [2, 3], [4, 5]]
    a, b, c = x
    assert b.tolist() == [2, 3]
    for call in (len, iter, list):
        with pytest.raises(TypeError, match="0-d"):
            call(td.tensor(1))
    assert [10, 20, 30][td.tensor(2)] == 30
    assert 3 in td.tensor([1, 3]) and 4 not in td.tensor([1, 3])


def test_conversions_of_one_element():
    x = td.tensor([2.5])
    assert float(x) == 2.5 and int(x) == 2 and bool(x)
    assert f"{td.tensor(2.5):.2f}" == "2.50"
    assert x.item() == 2.5 and td.tensor(True).item() is True
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(td.ones(2))
    with pytest.raises(TypeError, match="index"):
        [1, 2][td.tensor(1.0)]


@pytest.mark.parametrize("op", [
    "add", "sub", "mul", "truediv", "pow", "lt", "le", "gt", "ge", "eq", "ne"])
def test_operators_match_numpy(op):
    import operator
    f = getattr(operator, op)
    rng = np.random.default_rng(0)
    a = (rng.random((3, 5)) + 0.5).astype(np.float32)
    b = (rng.random((3, 5)) + 0.5).astype(np.float32)
    x, y = td.tensor(a), td.tensor(b)
    for left, right, expected in ((x, y, f(a, b)), (x, 2, f(a, 2)),
                                  (2.0, y, f(np.float32(2), b))):
        got = np.array(f(left, right).tolist(), dtype=expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_unary_operators():
    x = td.tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2.0] and (+x) is x
    assert abs(x).tolist() == [1.5, 2.0]
    assert (~td.tensor([True, False])).tolist() == [False, True]
    assert (td.ones(2, 3) @ td.ones(3)).tolist() == [3.0, 3.0]
    x -= 1
    x *= 2
    x /= 4
    assert x.tolist() == [-1.25, 0.5]


def test_operators_with_strangers():
    for f in (lambda: td.ones(2) + "a", lambda: [] * td.ones(2),
              lambda: td.ones(2) + None, lambda: pow(td.ones(2), 2, 3)):
        with pytest.raises(TypeError):
            f()
    assert (td.ones(2) == None) is False and (td.ones(2) != "a") is True


def test_hash_is_identity():
    x, y = td.ones(2), td.ones(2)
    assert len({x: 1, y: 2}) == 2 and {x: 1}[x] == 1


def test_repr():
    assert repr(td.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(td.tensor([1, 2])) == "tensor([1, 2])"
    x = td.ones(2, requires_grad=True)
    assert repr(x).endswith("requires_grad=True)")
    assert "grad_fn=<" in repr(x * 2)
    assert repr(x.shape) == "treadle.Size([2])"


def test_shape_questions():
    x = td.zeros(2, 3, 5)
    assert x.shape == (2, 3, 5) == x.size() and x.size(-1) == 5
    assert x.ndim == x.dim() == 3 and x.numel() == x.shape.numel() == 30
    assert x.stride() == (15, 5, 1) and x.is_contiguous()
    assert not x.mT.is_contiguous() and x.mT.shape == (2, 5, 3)
    assert td.zeros(2, 3).T.shape == (3, 2) and x.element_size() == 4


def test_conversions_between_dtypes():
    x = td.tensor([1.7, -1.7])
    assert x.long().tolist() == [1, -1] and x.double().dtype is td.float64
    assert x.to(td.float32) is x and x.float() is x
    assert x.to("cpu", td.int32).dtype is td.int32
    assert x.bool().tolist() == [True] * 2
    y = x.clone().requires_grad_()
    y.double().sum().backward()
    assert y.grad.dtype is td.float32
    with pytest.raises(NotImplementedError):
        x.to("cuda")


# NumPy and the buffer protocol


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32",
                                   "uint8", "bool", "float16", "int8",
                                   "int16"])
def test_numpy_round_trip(dtype):
    a = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    x = td.tensor(a)
    assert x.dtype is getattr(td, dtype)
    b = x.numpy()
    assert b.dtype == a.dtype
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.asarray(x.T), a.T)


def test_numpy_shares_memory_both_ways():
    a = np.arange(6.0).reshape(2, 3)
    x = td.from_numpy(a)
    assert x.dtype is td.float64
    a[0, 0] = 9
    x[1, 1] = 7
    assert x[0, 0].item() == 9 and a[1, 1] == 7
    b = x.numpy()
    b[0, 1] = 5
    assert a[0, 1] == 5 and x.data_ptr() == a.ctypes.data
    t = td.from_numpy(a.T[1:, :1])
    np.testing.assert_array_equal(t.numpy(), a.T[1:, :1])


def test_memory_outlives_its_maker(no_leaks):
    x = td.from_numpy(np.arange(1000.0))
    assert x[-1].item() == 999
    a = td.arange(1000.0).numpy()
    assert a[-1] == 999
    y = td.zeros(3)
    view = memoryview(y)
    y.data = td.ones(5)
    assert view.tolist() == [0, 0, 0]


def test_buffers_are_refused_with_reasons():
    x = td.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    with pytest.raises(BufferError):
        memoryview(x)
    with pytest.raises(BufferError):
        memoryview(td.ones(2).to(td.bfloat16))
    a = np.ones(3)
    a.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        td.from_numpy(a)
    assert td.as_tensor(a).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="negative"):
        td.from_numpy(np.ones(3)[::-1])
    with pytest.raises(ValueError, match="multiple"):
        td.from_numpy(np.zeros(3, [("a", "<i4"), ("b", "<f8")])["b"])
    assert td.tensor(np.arange(3)[::-1]).tolist() == [2, 1, 0]
    with pytest.raises(TypeError):
        td.tensor(np.array(["a"]))
    with pytest.raises(TypeError):
        td.tensor(np.ones(2, dtype=complex))


def test_other_exporters():
    assert td.tensor(array.array("d", [1, 2])).dtype is td.float64
    assert td.tensor(memoryview(b"ab")).tolist() == [97, 98]
    assert bytes(memoryview(td.tensor([1, 2], dtype=td.uint8))) == b"\1\2"


def test_as_tensor():
    x = td.ones(2)
    assert td.as_tensor(x) is x
    a = np.ones(2)
    td.as_tensor(a)[0] = 5
    assert a[0] == 5
    assert td.as_tensor([1, 2], dtype=td.float32).dtype is td.float32


def test_empty_and_rank_0():
    assert td.zeros(0, 3).numpy().shape == (0, 3)
    assert td.tensor(2.0).numpy().shape == ()
    assert td.zeros(0, 3)[:, 1].shape == (0,)
    assert td.tensor(3.0)[...].item() == 3.0
    assert td.tensor(3.0)[None].shape == (1,)
    with pytest.raises(IndexError):
        td.tensor(3.0)[0]


def test_max_and_min_have_three_forms():
    x = td.tensor([[1.0, 5.0, 2.0], [4.0, 0.0, 4.0]])
    assert x.max().item() == 5 and td.min(x).item() == 0
    values, indices = x.max(1)
    assert values.tolist() == [5, 4] and indices.tolist() == [1, 0]
    assert td.min(x, dim=0, keepdim=True).indices.tolist() == [[0, 1, 0]]
    assert td.max(x, td.full_like(x, 3)).tolist() == [[3, 5, 3], [4, 3, 4]]


def test_an_index_that_changes_the_tensor():
    class Swaps:
        def __index__(self):
            x.data = td.zeros(2)
            return 1
    x = td.arange(12.0).reshape(3, 4)
    with pytest.raises(IndexError):
        x[1, Swaps()]
    assert x.tolist() == [0.0, 0.0]


def test_size_names_its_dimension():
    x = td.zeros(2, 3)
    assert (x.size(-1), x.size(0), tuple(x.size())) == (3, 2, (2, 3))
    with pytest.raises(IndexError, match=r"size: dimension 2 is out of range of shape \[2, 3\]"):
        x.size(2)


def test_contiguous_is_the_tensor_itself_where_nothing_is_to_do():
    x = td.ones(2, 3)
    assert x.contiguous() is x
    x.contiguous().add_(1)
    assert x.tolist() == [[2.0] * 3] * 2
    assert x.transpose(0, 1).contiguous().data_ptr() != x.data_ptr()


@pytest.mark.parametrize("value, dtype", [
    (300, td.uint8), (-256, td.uint8), (2**31, td.int32),
    (-2**31 - 1, td.int32), (128, td.int8), (1e19, td.int64),
    (float("nan"), td.int64), (float("inf"), td.uint8)])
def test_a_number_beyond_the_dtype_is_refused(value, dtype):
    with pytest.raises(RuntimeError, match="does not fit"):
        td.tensor([0, value], dtype=dtype)


def test_numbers_at_the_edges_of_a_dtype():
    assert td.tensor([-1, 255], dtype=td.uint8).tolist() == [255, 255]
    assert td.tensor([127, -128], dtype=td.int8).tolist() == [127, -128]
    big = [2**63 - 1, -2**63]
    assert td.tensor(big, dtype=td.int64).tolist() == big
    assert td.tensor([1.9, -1.9], dtype=td.int64).tolist() == [1, -1]
    assert td.tensor([2, 0.5], dtype=td.bool).tolist() == [True, True]


def test_a_tensor_of_rank_0_is_a_number():
    assert td.full((2,), td.tensor(3.0)).tolist() == [3.0, 3.0]
    for wrong in (td.ones(1), td.tensor(3.0, requires_grad=True)):
        with pytest.raises(TypeError, match="must be a number"):
            td.full((2,), wrong)


def test_a_word_is_not_searched_for():
    with pytest.raises(RuntimeError, match="a Tensor holds no str"):
        "a" in td.ones(2)
    with pytest.raises(ValueError, match="'device'"):
        td.ones(2, device="\udc80")


def test_results_are_dense_whatever_strides_a_size_of_one_has():
    x = td.ones(3, 5)[:1, :1]
    assert x.stride() == (5, 1) and x.is_contiguous()
    assert (x + x).stride() == (x * 2).stride() == x.exp().stride() == (1, 1)
