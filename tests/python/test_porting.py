# needs: porting
"""The ends of a program: files, comparisons, slices, names that are absent."""
import collections
import io
import math
import os
import pickle

import pytest
import treadle as td


def test_a_file_keeps_what_was_saved(tmp_path):
    w = td.nn.Parameter(td.arange(6.0).reshape(2, 3))
    state = collections.OrderedDict(w=w, row=w.data[1], n=3, half=td.ones(2, dtype=td.bfloat16), mask=td.tensor([True]),
                                    kind=td.int64, shape=td.Size((2, 3)), more={"k": [td.tensor(1.5), None, {1, 2}]})
    path = tmp_path / "state.pt"
    td.save(state, path)
    for safe in (False, True):
        got = td.load(path, map_location="cpu", weights_only=safe)
        assert list(got) == list(state) and isinstance(got["w"], td.nn.Parameter) and got["w"].requires_grad
        assert td.equal(got["w"], w) and got["half"].dtype is td.bfloat16 and got["kind"] is td.int64
        got["row"][0] = 9
        assert got["w"][1, 0].item() == 9, "views of one memory stay views"
        assert got["more"]["k"][0].item() == 1.5 and got["more"]["k"][2] == {1, 2}
    assert os.listdir(tmp_path) == ["state.pt"]
    buffer = io.BytesIO()
    td.save([td.ones(2)], buffer)
    buffer.seek(0)
    assert td.load(buffer, lambda storage, place: storage)[0].tolist() == [1, 1]


def test_a_module_and_an_optimiser_come_back(tmp_path):
    model = td.nn.Sequential(td.nn.Linear(3, 2), td.nn.ReLU())
    td.save({"model": model.state_dict(), "optim": td.optim.SGD(model.parameters(), 0.1).state_dict()}, tmp_path / "m")
    state = td.load(tmp_path / "m", weights_only=True)
    other = td.nn.Sequential(td.nn.Linear(3, 2), td.nn.ReLU())
    other.load_state_dict(state["model"])
    x = td.randn(4, 3)
    td.testing.assert_close(other(x), model(x), rtol=0, atol=0)
    td.save(model, tmp_path / "m")
    td.testing.assert_close(td.load(tmp_path / "m")(x), model(x))


class Refuses:
    def __reduce__(self):
        raise OSError("half-way")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "state.pt"
    td.save(td.ones(3), path)
    with pytest.raises(OSError, match="half-way"):
        td.save([td.zeros(100000), Refuses()], path)
    assert os.listdir(tmp_path) == ["state.pt"] and td.load(path).tolist() == [1, 1, 1]


class Program:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_weights_only_runs_nothing(tmp_path):
    folder = str(tmp_path / "made")
    td.save({"w": td.ones(2), "x": Program(folder)}, tmp_path / "bad")
    with pytest.raises(RuntimeError, match=r"weights_only is set, and the file asks for posix.mkdir"):
        td.load(tmp_path / "bad", weights_only=True)
    assert not os.path.exists(folder)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 a zip of PyTorch", b"\x80\x04", pickle.dumps([td.ones(50)])[:-60],
                                  b"\x80\x04cno_such\nname\n."])
def test_a_damaged_file_is_named(tmp_path, data):
    path = tmp_path / "damaged.pt"
    path.write_bytes(data)
    with pytest.raises((RuntimeError, ModuleNotFoundError), match="damaged.pt is no file of treadle.save|no_such"):
        td.load(path)
    with pytest.raises(FileNotFoundError):
        td.load(tmp_path / "nothing")


def test_close_enough_depends_on_the_type():
    close = td.testing.assert_close
    for dtype, off in ((td.float32, 5e-6), (td.float64, 5e-8), (td.float16, 1e-3), (td.bfloat16, 8e-3)):
        close(td.tensor([1.0, 2], dtype=dtype), td.tensor([1 + off, 2], dtype=dtype))
    close([td.ones(2), {"a": 3}], [td.ones(2), {"a": 3}])
    close(1.0, 1.0 + 1e-9)
    close(td.tensor([math.nan, math.inf]), td.tensor([math.nan, math.inf]), equal_nan=True)
    close(td.ones(0, 3), td.ones(0, 3))
    close(td.ones(2), td.ones(2, dtype=td.float64), check_dtype=False)


@pytest.mark.parametrize("a, b, how, message", [
    ([1.0, 2.0], [1.0, 2.5], {}, r"Mismatched elements: 1 / 2\nGreatest absolute difference: 0.5 at index \(1,\).*\nGreatest "
                                 r"relative difference: 0.2 at index \(1,\)"),
    ([[1.0, 2]], [1.0, 2], {}, "'shape' do not match"), ([1.0], [1], {}, "'dtype' do not match"),
    ([math.nan], [math.nan], {}, "Mismatched elements: 1 / 1"), ([2 ** 60], [2 ** 60 + 1], {}, "1 / 1"),
    ([1.0], [1.1], {"msg": "no"}, "^no$"), ([1.0], [1.1], {"rtol": 0, "atol": 0.05}, "0.05 allowed")])
def test_a_difference_says_where(a, b, how, message):
    with pytest.raises(AssertionError, match=message):
        td.testing.assert_close(td.tensor(a), td.tensor(b), **how)


def test_items_that_do_not_match():
    with pytest.raises(AssertionError, match="items are others"):
        td.testing.assert_close({"a": 1}, {"b": 1})
    with pytest.raises(AssertionError):
        td.testing.assert_close([1, 2], [1, 3])
    with pytest.raises(ValueError, match="both rtol and atol"):
        td.testing.assert_close(1.0, 1.0, rtol=0.1)


def test_vmap_is_a_call_for_each_slice():
    x, y = td.randn(3, 4), td.randn(4, 5)
    td.testing.assert_close(td.vmap(td.dot, (0, None))(x, y[:, 0]), x @ y[:, 0])
    td.testing.assert_close(td.vmap(lambda a: a.exp(), 1, 1)(x), x.exp())
    low, high = td.vmap(lambda a: (a.min(), a.max()))(x)
    assert low.tolist() == x.amin(1).tolist() and high.tolist() == x.amax(1).tolist()
    td.testing.assert_close(td.func.vmap(td.vmap(td.mul, (0, None)), (None, 0))(td.ones(2), y), y.unsqueeze(1).expand(4, 2, 5))
    w = td.ones(3, requires_grad=True)
    td.vmap(lambda a: a ** 3)(w).sum().backward()
    assert w.grad.tolist() == [3, 3, 3]
    for call in (lambda: td.vmap(td.add)(x, y), lambda: td.vmap(td.exp)(td.ones(0)), lambda: td.vmap(td.add)(x, 1)):
        with pytest.raises(ValueError, match="vmap: "):
            call()


def test_what_is_absent_says_why():
    for where, name, why in ((td, "svd", "decomposed"), (td.linalg, "inv", "inverted"), (td, "fft", "complex"),
                             (td.ones(2), "det", "decomposed"), (td.ones(2), "to_sparse", "sparse"),
                             (td, "quantize_per_tensor", "quantised"), (td, "distributed", "one process")):
        assert not hasattr(where, name)
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{why}"):
            getattr(where, name)
    with pytest.raises(AttributeError, match="module 'treadle' has no attribute 'sofmax'$"):
        td.sofmax
    with pytest.raises(ImportError):
        from treadle import svd  # noqa: F401
    with pytest.raises(NotImplementedError, match="singular values"):
        td.linalg.norm(td.ones(2, 2), "nuc")
    with pytest.raises(NotImplementedError, match="made on the CPU"):
        td.set_default_device("cuda")
    assert td.set_default_device("cpu") is None


def test_second_homes():
    x = td.tensor([[1.0, -2, 3], [-4, 5, 0.5]])
    norms = {"fro": 55.25 ** 0.5, 1: 7.0, -1: 3.5, math.inf: 9.5, -math.inf: 6.0}
    for ord, value in norms.items():
        assert td.linalg.matrix_norm(x, ord).item() == pytest.approx(value)
        assert td.linalg.norm(x, ord, keepdim=True).shape == (1, 1)
        assert td.linalg.matrix_norm(x.expand(4, 2, 3), ord, keepdim=False).shape == (4,)
    td.testing.assert_close(td.linalg.multi_dot([x, x.T, x]), x @ x.T @ x)
    assert td.linalg.vecdot(x, x).tolist() == [14, 41.25]
    assert td.linalg.cross(x, x.flip(0)).shape == (2, 3)
    p = td.tensor([0.1, 0.5, 0.9], dtype=td.float64)
    assert td.special.ndtr(td.special.ndtri(p)).tolist() == pytest.approx(p.tolist(), rel=1e-12)
    assert td.special.entr(td.tensor([0.0, 1, -1])).tolist() == [0, 0, -math.inf]
    assert td.special.expit(td.tensor(0.0)).item() == 0.5 and td.special.psi(td.tensor(1.0)).item() == pytest.approx(-0.5772157)
    assert td.version.__version__ == td.__version__ and td.version.cuda is None
    model = td.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="compile has no effect: the model runs as it is"):
        assert td.compile(model) is model and td.compile(mode="max-autotune")(model) is model
    g = td.Generator()
    assert g.seed() == g.initial_seed() and g.seed() != g.seed()


def test_vmap_heeds_its_randomness():
    x = td.zeros(3, 2)

    def draw(row):
        return row + td.rand(2)
    a, b, c = td.vmap(draw, randomness="same")(x)
    assert a.tolist() == b.tolist() == c.tolist()
    a, b, c = td.vmap(draw, randomness="different")(x)
    assert a.tolist() != b.tolist() != c.tolist()
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        td.vmap(draw, randomness="error")(x)
    assert td.vmap(lambda row: row + 1, randomness="error")(x).tolist() == [[1, 1]] * 3
    with pytest.raises(ValueError, match="Only allowed values for randomness"):
        td.vmap(draw, randomness="some")
