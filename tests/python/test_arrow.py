# needs: arrow
# SPDX-License-Identifier: MIT
"""Columns of tables beside PyArrow and Polars, and arrays that describe themselves.

`make deps-peers` puts both peers into .peers; then
    PYTHONPATH=build/python .peers/bin/python -m pytest tests/python/test_arrow.py
Without them our own tables are traded with ourselves, and with structures made by ctypes.
"""
import ctypes
import gc
import math

import numpy as np
import pytest
import treadle as td
from treadle.utils.data import ArrowDataset, DataLoader, TensorDataset


def peer(name):
    try:
        return __import__(name)
    except ImportError as error:
        pytest.skip(f"{name} cannot be imported ({error}); make deps-peers installs it for .peers/bin/python")


@pytest.fixture
def pa():
    return peer("pyarrow")


@pytest.fixture
def pl():
    return peer("polars")


DTYPES = [td.float32, td.float64, td.float16, td.int64, td.int32, td.int16, td.int8, td.uint8]


# Structures as another program makes them

class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Pointer = ctypes.POINTER
Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", Pointer(Pointer(Schema))),
                   ("dictionary", Pointer(Schema)), ("release", ctypes.c_void_p), ("private", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", Pointer(ctypes.c_void_p)),
                  ("children", Pointer(Pointer(Array))), ("dictionary", Pointer(Array)),
                  ("release", ctypes.c_void_p), ("private", ctypes.c_void_p)]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def released(structure):
    pass


class Made:
    """int32 numbers 0, 1, ... that anybody may ask for, with fields as the test wants them."""
    all = []                    # nobody frees what is lent

    def __init__(self, format=b"i", length=5, numbers=16, **fields):
        Made.all.append(self)
        self.data = (ctypes.c_int32 * numbers)(*range(numbers))
        self.bits = (ctypes.c_ubyte * 8)(0b11111011)
        self.buffers = (ctypes.c_void_p * 2)(None, ctypes.addressof(self.data))
        if fields.get("null_count"):
            self.buffers[0] = ctypes.addressof(self.bits)
        release = ctypes.cast(released, ctypes.c_void_p)
        self.schema = Schema(format=format, release=release)
        self.array = Array(length=length, n_buffers=2, buffers=self.buffers, release=release)
        for name, value in fields.items():
            setattr(self.schema if name == "format" else self.array, name, value)

    def __arrow_c_array__(self, requested_schema=None):
        return (new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
                new_capsule(ctypes.addressof(self.array), b"arrow_array", None))


def test_an_array_is_shared():
    made = Made()
    x = td.from_arrow(made)
    assert x.dtype is td.int32 and x.tolist() == [0, 1, 2, 3, 4]
    assert x.data_ptr() == ctypes.addressof(made.data)
    assert td.from_arrow(Made(offset=3)).tolist() == [3, 4, 5, 6, 7]
    assert td.as_tensor(made).data_ptr() == x.data_ptr()
    assert td.tensor(made, dtype=td.float32).tolist() == [0, 1, 2, 3, 4]


def test_gaps_are_an_error_or_filled():
    with pytest.raises(ValueError, match="column '' misses 1 of 5 elements; say what fills them"):
        td.from_arrow(Made(null_count=-1))
    for null_count in (-1, 1):
        assert td.from_arrow(Made(null_count=null_count), fill=-7).tolist() == [0, 1, -7, 3, 4]
    assert td.from_arrow(Made(null_count=-1, offset=3), fill=-7).tolist() == [3, 4, 5, 6, 7]
    with pytest.raises(RuntimeError, match="nan does not fit int32"):
        td.from_arrow(Made(null_count=1), fill=math.nan)
    for fill in 1.5, 2.0 ** 31 - 0.5:
        with pytest.raises(ValueError, match="say what fills them"):
            td.from_arrow(Made(null_count=1), fill=fill)
    with pytest.raises(TypeError, match="fill must be a number, not str"):
        td.from_arrow(Made(null_count=1), fill="x")
    with pytest.raises(ValueError, match="misses"):
        td.tensor(Made(null_count=-1))


@pytest.mark.parametrize("fields", [
    {"length": -1}, {"offset": -1}, {"offset": 2 ** 63 - 2}, {"n_buffers": 1}, {"n_buffers": 3}, {"n_children": 1},
    {"buffers": None}, {"release": None}, {"format": None}, {"format": b"+w:2"}, {"format": b"+w:x"}])
def test_structures_that_lie_are_refused(fields):
    with pytest.raises(ValueError, match="malformed|released"):
        td.from_arrow(Made(**fields))


@pytest.mark.parametrize("format, name", [(b"I", "uint32"), (b"u", "text"), (b"vu", "text"), (b"+l", "lists"),
                                          (b"tdD", "no number"), (b"ii", "no number"), (b"\x7f", "no number")])
def test_other_types_are_refused_by_name(format, name):
    with pytest.raises(NotImplementedError, match=f"holds .*{name}"):
        td.from_arrow(Made(format=format))


def test_what_lends_nothing_is_refused():
    for wrong in (3, [1.0], object(), np.ones(2)):
        with pytest.raises(TypeError, match="__arrow_c_array__ or __arrow_c_stream__, not"):
            td.from_arrow(wrong)
    with pytest.raises(ValueError, match="capsule|PyCapsule"):
        td._C._arrow_next(td.ones(2).__arrow_c_array__()[0])


# Trading with ourselves

@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_come_back_on_the_same_memory(dtype):
    for shape in ((7,), (4, 3), (2, 3, 5), (0,), (0, 3), (3, 0)):
        x = (td.arange(math.prod(shape)) % 5).reshape(shape).to(dtype)
        y = td.from_arrow(x)
        assert y.dtype is dtype and y.shape == x.shape and y.tolist() == x.tolist()
        assert x.numel() == 0 or y.data_ptr() == x.data_ptr()
        turned = x.t() if x.dim() == 2 else x[::2]
        assert td.from_arrow(turned).tolist() == turned.tolist()
    b = td.arange(21).reshape(7, 3) % 2 == 0
    assert td.from_arrow(b).tolist() == b.tolist()


def test_what_cannot_be_lent_says_so():
    with pytest.raises(ValueError, match="column '' has 0 rows"):
        td.tensor(1.0).__arrow_c_array__()
    for x in (td.ones(2, requires_grad=True), td.ones(2).bfloat16()):
        with pytest.raises(NotImplementedError, match="requires grad or is bfloat16"):
            x.__arrow_c_array__()
    with pytest.raises(ValueError, match="'y' has 3 rows, expected 2"):
        td.to_arrow({"x": td.ones(2), "y": td.ones(3)}).__arrow_c_stream__()


def test_loans_outlive_lenders(no_leaks):
    x = td.arange(1000.0)
    pair = x.__arrow_c_array__()
    stream = td.to_arrow({"x": x, "b": x > 3}).__arrow_c_stream__()
    x = td._C._from_arrow(*pair, -1, None)
    del pair
    gc.collect()
    assert x[999].item() == 999
    schema, array = td._C._arrow_next(stream)
    assert td._C._arrow_next(stream)[1] is None
    y = td._C._from_arrow(schema, array, 0, None)
    del stream, array
    gc.collect()
    assert y.sum().item() == 499500


def test_tables_are_dictionaries():
    table = td.to_arrow({"x": td.arange(3.0), "größe": td.arange(6).reshape(3, 2)})
    found = td.from_arrow(table)
    assert list(found) == ["x", "größe"] and found["größe"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert list(td.from_arrow(table, ["größe", "x"])) == ["größe", "x"]
    assert td.from_arrow(table, "x").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"no column 'y', there are \['x', 'größe'\]"):
        td.from_arrow(table, "y")
    assert td.from_arrow(td.to_arrow({"x": td.ones(0, 3)}))["x"].shape == (0, 3)


def test_a_dataset_of_a_table_feeds_a_loader():
    x, y = td.randn(10, 3), td.arange(10)
    data = ArrowDataset(td.to_arrow({"y": y, "more": y, "x": x}), ["x", "y"])
    assert len(data) == 10 and data.columns == ["x", "y"]
    assert data[3][0].tolist() == x[3].tolist() and data[-1][1].item() == 9
    seen = []
    for bx, by in DataLoader(data, 4, shuffle=True):
        assert bx.tolist() == x[by].tolist()
        seen += by.tolist()
    assert sorted(seen) == list(range(10))
    assert td.from_arrow(data)["x"].data_ptr() == x.data_ptr()
    assert list(td.from_arrow(TensorDataset(x, y))) == ["0", "1"]
    assert ArrowDataset(x)[2][0].tolist() == x[2].tolist()
    assert ArrowDataset(data, "y")[4][0].item() == 4


# Arrays that describe themselves

class Interface:
    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Method:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("kind", [Interface, Method])
def test_arrays_of_others_are_read(kind):
    a = np.arange(24.0, dtype=np.float32).reshape(4, 6).T
    x = td.as_tensor(kind(a))
    a[1, 1] = -1
    assert x.tolist() == a.tolist() and x.data_ptr() == a.ctypes.data
    y = td.tensor(kind(a[::-1]), dtype=td.float64)
    assert y.tolist() == a[::-1].tolist() and td.as_tensor(kind(a[::-1])).tolist() == y.tolist()
    with pytest.raises(TypeError):
        td.tensor(kind(np.array([None])))
    with pytest.raises(TypeError):
        td.as_tensor(kind(np.array([1j])))


@pytest.mark.parametrize("dtype", DTYPES + [td.bool])
def test_numpy_reads_our_description(dtype):
    x = (td.arange(24).reshape(4, 6) % 2).to(dtype)
    for view in (x, x.t(), x[1:, ::2], x[2, 3]):
        a = np.asarray(Interface(view))
        assert a.tolist() == view.tolist() and a.ctypes.data == view.data_ptr()
    assert not hasattr(td.ones(2, requires_grad=True), "__array_interface__")
    assert not hasattr(td.ones(2).bfloat16(), "__array_interface__")


# Peers

def test_pyarrow_arrays_are_shared(pa):
    for dtype in DTYPES:
        name = str(dtype).split(".")[1]
        a = pa.array(np.arange(20).astype(name))
        x = td.from_arrow(a)
        assert x.dtype is dtype and x.data_ptr() == a.buffers()[1].address
        assert td.from_arrow(a[3:9]).tolist() == a[3:9].to_pylist()
        assert td.from_arrow(a[3:3]).shape == (0,)
    bools = pa.array([i % 3 == 0 for i in range(30)])
    assert td.from_arrow(bools[5:17]).tolist() == bools[5:17].to_pylist()


def test_pyarrow_arrays_outlive_themselves(pa):
    before = pa.total_allocated_bytes()
    a = pa.array(range(100000))
    x = td.from_arrow(a)
    del a
    gc.collect()
    assert x.sum().item() == 4999950000 and pa.total_allocated_bytes() > before
    del x
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_pyarrow_nulls(pa):
    a = pa.array([1.5, None, 3.0, None, 5.0])
    with pytest.raises(ValueError, match="misses 2 of 5"):
        td.from_arrow(a)
    assert td.from_arrow(a[4:]).tolist() == [5.0]
    assert td.from_arrow(a, fill=-1.0).tolist() == [1.5, -1.0, 3.0, -1.0, 5.0]
    lists = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float64(), 2))
    assert td.from_arrow(lists[1:], fill=9).tolist() == [[9.0, 9.0], [3.0, 9.0]]
    rows = pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int32())]))
    assert td.from_arrow(rows, "x", fill=-1).tolist() == [1, -1, -1]
    assert td.from_arrow(pa.array([True, None]), fill=True).tolist() == [True, True]


def test_pyarrow_lists_of_fixed_size(pa):
    flat = pa.array(np.arange(60.0))
    m = pa.FixedSizeListArray.from_arrays(flat[6:], 3)
    assert td.from_arrow(m[2:5]).tolist() == m[2:5].to_pylist()
    cube = pa.FixedSizeListArray.from_arrays(m, 2)
    assert td.from_arrow(cube[1:4]).tolist() == cube[1:4].to_pylist()
    batch = pa.record_batch({"m": m[1:], "b": pa.array([i % 2 == 0 for i in range(17)])}).slice(3, 5)
    found = td.from_arrow(batch)
    assert {k: v.tolist() for k, v in found.items()} == batch.to_pydict()


def test_pyarrow_other_types_are_named(pa):
    for a, name in [(pa.array(["a"]), "text"), (pa.array([1], pa.uint64()), "uint64"), (pa.array([[1]]), "any length"),
                    (pa.array(["a"]).dictionary_encode(), "dictionary"), (pa.array([None]), "no number"),
                    (pa.array([1], pa.date32()), "no number")]:
        with pytest.raises(NotImplementedError, match=name):
            td.from_arrow(a)


def test_pyarrow_tables_and_streams(pa):
    table = pa.table({"x": pa.chunked_array([[1.0, 2.0], [], [3.0]]), "y": pa.chunked_array([[1], [2, 3]])})
    found = td.from_arrow(table)
    assert found["x"].tolist() == [1, 2, 3] and found["y"].tolist() == [1, 2, 3]
    assert td.from_arrow(table["x"]).tolist() == [1, 2, 3]
    assert td.from_arrow(table.schema.empty_table(), "y").dtype is td.int64
    with pytest.raises(ValueError, match="no column 'a', there are"):
        td.from_arrow(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))
    one = pa.table({"x": [1.0, 2.0]})
    assert td.from_arrow(one, "x").data_ptr() == one["x"].chunk(0).buffers()[1].address

    def batches():
        yield table.to_batches()[0]
        raise KeyError("the third one")

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    with pytest.raises(OSError, match="from_arrow: the stream broke off.*the third one"):
        td.from_arrow(reader)


def test_pyarrow_reads_ours(pa):
    x = td.arange(12.0).reshape(4, 3)
    a = pa.array(x)
    assert a.type == pa.list_(pa.float32(), 3) and a.to_pylist() == x.tolist()
    assert a.flatten().buffers()[1].address == x.data_ptr()
    a.validate(full=True)
    table = pa.table(td.to_arrow({"x": x, "b": x[:, 0] > 4, "y": td.arange(4)}))
    table.validate(full=True)
    assert table.to_pydict() == {"x": x.tolist(), "b": [False, False, True, True], "y": [0, 1, 2, 3]}
    assert pa.table(ArrowDataset(table, ["y"])).column_names == ["y"]
    del x, table
    gc.collect()
    assert a[3].as_py() == [9.0, 10.0, 11.0]


def test_polars_both_ways(pl):
    d = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1, None, 3], "t": ["a", "b", "c"], "b": [True, False, True]})
    assert td.from_arrow(d["x"]).tolist() == [1, 2, 3]
    found = td.from_arrow(d.slice(1), ["x", "b", "y"], fill=0)
    assert {k: v.tolist() for k, v in found.items()} == {"x": [2, 3], "b": [False, True], "y": [0, 3]}
    with pytest.raises(ValueError, match="column 'y' misses 1 of 3"):
        td.from_arrow(d, "y")
    with pytest.raises(NotImplementedError, match="'t' holds text"):
        td.from_arrow(d, fill=0)
    wide = pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int32, 2))
    assert td.from_arrow(wide).tolist() == [[1, 2], [3, 4]]
    x = td.arange(6.0).reshape(3, 2)
    assert pl.Series(td.arange(3)).to_list() == [0, 1, 2]
    back = pl.DataFrame(td.to_arrow({"x": x, "b": x[:, 0] > 1}))
    assert back["x"].to_list() == x.tolist() and back["b"].to_list() == [False, True, True]
    assert [b.tolist() for b, in DataLoader(ArrowDataset(d, ["x"]), 2)] == [[1, 2], [3]]
    assert td.tensor(pl.Series([1.5, 2.5])).tolist() == [1.5, 2.5]
