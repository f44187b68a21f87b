# needs: package
"""From a call in Python to a call in C: arguments and their errors."""
import numpy as np
import pytest
import treadle as td


def test_positional_named_and_default_arguments_agree():
    x = td.arange(6.0).reshape(2, 3)
    assert x.sum(1, True).tolist() == x.sum(dim=1, keepdim=True).tolist()
    assert td.sum(x, dim=(1,), keepdim=True).tolist() == [[3.0], [12.0]]
    assert td.sum(input=x).item() == 15.0


def test_a_list_of_integers_may_be_spelled_out():
    x = td.arange(6.0)
    for y in (x.reshape(2, 3), x.reshape((2, 3)), x.reshape([2, 3]),
              x.reshape(td.Size((2, 3))), td.reshape(x, (2, 3))):
        assert y.shape == (2, 3)
    assert td.zeros(2, 3).shape == td.zeros((2, 3)).shape == (2, 3)
    assert td.zeros(()).shape == ()
    assert td.ones(2, 3).permute(1, 0).shape == (3, 2)
    assert td.ones(2, 3).expand(4, 2, 3).shape == (4, 2, 3)
    assert x.reshape(-1).shape == (6,)


def test_numpy_numbers_and_one_element_tensors_are_integers():
    assert td.zeros(np.int64(2), np.int32(3)).shape == (2, 3)
    assert td.arange(6).reshape(td.tensor(2), 3).shape == (2, 3)
    assert td.ones(2).add(np.float32(1.5)).tolist() == [2.5, 2.5]
    assert td.ones(2).add(np.float64(1.5)).dtype is td.float32


def test_weak_scalars_do_not_widen():
    assert (td.ones(2) + 2).dtype is td.float32
    assert (td.ones(2, dtype=td.int64) + 2).dtype is td.int64
    assert (td.ones(2, dtype=td.int64) + 2.5).dtype is td.float32
    assert (2.5 - td.ones(2, dtype=td.int64)).dtype is td.float32
    assert (2 - td.ones(2, dtype=td.int32)).dtype is td.int32
    assert (2.5 / td.ones(2, dtype=td.float64)).dtype is td.float64
    assert (True + td.ones(2, dtype=td.int64)).dtype is td.int64


@pytest.mark.parametrize("call, words", [
    (lambda: td.add(td.ones(2), "x"),
     ["add()", "'other'", "Tensor or a number", "str"]),
    (lambda: td.add([1.0], 2), ["add()", "'input'", "Tensor", "list"]),
    (lambda: td.add(td.ones(2)), ["add()", "missing", "'other'"]),
    (lambda: td.add(td.ones(2), 1, 2, 3), ["add()", "at most"]),
    (lambda: td.add(td.ones(2), 1, input=td.ones(2)),
     ["add()", "'input'", "twice"]),
    (lambda: td.add(td.ones(2), 1, bogus=1),
     ["add()", "unexpected", "'bogus'"]),
    (lambda: td.sum(td.ones(2), dim="a"), ["sum()", "'dim'", "integer"]),
    (lambda: td.sum(td.ones(2), dim=[0.5]), ["sum()", "'dim'", "float"]),
    (lambda: td.sum(td.ones(2), keepdim=1),
     ["sum()", "'keepdim'", "True or False", "int"]),
    (lambda: td.zeros(2, dtype="float32"), ["zeros()", "'dtype'", "str"]),
    (lambda: td.zeros([1] * 9), ["zeros()", "9", "8"]),
    (lambda: td.cat(td.ones(2)), ["cat()", "sequence of Tensors"]),
    (lambda: td.cat([td.ones(2), 3]), ["cat()", "sequence", "int"]),
])
def test_type_errors_name_operator_and_argument(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("call, error, words", [
    (lambda: td.ones(3, 4) + td.ones(5), RuntimeError, ["add", "3", "5"]),
    (lambda: td.ones(2, 3) @ td.ones(2, 3), RuntimeError, ["matmul"]),
    (lambda: td.ones(2).sum(5), IndexError, ["sum", "5"]),
    (lambda: td.ones(2).transpose(0, 7), IndexError, ["transpose"]),
    (lambda: td.ones(6).reshape(4, 2), RuntimeError, ["reshape"]),
    (lambda: td.zeros(-1), (RuntimeError, ValueError), ["-1"]),
    (lambda: td.zeros(2 ** 40, 2 ** 40),
     (RuntimeError, ValueError, MemoryError), ["1099511627776"]),
    (lambda: td.ones(2, 3).item(), RuntimeError, ["item"]),
])
def test_errors_of_the_library_become_the_right_class(call, error, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_too_large_integers_are_overflow_errors():
    for call in (lambda: td.zeros(2 ** 70), lambda: td.ones(2) + 2 ** 70,
                 lambda: td.tensor([2 ** 70])):
        with pytest.raises(OverflowError):
            call()


def test_an_error_does_not_stick():
    for _ in range(3):
        with pytest.raises(RuntimeError):
            td.ones(3, 4) + td.ones(5)
        assert (td.ones(2) + 1).tolist() == [2.0, 2.0]


def test_functions_do_not_bind_and_methods_do():
    class Net:
        act = td.relu

        def forward(self, x):
            return self.act(x)
    assert Net().forward(td.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    x = td.tensor([-1.0, 2.0])
    bound = x.relu
    assert bound().tolist() == [0.0, 2.0]
    assert td.Tensor.relu(x).tolist() == [0.0, 2.0]


def test_in_place_methods_return_the_same_object():
    x = td.ones(2)
    assert x.add_(1) is x and x.tolist() == [2.0, 2.0]
    y = x
    y += 1
    assert y is x and x.tolist() == [3.0, 3.0]


def test_names_built_at_run_time_are_found():
    name = "".join(["keep", "dim"])
    assert td.ones(2).sum(**{"dim": 0, name: True}).shape == (1,)


def test_creation_takes_requires_grad():
    assert td.zeros(2, requires_grad=True).requires_grad
    assert not td.zeros(2, requires_grad=False).requires_grad
    assert td.randn(2, 3, requires_grad=True).is_leaf
    with pytest.raises(RuntimeError):
        td.zeros(2, dtype=td.int64, requires_grad=True)


def test_devices():
    assert td.zeros(2, device="cpu").device == td.device("cpu")
    assert td.zeros(2, device=td.device("cpu")).tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match="cuda"):
        td.zeros(2, device="cuda")
    with pytest.raises(RuntimeError, match="zeros.*device.*cpu"):
        td.zeros(2, device="tpu")


def test_dtypes():
    assert td.float is td.float32 and td.double is td.float64
    assert td.long is td.int64 and repr(td.float32) == "treadle.float32"
    assert td.zeros(2, dtype=float).dtype is td.float64
    assert td.float16.itemsize == 2 and td.bfloat16.is_floating_point


def test_generators_are_apart_from_the_default_one():
    g = td.Generator().manual_seed(7)
    a = td.rand(5, generator=g)
    td.rand(3)
    h = td.Generator().manual_seed(7)
    assert td.rand(5, generator=h).tolist() == a.tolist()
    with pytest.raises(TypeError, match="Generator"):
        td.rand(5, generator=3)


def test_a_list_that_shrinks_while_it_is_read():
    class Shrinks:
        def __index__(self):
            sizes.clear()
            return 2
    sizes = [Shrinks(), 3, 4]
    with pytest.raises(TypeError):
        td.zeros(sizes)


@pytest.mark.parametrize("call, name", [
    (lambda: td.zeros(2 ** 63), "zeros.*size"),
    (lambda: td.zeros(3).sum(dim=2 ** 70), "sum.*dim"),
    (lambda: td.full((2,), 2 ** 64), "full.*fill_value"),
])
def test_an_integer_that_is_too_long_is_named(call, name):
    with pytest.raises(OverflowError, match=name):
        call()
