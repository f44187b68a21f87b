# needs: exchange
# SPDX-License-Identifier: MIT
"""Memory, copies and names across the border of the library."""
import copy
import gc
import pickle

import numpy as np
import pytest
import treadle as td

DTYPES = [td.float32, td.float64, td.int64, td.int32, td.uint8, td.bool,
          td.float16, td.bfloat16, td.int8, td.int16]


def layouts(dtype):
    base = td.arange(60).reshape(3, 4, 5).to(dtype)
    return [base, base.transpose(0, 2), base[::2, 1:, ::3], base[1, 2, 3],
            base[:0], base[:, :1].expand(3, 4, 5), base[2]]


# DLPack

class Lender:
    """Lends as another library would: x's capsule, its own keywords."""

    def __init__(self, x, versions=True):
        self.x, self.versions, self.asked = x, versions, []

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **named):
        self.asked.append(named)
        if named and not self.versions:
            raise TypeError("unexpected keyword argument")
        return self.x.__dlpack__(**named)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("versions", [True, False])
def test_a_tensor_comes_back_on_the_same_memory(dtype, versions):
    for x in layouts(dtype):
        y = td.from_dlpack(Lender(x, versions))
        assert y.dtype is x.dtype and y.shape == x.shape
        assert y.stride() == x.stride() and y.tolist() == x.tolist()
        if x.numel():
            assert y.data_ptr() == x.data_ptr()


def test_a_loan_outlives_the_lender_and_is_freed_once():
    gc.collect()
    before = td.memory_stats()
    x = td.arange(1000.0)
    y = td.from_dlpack(x)
    x += 1
    del x
    gc.collect()
    assert y[999].item() == 1000
    unused = y.__dlpack__()
    del y, unused
    gc.collect()
    after = td.memory_stats()
    assert after["live_tensors"] == before["live_tensors"]
    assert after["bytes"] == before["bytes"]


def test_a_capsule_is_used_once():
    capsule = td.ones(2).__dlpack__()
    assert '"dltensor"' in repr(capsule)
    td.from_dlpack(capsule)
    assert '"used_dltensor"' in repr(capsule)
    with pytest.raises(ValueError, match="from_dlpack.*nobody has used"):
        td.from_dlpack(capsule)
    new = td.ones(2).__dlpack__(max_version=(1, 3))
    assert '"dltensor_versioned"' in repr(new)
    assert '"dltensor"' in repr(td.ones(2).__dlpack__(max_version=(0, 8)))
    for wrong in (3, None, "dltensor", object()):
        with pytest.raises(ValueError, match="from_dlpack"):
            td.from_dlpack(wrong)


def test_copies_are_copies():
    x = td.arange(6.0).reshape(2, 3).t()
    assert td.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert td.from_dlpack(x, copy=True).tolist() == x.tolist()
    assert td.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    y = td.from_dlpack(x.__dlpack__(copy=True))
    y += 1
    assert x[0, 0].item() == 0
    assert td.from_dlpack(x, device="cpu").device == td.device("cpu")


def test_what_cannot_be_lent_says_so():
    with pytest.raises(BufferError, match="requires grad.*detach"):
        td.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        td.ones(2).__dlpack__(dl_device=(2, 0))
    assert td.ones(2).__dlpack_device__() == (1, 0)


@pytest.mark.skipif(not hasattr(np, "from_dlpack"), reason="old NumPy")
def test_numpy_lends_and_borrows():
    a = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    x = td.from_dlpack(a)
    a[1, 1, 1] = -1
    assert x.tolist() == a.tolist()
    b = np.from_dlpack(x)
    assert b.strides == a.strides and b[1, 1, 1] == -1
    x[0, 0, 0] = 9
    assert b[0, 0, 0] == 9
    for dtype in "int8 int16 int32 int64 uint8 float16 float32".split():
        c = np.arange(5).astype(dtype)
        assert td.from_dlpack(c).dtype is getattr(td, dtype)
        assert np.from_dlpack(td.from_dlpack(c)).dtype == dtype


@pytest.mark.skipif(not hasattr(np, "from_dlpack"), reason="old NumPy")
def test_memory_that_must_be_copied():
    a = np.arange(12.0).reshape(3, 4)[::-1, ::-2]
    x = td.from_dlpack(a)
    assert x.tolist() == a.tolist()
    a[0, 0] = 99
    assert x[0, 0].item() == 11
    with pytest.raises(ValueError, match="can only be copied"):
        td.from_dlpack(a, copy=False)
    for wrong in (np.ones(2, "complex64"), np.ones(2, "uint32")):
        with pytest.raises(TypeError, match="from_dlpack"):
            td.from_dlpack(wrong)
    with pytest.raises(ValueError, match="rank 9"):
        td.from_dlpack(np.ones((1,) * 9))


# buffers

def misaligned():
    raw = np.zeros(33, "uint8")
    a = raw[1:].view("float32")
    a[:] = np.arange(8)
    return a


def test_a_misaligned_array_is_copied_or_refused():
    a = misaligned()
    with pytest.raises(ValueError, match="not aligned.*copy"):
        td.from_numpy(a)
    assert td.tensor(a).tolist() == td.as_tensor(a).tolist() == a.tolist()


def test_an_integer_that_is_too_long_names_the_operation():
    for data in (2 ** 70, [1, [2 ** 63][0]], [[-2 ** 64]]):
        with pytest.raises(OverflowError, match=r"tensor\(\).*64 bits"):
            td.tensor(data)


# copies that keep ties

WAYS = [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)),
        lambda x: pickle.loads(pickle.dumps(x, 0))]


@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_and_its_view_stay_tied(way):
    x = td.arange(12.0).reshape(3, 4)
    a, b, c = way((x, x.t()[1:, ::2], x[2, 3]))
    assert b.tolist() == x.t()[1:, ::2].tolist() and b.stride() == (1, 8)
    a += 100
    assert b[0, 0].item() == 101 and c.item() == 111
    assert x[0, 1].item() == 1
    assert a.untyped_storage() is b.untyped_storage()
    assert a.untyped_storage() is not x.untyped_storage()


@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_and_its_data_stay_tied(way):
    p = td.nn.Parameter(td.ones(3))
    p.grad = td.ones(3)
    q, d = way((p, p.data))
    assert type(q) is td.nn.Parameter and q.requires_grad
    d *= 5
    assert q.tolist() == [5, 5, 5]
    assert p.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_copies_of_every_dtype_and_layout(way, dtype):
    for x in layouts(dtype):
        y = way(x)
        assert (y.dtype, y.shape, y.stride(), y.tolist()) \
            == (x.dtype, x.shape, x.stride(), x.tolist())
    assert way(td.from_numpy(np.arange(6)[1::2])).tolist() == [1, 3, 5]
    nothing = td.from_numpy(np.ones((0, 3)))
    assert way(nothing).shape == (0, 3)


def test_a_pickle_that_lies_is_refused():
    storage = td.ones(4).untyped_storage()
    assert len(storage) == storage.nbytes() == 16
    make, (cls, _, *rest) = td.ones(2, 2).__reduce_ex__(4)[:2]
    assert make(cls, storage, *rest).tolist() == [[1, 1], [1, 1]]
    for shape, stride, offset in (((5,), (1,), 0), ((2, 2), (2, 1), 1),
                                  ((2,), (-1,), 3), ((4,), (1,), -1),
                                  ((2 ** 62, 2), (1, 1), 0),
                                  ((2,), (2 ** 62,), 0)):
        with pytest.raises((ValueError, RuntimeError), match="storage"):
            make(cls, storage, td.float32, shape, stride, offset, False)


def test_a_number_formats_as_a_number():
    x = td.tensor(1.5, requires_grad=True)
    assert f"{x}" == "1.5" and f"{x:.3f}" == "1.500"
    assert f"{td.tensor(7):>3}" == "  7"
    assert f"{td.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError, match="format"):
        f"{td.ones(2):.2f}"


def test_parts_of_a_shape_are_shapes():
    s = td.zeros(2, 3, 5).shape
    for part, is_ in ((s[1:], (3, 5)), (s[::2], (2, 5)), (s + (1,),
                      (2, 3, 5, 1)), (s * 2, (2, 3, 5, 2, 3, 5)), (s[:0], ())):
        assert type(part) is td.Size and part == is_
    assert s[1:].numel() == 15 and s[-1] == 5 and s[:0].numel() == 1
    assert type(pickle.loads(pickle.dumps(s))) is td.Size
    with pytest.raises(IndexError):
        s[3]


def test_strides_one_by_one():
    x = td.zeros(2, 3, 5)[:, 1:]
    assert x.stride() == (15, 5, 1) and x.stride(0) == 15
    assert x.stride(-1) == 1 and x.storage_offset() == 5
    for dim in (3, -4):
        with pytest.raises(IndexError, match=str(dim)):
            x.stride(dim)
    with pytest.raises(IndexError, match="stride"):
        td.tensor(1.0).stride(0)
