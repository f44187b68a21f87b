# needs: porting
"""The ends of a program: comparisons, slices, names that are absent."""
import ast
import importlib
import inspect
import math
import os
import subprocess
import sys

import pytest
import treadle as td
from treadle import compat


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
    for where, name, why in ((td, "qr", "decomposed"), (td.linalg, "lu", "decomposed"), (td, "fft", "complex"),
                             (td.ones(2), "cholesky", "decomposed"), (td.ones(2), "to_sparse", "sparse"),
                             (td, "quantize_per_tensor", "quantised"), (td, "distributed", "one process")):
        assert not hasattr(where, name)
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{why}"):
            getattr(where, name)
    with pytest.raises(AttributeError, match="module 'treadle' has no attribute 'sofmax'$"):
        td.sofmax
    with pytest.raises(ImportError):
        from treadle import eig  # noqa: F401
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


@pytest.mark.parametrize("call, message", [
    ("td.linspace(0, 300, 4, dtype=td.uint8)", "linspace: 300 does not fit uint8"),
    ("td.linspace(-129, 0, 4, dtype=td.int8)", "linspace: -129 does not fit int8"),
    ("td.linspace(0, -2.5, 4, dtype=td.uint8)", "linspace: -2.5 does not fit uint8"),
    ("td.full((2,), -0.5, dtype=td.uint8)", "full: -0.5 does not fit uint8"),
    ("td.arange(0, 1e30, 1e29, dtype=td.int8)", "arange: 1.* does not fit int64"),
    ("td.arange(0, 2, dtype=td.bool)", "arange: bool has too few numbers"),
    ("td.linspace(0, 2, 3, dtype=td.bool)", "linspace: bool has too few numbers"),
    ("td.logspace(0, 10, 3, dtype=td.int8)", "logspace: 10000000000.0 does not fit int8"),
    ("td.full((2,), 300, dtype=td.uint8)", "full: 300 does not fit uint8"),
    ("td.full((2,), float('nan'), dtype=td.int64)", "full: nan does not fit int64"),
    ("td.full_like(td.ones(2, dtype=td.int32), 2**40)", "full_like: 1099511627776 does not fit int32"),
    ("td.ones(2, dtype=td.int8).fill_(200)", "fill_: 200 does not fit int8"),
    ("td.ones(2, dtype=td.uint8).masked_fill(td.tensor([True, False]), 300)", "masked_fill: 300 does not fit uint8"),
    ("td.ones(2, dtype=td.uint8).index_fill(0, td.tensor([0]), 300)", "300 does not fit uint8"),
    ("td.tril_indices(2**32, 2**32)", "tril_indices: .* more elements"),
    ("td.triu_indices(-1, 3)", "triu_indices: size -1"),
    ("td.tril_indices(257, 1, dtype=td.uint8)", "tril_indices: 256 does not fit uint8"),
    ("td.meshgrid(*[td.arange(2)] * 9, indexing='ij')", "meshgrid: 9 vectors"),
    ("td.cartesian_prod(td.ones(2, 2), td.ones(2))", "cartesian_prod: expected vectors"),
    ("td.stack([td.ones([1] * 8)] * 2)", "stack: the result would have 9 dimensions"),
    ("td.stack([td.ones(2), td.ones(3)])", r"stack: tensor 1 has shape \[3\], expected \[2\] as the first$"),
    ("td.cat([td.ones(2, 2), td.ones(2, 3)])",
     r"cat: tensor 1 has shape \[2, 3\], expected \[2, 2\] as the first but for dimension 0"),
    ("td.ones([1] * 8)[td.zeros(2, 2, dtype=td.int64)]", "9 dimensions"),
    ("td.nn.functional.embedding(td.zeros([1] * 8, dtype=td.int64), td.ones(2, 2))", "embedding: the result would have 9"),
    ("td.einsum('abcd,efghi->abcdefghi', td.ones([1] * 4), td.ones([1] * 5))", "einsum: a product would have 9"),
    ("td.nn.functional.one_hot(td.tensor([0, -1]))", "one_hot: argument 'input' must hold classes from 0 on, got -1"),
    ("td.nn.functional.one_hot(td.tensor([0, 5]), 3)", "one_hot: .* below num_classes = 3, got 5"),
    ("td.nn.functional.one_hot(td.tensor([0, 1]), 0)", "one_hot: argument 'num_classes' must be above 0"),
    ("td.vander(td.ones(2, 2))", r"vander: expected a vector .* got shape \[2, 2\]"),
    ("td.vander(td.ones(2), -1)", "vander: .* N=-1"),
    ("td.cov(td.ones(2, 2, 2))", "cov: expected at most 2 dimensions"),
    ("td.corrcoef(td.ones(2, 2, 2))", "corrcoef: expected at most 2 dimensions"),
    ("td.block_diag(td.ones(1, 1, 1))", "block_diag: expected at most 2 dimensions"),
])
def test_what_does_not_fit_is_refused(call, message, no_leaks):
    with pytest.raises(RuntimeError, match=message):
        eval(call)


def test_what_just_fits():
    assert td.arange(0, 128, dtype=td.int8)[-1].item() == 127 and td.arange(255, -1, -1, dtype=td.uint8).sum().item() == 32640
    assert td.arange(2**63 - 3, 2**63 - 1).tolist() == [2**63 - 3, 2**63 - 2] and td.arange(5, 5, dtype=td.uint8).shape == (0,)
    assert td.arange(-3, -3, dtype=td.uint8).shape == (0,) and td.linspace(300, 0, 1, dtype=td.float32).item() == 300
    assert td.full((1,), -1, dtype=td.uint8).item() == 255 and td.full((1,), 2.9, dtype=td.int32).item() == 2
    assert td.full((1,), 7, dtype=td.bool).item() is True and td.linspace(0, 255, 2, dtype=td.uint8)[1].item() == 255
    assert td.cartesian_prod(*[td.arange(2)] * 9).shape == (512, 9)
    assert td.tril_indices(3, 3, 2**63 - 1).shape == (2, 9) and td.triu_indices(3, 2, -2**63).shape == (2, 6)


def test_functions_of_slices_nest_as_deep_as_there_are_dimensions():
    def nested(depth):
        function = td.neg
        for _ in range(depth):
            function = td.vmap(function)
        return function
    assert nested(8)(td.ones([1] * 8)).shape == (1,) * 8
    with pytest.raises(ValueError, match="in_dims must name a dimension"):
        nested(9)(td.ones([1] * 8))


def test_coins_of_one_chance():
    for x in (td.zeros(500), td.zeros(500, dtype=td.int64)):
        td.manual_seed(4)
        y = td.bernoulli(x, 0.25)
        td.manual_seed(4)
        assert y.dtype is x.dtype and td.equal(y, td.empty_like(x).bernoulli_(0.25)) and x.sum().item() == 0
        assert 80 < y.sum().item() < 170
    assert td.bernoulli(td.zeros(3), p=1).tolist() == td.zeros(3).bernoulli(1.0).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="p = 1.5 is not between 0 and 1"):
        td.bernoulli(td.zeros(3), 1.5)


def fresh(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.environ["TREADLE_STAGE"]})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_name_of_the_table_is_found_on_demand():
    assert fresh("""
import sys, treadle as td
from treadle.compat import NAMES
late = sorted({f"treadle.{home}" for home in NAMES.values()} - {"treadle.func"})
assert not set(late) & set(sys.modules), "read before anybody asked"
hidden = [name for name in NAMES if "." not in name and name in vars(td)]
assert not hidden, hidden
assert {name for name in NAMES if "." not in name} <= set(dir(td)) and "FloatTensor" in dir(td.cuda)
assert not hasattr(td, "finf") and not set(late) & set(sys.modules)
kept = td.finfo
assert vars(td)["finfo"] is kept is td.compat.types.finfo and td.finfo(td.float16).max == 65504
assert "treadle.compat.settings" not in sys.modules
from treadle import iinfo, random
assert iinfo is td.iinfo and random.seed is td.seed
assert td.cuda.FloatTensor is not td.FloatTensor
try:
    td.set_rng_state(td.zeros(3, dtype=td.uint8))
except ValueError as error:
    print(error)
""") == "set_rng_state: expected 16 bytes, got 3\n"


def test_a_star_brings_every_name():
    fresh("""
import treadle
before = set(dir(treadle))
from treadle import *
missing = {name for name in before if name[0] != "_"} - set(globals())
assert not missing, missing
assert finfo is treadle.finfo and FloatTensor is treadle.FloatTensor and testing is treadle.testing
assert set(dir(treadle)) == before
""")


def test_the_table_has_every_name_once():
    names, homes = compat.NAMES, set(compat.NAMES.values())
    tree = ast.parse(inspect.getsource(compat))
    rows = [row for row in ast.walk(tree) if isinstance(row, ast.Tuple) and len(row.elts) == 2
            and all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in row.elts)]
    listed = [name for row in rows for name in row.elts[1].value.split()]
    assert sorted(listed) == sorted(names) and len(listed) > 40, "a name stands in two rows"
    assert not set(names) & set(compat.REASONS), "a name is absent and found"
    for name, home in names.items():
        where = td
        for part in name.split("."):
            where = getattr(where, part)
        found = importlib.import_module(f"treadle.{home}")
        assert where is (found if name == home else getattr(found, name))
    for home in homes:
        found = importlib.import_module(f"treadle.{home}")
        if not home.startswith("compat."):
            continue
        for name, value in vars(found).items():
            own = getattr(value, "__module__", None) in (found.__name__, "treadle", "treadle.cuda") and inspect.isclass(value) \
                or inspect.isfunction(value) and inspect.unwrap(value).__module__ == found.__name__
            assert not own or name[0] == "_" or name in names or hasattr(td._C, name), (home, name)


@pytest.mark.parametrize("package", ["treadle", "torch"])
def test_a_path_is_imported_before_anything_was_asked_for(package):
    fresh(f"""
import importlib, sys, treadle
if {package!r} == "torch":
    treadle.stand_for("torch")
for path in '''backends.cudnn backends.cuda backends.mps backends.mkl backends random special testing version
        nn.modules.linear nn.modules.utils nn.parameter nn.utils.rnn optim.sgd utils.data.dataloader
        utils.hooks autograd.variable'''.split():
    found, where = importlib.import_module("{package}." + path), treadle
    for part in path.split("."):
        where = getattr(where, part)
    assert where is found is sys.modules["treadle." + path], path
""")


PRINTED = """Linear(3, 4, bias=False)|Bilinear(2, 3, 4)|Embedding(5, 3, max_norm=1.0)|EmbeddingBag(5, 3, mode='sum')|Conv2d(2, 4, (3, 2), 2, 1, 2, 2, False, 'reflect')
ConvTranspose2d(2, 4, 3, stride=2, output_padding=1)|MaxPool1d(3, 2, 1, 2, True)|AvgPool1d(2)|AvgPool2d(3, 2, 1, True)|AdaptiveMaxPool2d((3, 2), return_indices=True)
MaxUnpool1d(2)|MaxUnpool3d((2, 1, 2))|LocalResponseNorm(2, k=2.0)|Dropout(0.2, inplace=True)|FeatureAlphaDropout(0.1, True)|ReLU()|ReLU(True)|ELU(0.5, True)|GELU('tanh')
Hardshrink(0.3)|Softshrink()|Hardtanh(-2, 2, inplace=True)|Threshold(0.1, 20, True)|LogSoftmax(1)|PReLU(3)|ConstantPad2d((1, 2, 3, 4), 3)|ZeroPad1d(1)|ReflectionPad2d((1, 2, 1, 2))
CircularPad3d(1)|Unfold((2, 3), padding=(1, 0))|Fold((4, 5), 2)|PixelShuffle(2)|Upsample(size=4)|Upsample(scale_factor=2.0, mode='bilinear', align_corners=True)
LayerNorm((3, 4), eps=1e-3, elementwise_affine=False)|RMSNorm(4)|GroupNorm(2, 4, affine=False)|BatchNorm2d(3, momentum=None, track_running_stats=False)|InstanceNorm3d(3)
MSELoss(reduction='sum')|CosineSimilarity(0)|PairwiseDistance(1)|Flatten(0, 1)|Unflatten(1, (2, 3))|LSTM(2, 3, num_layers=2, dropout=0.5)|RNNCell(2, 3, False, 'relu')
ModuleList([nn.Linear(2, 2), nn.Linear(2, 3), nn.Linear(2, 3), nn.ReLU(), nn.ReLU(), nn.ReLU(), nn.Linear(2, 3)])|Sequential(nn.Linear(2, 3), nn.ReLU())|ModuleDict({'a': nn.ReLU()})"""


@pytest.mark.parametrize("call", PRINTED.replace("\n", "|").split("|"))
def test_modules_print_as_pytorchs(call):
    torch = pytest.importorskip("torch", "2.15", reason="modules print as in PyTorch 2.15: make deps-peers")
    ours, theirs = (repr(eval("nn." + call, {"nn": t.nn})) for t in (td, torch))
    assert ours == theirs
