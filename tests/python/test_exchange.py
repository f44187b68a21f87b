# needs: exchange
# SPDX-License-Identifier: MIT
"""Memory, copies and names across the border of the library."""
import copy
import gc
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import treadle as td
from treadle.utils.data import DataLoader

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
    for _ in range(3):                  # what other tests left frees more when it goes
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


@pytest.mark.skipif(not (Path(os.environ.get("TREADLE_BUILD", "build")) / "libtreadle_emulate.so").exists(),
                    reason="the emulated device was not built")
def test_copies_on_a_device():
    program = """
import copy, pickle
import treadle as td
x = td.ones(3, device="cuda", dtype=td.float64, requires_grad=True)
for y in pickle.loads(pickle.dumps(x)), copy.deepcopy(x):
    print(y.device, y.tolist(), y.requires_grad)
print(x.__dlpack_device__(), td.from_dlpack(x.detach().cpu()).tolist())
print(x.type(), x.long().type(), isinstance(x, td.cuda.DoubleTensor))
print(x.new_ones(2).device, td.cuda.FloatTensor([1, 2]).tolist())
for dl_device in (None, (1, 0)):
    try:
        print(x.detach().__dlpack__(dl_device=dl_device) is not None)
    except BufferError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program],
                          capture_output=True, text=True,
                          env={**os.environ, "TREADLE_CUDA": "emulate"})
    assert done.stdout.splitlines() == [
        "cuda:0 [1.0, 1.0, 1.0] True"] * 2 + [
        "(2, 0) [1.0, 1.0, 1.0]",
        "treadle.cuda.DoubleTensor treadle.cuda.LongTensor True",
        "cuda:0 [1.0, 2.0]",
        "__dlpack__: memory of cuda:0 cannot be lent to device (2, 0); "
        "use x.cpu()", "True"], done


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


# types

def test_what_types_can_hold():
    for name in ("float16", "float32", "float64"):
        ours, theirs = td.finfo(getattr(td, name)), np.finfo(name)
        for field in ("bits", "eps", "max", "min", "tiny"):
            assert getattr(ours, field) == getattr(theirs, field), field
        assert ours.resolution == pytest.approx(float(theirs.resolution), 1e-3)
        assert ours.dtype == name
    assert td.finfo().dtype == "float32"
    assert td.finfo(td.bfloat16).max == 3.3895313892515355e38
    for name in ("int8", "int16", "int32", "int64", "uint8"):
        ours, theirs = td.iinfo(getattr(td, name)), np.iinfo(name)
        assert (ours.min, ours.max, ours.bits) \
            == (theirs.min, theirs.max, theirs.bits)
    with pytest.raises(TypeError, match="int64"):
        td.finfo(td.int64)
    with pytest.raises(TypeError, match="float32"):
        td.iinfo(td.float32)


def test_promotion_asked_for_is_promotion_done():
    kinds = [td.bool, td.uint8, td.int32, td.int64, td.float32, td.float64]
    shapes = [(2,), ()]
    values = [td.ones(s, dtype=k) for k in kinds for s in shapes]
    for a in values:
        for b in values + [1, 2.5]:
            assert td.result_type(a, b) is (a + b).dtype, (a, b)
        for k in kinds:
            assert td.promote_types(a.dtype, k) \
                is (td.ones(1, dtype=a.dtype) + td.ones(1, dtype=k)).dtype
    assert td.result_type(1, 2.5) is td.float32
    assert td.result_type(True, 1) is td.int64
    assert td.promote_types(td.uint8, td.int8) is td.int16
    assert td.can_cast(td.int64, td.float32)
    assert td.can_cast(td.float64, td.float16)
    assert not td.can_cast(td.float32, td.int64)
    assert not td.can_cast(td.uint8, td.bool)


def test_the_default_dtype():
    assert td.get_default_dtype() is td.float32
    try:
        td.set_default_dtype(td.float64)
        assert td.tensor([1.5]).dtype is td.get_default_dtype() is td.float64
        assert td.Tensor(2).dtype is td.float64
        td.set_default_tensor_type("torch.FloatTensor")
        assert td.zeros(1).dtype is td.float32
        td.set_default_tensor_type(td.DoubleTensor)
        assert td.zeros(1).dtype is td.float64
    finally:
        td.set_default_dtype(td.float32)
    for wrong in (td.int64, None, "float64"):
        with pytest.raises(TypeError):
            td.set_default_dtype(wrong)


def test_typed_constructors():
    x = td.LongTensor([[1, 2], [3, 4]])
    assert x.dtype is td.int64 and isinstance(x, td.LongTensor)
    assert not isinstance(x, td.FloatTensor) and not isinstance(3, td.LongTensor)
    assert not isinstance(x, td.cuda.LongTensor)
    assert td.FloatTensor(2, 3).shape == (2, 3)
    assert td.FloatTensor(np.ones((2, 2))).dtype is td.float32
    assert td.HalfTensor(td.Size([4, 1])).shape == (4, 1)
    assert td.ByteTensor([1, 255]).tolist() == [1, 255]
    assert td.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert td.Tensor().shape == (0,) and td.Tensor(2, 0).shape == (2, 0)
    y = td.ones(3)
    assert td.Tensor(y).data_ptr() == y.data_ptr()
    assert x.type() == "treadle.LongTensor"
    for to in (td.IntTensor, "torch.IntTensor", "treadle.IntTensor", td.int32):
        assert x.type(to).dtype is td.int32
    with pytest.raises(ValueError, match="torch.Tensr"):
        x.type("torch.Tensr")
    with pytest.raises(TypeError, match="DoubleTensor.*float32"):
        td.DoubleTensor(y)
    with pytest.raises(TypeError, match="float"):
        td.Tensor(2.5)

    class Mine(td.Tensor):
        pass
    assert type(Mine([1.0])) is Mine and Mine([1.0]).tolist() == [1]


def test_methods_named_after_types():
    x = td.tensor([0.0, 2.5, -1.5])
    for name, dtype in dict(
            float=td.float32, double=td.float64, half=td.float16,
            bfloat16=td.bfloat16, long=td.int64, int=td.int32,
            short=td.int16, char=td.int8, bool=td.bool).items():
        y = getattr(x, name)()
        assert y.dtype is dtype and y.tolist() == x.to(dtype).tolist()
    assert x.float() is x and x.bool().tolist() == [False, True, True]
    assert x[:2].byte().tolist() == [0, 2]
    assert td.int8.is_signed and not td.uint8.is_signed


def test_every_way_to_call_to():
    x = td.ones(2)
    other = td.zeros(1, dtype=td.float64)
    for y in (x.to(td.float64), x.to("cpu", td.float64),
              x.to(td.device("cpu"), td.float64, True, True),
              x.to(other), x.to(dtype=td.float64, non_blocking=True),
              x.to(td.float64, True), x.to(None, td.float64), x.to(float)):
        assert y.dtype is td.float64 and y.tolist() == [1, 1]
    assert x.to("cpu", non_blocking=True) is x and x.to(x) is x
    assert x.to("cpu", copy=True) is not x
    assert x.to(td.float32, False, True) is not x
    assert td.device(1) == td.device("cuda", 1) == td.device("cuda:1")


# making tensors

def test_asarray_shares_what_it_can():
    a = np.arange(4.0)
    x = td.asarray(a)
    a[0] = 7
    assert x[0].item() == 7 and td.asarray(a, copy=False)[0].item() == 7
    y = td.asarray(a, copy=True)
    a[0] = 8
    assert y[0].item() == 7
    assert td.asarray(a, dtype=td.float32).dtype is td.float32
    with pytest.raises(ValueError, match="asarray.*copied"):
        td.asarray(a, dtype=td.float32, copy=False)
    with pytest.raises(ValueError, match="asarray"):
        td.asarray([1, 2], copy=False)
    t = td.ones(2, requires_grad=True)
    assert td.asarray(t, requires_grad=True) is t
    assert not td.asarray(t).requires_grad
    assert td.asarray(t).data_ptr() == t.data_ptr()
    assert td.asarray([1.0], requires_grad=True).requires_grad
    assert td.asarray(3).shape == () and td.asarray([1, 2]).dtype is td.int64


def test_frombuffer_reads_bytes():
    data = bytearray(np.arange(6, dtype="int32").tobytes())
    x = td.frombuffer(data, dtype=td.int32)
    data[0] = 9
    assert x.tolist() == [9, 1, 2, 3, 4, 5]
    assert td.frombuffer(data, dtype=td.int32, count=2, offset=8).tolist() \
        == [2, 3]
    assert td.frombuffer(bytes(data), dtype=td.int32)[5].item() == 5
    odd = td.frombuffer(data, dtype=td.int32, offset=3, count=2)
    assert odd.tolist() == np.frombuffer(data, "int32", 2, 3).tolist()
    for named in (dict(offset=1), dict(offset=24), dict(offset=-1),
                  dict(count=7), dict(count=0), dict(count=2, offset=20)):
        with pytest.raises(ValueError, match="frombuffer"):
            td.frombuffer(data, dtype=td.int32, **named)
    with pytest.raises(ValueError):
        td.frombuffer(b"", dtype=td.int32)


def test_lists_of_arrays():
    rows = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    assert td.tensor(rows).tolist() == [[1, 2], [3, 4]]
    assert td.tensor([np.float32(1), np.int64(2)]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="length"):
        td.tensor([rows[0], rows[1][:1]])


def test_new_tensors_like_another():
    x = td.zeros(2, dtype=td.float64)
    assert x.new_zeros(2, 3).dtype is td.float64
    assert x.new_ones((3,)).tolist() == [1, 1, 1]
    assert x.new_full((2,), 7.5).tolist() == [7.5, 7.5]
    assert x.new_full(size=(2,), fill_value=1).dtype is td.float64
    assert x.new_empty(0, 2).shape == (0, 2)
    assert x.new_tensor([1, 2]).dtype is td.float64
    assert x.new_tensor([1], dtype=td.int32).dtype is td.int32
    assert x.new_zeros(1, requires_grad=True).requires_grad
    assert x.new(3, 2).shape == (3, 2) and x.new([1.5]).tolist() == [1.5]


def test_random_tensors_under_other_names():
    td.manual_seed(1)
    x = td.randint(10, (1000,))
    assert x.dtype is td.int64 and set(x.tolist()) == set(range(10))
    td.manual_seed(1)
    assert td.randint(0, 10, (1000,)).tolist() == x.tolist()
    td.manual_seed(1)
    assert td.randint(high=10, size=(1000,)).tolist() == x.tolist()
    assert td.randint_like(td.zeros(4, 3), 5).dtype is td.float32
    assert td.normal(2.0, 0.0, (3,)).tolist() == [2, 2, 2]
    y = td.normal(td.arange(4.0), td.zeros(4))
    assert y.tolist() == [0, 1, 2, 3]
    assert td.normal(5.0, td.zeros(2)).tolist() == [5, 5]
    z = td.empty(10000).exponential_(2.0)
    assert abs(z.mean().item() - 0.5) < 0.02 and z.min().item() >= 0
    with pytest.raises(RuntimeError, match="lambd must be above 0, not -1"):
        z.exponential_(-1)
    r = td.empty(1000, dtype=td.int64).random_(3, 5)
    assert set(r.tolist()) == {3, 4}
    assert set(td.empty(99, dtype=td.bool).random_().tolist()) == {True, False}


# questions

def test_small_questions():
    x = td.zeros(2, 3, dtype=td.float64)
    assert (x.nbytes, x.itemsize, x.ndimension()) == (48, 8, 2)
    assert td.numel(x) == 6 and td.is_floating_point(x)
    assert x.layout is td.strided and repr(td.strided) == "treadle.strided"
    assert x.is_cpu and not x.is_cuda and x.get_device() == -1
    assert not (x.is_sparse or x.is_quantized or x.is_complex())
    assert x.is_signed() and not x.is_pinned()
    assert td.is_nonzero(td.tensor(2)) and not td.tensor(0.0).is_nonzero()
    assert x.is_same_size(td.ones(2, 3)) and not td.is_complex(x)
    assert x.real is x and x.H.shape == (3, 2)
    assert x.ravel().shape == (6,) and td.ravel(td.tensor(1)).shape == (1,)
    assert list(reversed(td.arange(3)))[0].item() == 2
    assert complex(td.tensor(2.0)) == 2 and td.pi == np.pi
    assert td.concat([td.ones(1), td.zeros(1)]).tolist() == [1, 0]


def test_numpy_functions_give_tensors():
    x = td.tensor([0.0, 1.0])
    y = np.exp(x)
    assert isinstance(y, td.Tensor) and abs(y[1].item() - np.e) < 1e-6
    assert isinstance(np.ones(2) + x, td.Tensor)
    assert isinstance(np.add(np.ones(2), x), td.Tensor)
    assert np.mean(x).item() == 0.5
    g = td.ones(2, requires_grad=True)
    assert g.numpy(force=True).tolist() == [1, 1]


def test_keywords_that_no_row_has():
    x = td.arange(6.0).reshape(2, 3)
    assert x.sum(axis=1, keepdims=True).tolist() == [[3], [12]]
    assert td.cat([x, x], axis=0).shape == (4, 3)
    assert td.zeros(2, layout=td.strided, pin_memory=False).tolist() == [0, 0]
    assert td.zeros_like(x, memory_format=td.preserve_format,
                         requires_grad=True).requires_grad
    out = td.empty(3)
    assert td.exp(x[0], out=out) is out
    assert out.tolist() == x[0].exp().tolist()
    out = td.empty(0)
    td.matmul(x, x.t(), out=out)
    assert out.tolist() == (x @ x.t()).tolist()
    with pytest.raises(RuntimeError, match="shape"):
        td.exp(x, out=td.empty(5))
    with pytest.raises(RuntimeError, match="cast"):
        td.exp(x, out=td.empty(2, 3, dtype=td.int64))
    with pytest.raises(RuntimeError, match="grad"):
        td.exp(x.requires_grad_(), out=td.empty(2, 3))
    for named in (dict(bogus=1), dict(dim=0, axis=0),
                  dict(requires_grad=True)):
        with pytest.raises(TypeError, match="sum.*unexpected keyword"):
            td.sum(x, **named)


def test_short_formulas():
    p = td.tensor([0.2, 0.5, 1.0], dtype=td.float64)
    assert td.allclose(td.logit(p, 1e-3).sigmoid(),
                       p.clamp(1e-3, 1 - 1e-3))
    x = np.arange(24.0).reshape(2, 3, 4) ** 2
    for n in (0, 1, 2, 4):
        for dim in (0, -1):
            got = td.diff(td.from_numpy(x), n, dim)
            assert got.tolist() == np.diff(x, n, dim).tolist()
    assert td.autograd.gradcheck(lambda a: td.diff(a, 2).logit(0.01),
                                 td.rand(2, 5, dtype=td.float64)
                                 .requires_grad_())
    for f in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for shape in ((), (2,), (2, 3), (2, 3, 4)):
            assert getattr(td, f)(td.zeros(shape)).shape \
                == getattr(np, f)(np.zeros(shape)).shape
    np.testing.assert_allclose(td.logspace(-2, 3, 6), np.logspace(-2, 3, 6),
                               rtol=1e-6)
    assert td.logspace(0, 3, 4, base=2, dtype=td.int64).tolist() \
        == [1, 2, 4, 8]


def test_second_names_of_functions_written_in_python():
    x = td.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.max(axis=1, keepdims=True)[0].tolist() == [[5], [7]]
    assert td.min(x, axis=0).values.tolist() == [1, 2]
    assert td.allclose(x.var(axis=1), x.var(dim=1))


# settings

def test_print_options():
    x = td.tensor([1.23456789, 20.5])
    try:
        td.set_printoptions(precision=2)
        assert repr(x) == "tensor([ 1.23, 20.50])"
        td.set_printoptions(sci_mode=True)
        assert repr(x) == "tensor([1.23e+00, 2.05e+01])"
        td.set_printoptions(sci_mode=False, precision=4, threshold=4,
                            edgeitems=1)
        assert repr(td.arange(5)) == "tensor([0,  ..., 4])"
        assert repr(td.arange(4)) == "tensor([0, 1, 2, 3])"
        assert repr(td.tensor([1e-5, 1.0])) \
            == "tensor([    0.0000,     1.0000])"
        td.set_printoptions(profile="default", linewidth=20)
        assert repr(td.arange(6)) == "tensor([0, 1, 2, 3,\n        4, 5])"
        td.set_printoptions(profile="full")
        assert "..." not in repr(td.zeros(2000))
        assert len(repr(td.tensor(1.7976e308).double())) > 10
        for named in (dict(precision=-1), dict(edgeitems=0),
                      dict(linewidth=0), dict(threshold=-1)):
            with pytest.raises(ValueError, match="set_printoptions"):
                td.set_printoptions(**named)
    finally:
        td.set_printoptions(profile="default")
    assert repr(x) == "tensor([ 1.2346, 20.5000])"


def test_the_state_of_random_numbers():
    td.manual_seed(5)
    td.rand(3)
    state = td.get_rng_state()
    a = td.randn(4).tolist()
    td.set_rng_state(state)
    assert td.randn(4).tolist() == a and td.initial_seed() == 5
    g = td.Generator().manual_seed(2 ** 63 + 1)
    td.rand(1, generator=g)
    state = g.get_state()
    b = td.rand(4, generator=g).tolist()
    assert td.rand(4, generator=g.set_state(state)).tolist() == b
    assert g.initial_seed() == 2 ** 63 + 1
    before = td.get_rng_state().tolist()
    with td.random.fork_rng():
        td.rand(5)
    assert td.get_rng_state().tolist() == before
    with pytest.raises(ValueError, match="16 bytes"):
        td.set_rng_state(td.zeros(3, dtype=td.uint8))


def test_switches_that_change_nothing():
    td.backends.cudnn.benchmark = True
    td.backends.cuda.matmul.allow_tf32 = True
    assert not td.backends.mps.is_available()
    td.use_deterministic_algorithms(True)
    td.set_float32_matmul_precision("high")
    import treadle.backends.cudnn as cudnn
    assert cudnn is td.backends.cudnn and cudnn.benchmark
    td.cuda.manual_seed_all(1)
    with pytest.raises(ValueError, match=r"one of \['highest', 'high', 'medium'\], got 'low'"):
        td.set_float32_matmul_precision("low")


def test_switches_that_are_off_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        td.ones(2, pin_memory=False)
        DataLoader([1, 2], pin_memory=False)


def test_without_a_device_no_memory_is_pinned():
    x = td.ones(2)
    assert x.is_pinned() is False and td.is_pinned(x) is False
    for ask in (x.pin_memory, lambda: td.ones(2, pin_memory=True), lambda: td.empty((2,), pin_memory=True),
                lambda: td._C._pin_memory(x)):
        with pytest.raises(NotImplementedError, match="pin_memory: device cuda is not available"):
            ask()
    for wrong in ([], None, "x", 3, object(), td.Tensor):
        for ask in td._C._pin_memory, td._C._is_pinned:
            with pytest.raises(TypeError, match="pin.*expected a Tensor"):
                ask(wrong)
    loader = DataLoader([1, 2], pin_memory=True, pin_memory_device="cuda")
    for _ in range(2):          # at each epoch, as PyTorch's
        with pytest.warns(UserWarning, match="pin_memory has no effect: no device"):
            assert [b.tolist() for b in loader] == [[1], [2]]
    with pytest.raises(ValueError, match="pin_memory_device, got 'cpu'"):
        DataLoader([1, 2], pin_memory=True, pin_memory_device="cpu")
    with td.autograd.graph.save_on_cpu(pin_memory=True):    # as PyTorch's: pinned where that is possible
        y = (x.requires_grad_() ** 2).sum()
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_sizes_beyond_the_rank_are_refused():
    x = td.arange(4)
    for sizes in ((1,) * 9, (1,) * 9000):
        with pytest.raises(ValueError, match=f"storage: {len(sizes)} dimensions, at most 8"):
            td._C._over_storage(x.untyped_storage()._bytes, td.int64, sizes, sizes, 0)


def test_arrays_on_request():
    x = td.arange(3)
    assert x.__array__().dtype == "int64"
    assert x.__array__("float32").dtype == "float32"
    assert x.__array__(copy=True).ctypes.data != x.data_ptr()
    assert x.__array__(copy=False).ctypes.data == x.data_ptr()
    with pytest.raises(ValueError, match="__array__.*copy"):
        x.__array__("float32", copy=False)


def test_a_sum_scales_what_it_adds():
    x = td.tensor([1.0, -2.0], requires_grad=True)
    assert td.add(x, x, alpha=2).tolist() == [3, -6]
    assert x.sub(1, alpha=3).tolist() == [-2, -5]
    assert td.add(x, other=x, alpha=2).tolist() == [3, -6]
    assert td.add(input=x, other=x, alpha=2).tolist() == [3, -6]
    assert x.detach().clone().add_(x.detach(), alpha=0.5).tolist() == [1.5, -3]
    td.sub(x, x * x, alpha=3).sum().backward()
    assert x.grad.tolist() == [-5.0, 13.0]
    with pytest.raises(TypeError, match="alpha"):
        td.mul(x, x, alpha=2)


def test_no_wrapper_without_a_tensor():
    with pytest.raises(TypeError, match="not safe"):
        object.__new__(td.Tensor)

    class Mine(td.Tensor):
        def __new__(cls, data):
            return super().__new__(cls, data)
    assert type(Mine([1.0])) is Mine
    assert td.Tensor.__new__(td.Tensor).shape == (0,)


def test_broadcast_to_takes_sizes_one_by_one():
    assert td.ones(2).broadcast_to(3, 2).shape == (3, 2)
    with pytest.raises(RuntimeError, match="std = -1"):
        td.normal(0.0, -1, (2,))


# --- bools of other bytes than 0 and 1 -----------------------------------------

def odd_truths():
    """True, False, True, True in the bytes of a picture."""
    return np.array([255, 0, 2, 1], np.uint8).view(bool)


def lent(bytes_of):
    """A tensor whose bytes somebody else has written to."""
    x = td.zeros(4, dtype=td.bool)
    x.numpy().view(np.uint8)[:] = bytes_of
    return x


@pytest.mark.parametrize("make", [
    td.tensor, td.as_tensor, td.asarray, lambda a: td.tensor(a.data), lambda a: td.tensor(a[::-1].copy()[::-1]),
    lambda a: td.frombuffer(a.view(np.uint8), dtype=td.bool), lambda a: td.frombuffer(a.tobytes(), dtype=td.bool),
    lambda a: td.from_dlpack(lent(a.view(np.uint8))), lambda a: td.from_dlpack(lent(a.view(np.uint8)), copy=True)])
def test_truths_of_any_byte_are_ones(make, no_leaks):
    x, y = make(odd_truths()), td.tensor([True, False, True, True])
    assert x.dtype is td.bool and repr(x) == repr(y) and td.equal(x, y) and (x == y).all().item()
    assert x.sum().item() == 3 and x.long().tolist() == [1, 0, 1, 1] and x.float().mean().item() == 0.75
    assert td.arange(4)[x].tolist() == [0, 2, 3] and x.nonzero().flatten().tolist() == [0, 2, 3]
    assert td.where(x, 1, 2).tolist() == [1, 2, 1, 1] and (x & y).tolist() == y.tolist() and (x ^ y).any().item() is False
    assert x.unique().tolist() == [False, True] and x.numpy().view(np.uint8).tolist() == [1, 0, 1, 1]


def test_bools_that_are_no_truths_are_not_shared(no_leaks):
    good = np.ones((3, 4), bool)
    x = td.from_numpy(good[:, ::2])
    good[1, 2] = False
    assert x.tolist() == [[True, True], [True, False], [True, True]]
    for bad in (odd_truths(), odd_truths()[::2], odd_truths().reshape(2, 2)[:, :1]):
        with pytest.raises(ValueError, match="bools of other bytes than 0 and 1 cannot be shared"):
            td.from_numpy(bad)
    assert td.from_numpy(odd_truths()[1::2]).tolist() == [False, True] and td.from_numpy(np.array(True)).item() is True
    with pytest.raises(ValueError, match="can only be copied"):
        td.from_dlpack(lent([2, 0, 0, 0]), copy=False)
    with pytest.raises(ValueError, match="copy is False"):
        td.asarray(odd_truths(), copy=False)
    with pytest.raises(ValueError, match="bools of other bytes"):
        copy.deepcopy(lent([2, 0, 0, 0]))
