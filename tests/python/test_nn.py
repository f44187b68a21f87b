# needs: package
"""Modules, initialisers, losses."""
import math

import numpy as np
import pytest
import treadle as td
from treadle import nn
import treadle.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 5)
        self.act = nn.ReLU()
        self.rest = nn.Sequential(nn.Linear(5, 4, bias=False), nn.Linear(4, 2))
        self.scale = nn.Parameter(td.ones(2))
        self.register_buffer("seen", td.zeros(1))
        self.register_buffer("scratch", td.zeros(1), persistent=False)
        self.note = "plain"

    def forward(self, x):
        return self.rest(self.act(self.first(x))) * self.scale


NAMES = ["scale", "first.weight", "first.bias", "rest.0.weight",
         "rest.1.weight", "rest.1.bias"]


def test_registration_and_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == NAMES
    assert list(net.state_dict()) == ["scale", "seen"] + NAMES[1:]
    assert [n for n, _ in net.named_modules()] == [
        "", "first", "act", "rest", "rest.0", "rest.1"]
    assert [n for n, _ in net.named_children()] == ["first", "act", "rest"]
    assert net.first.weight.shape == (5, 3) and net.first.bias.shape == (5,)
    assert net.rest[0].bias is None and len(net.rest) == 2
    assert net(td.randn(7, 3)).shape == (7, 2)
    assert [n for n, _ in net.named_buffers()] == ["seen", "scratch"]


def test_assignments():
    net = Net()
    net.scale = None
    assert "scale" not in dict(net.named_parameters()) and net.scale is None
    net.scale = nn.Parameter(td.zeros(2))
    assert "scale" in dict(net.named_parameters())
    with pytest.raises(TypeError, match="scale"):
        net.scale = td.zeros(2)
    net.seen = td.ones(1)
    assert dict(net.named_buffers())["seen"].item() == 1
    net.first = nn.Identity()
    assert "first.weight" not in net.state_dict()
    del net.scale
    with pytest.raises(AttributeError, match="scale"):
        net.scale

    class Early(nn.Module):
        def __init__(self):
            self.p = nn.Parameter(td.ones(1))
    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)


def test_shared_parameters_are_counted_once_and_saved_twice():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert "1.weight" in net.state_dict()


def test_load_state_dict_reports_everything():
    a, b = Net(), Net()
    result = b.load_state_dict(a.state_dict())
    assert result.missing_keys == [] == result.unexpected_keys
    x = td.randn(4, 3)
    assert a(x).tolist() == b(x).tolist()
    state = a.state_dict()
    del state["scale"]
    state["other"] = td.ones(1)
    state["first.bias"] = td.ones(7)
    before = [p.tolist() for p in b.parameters()]
    with pytest.raises(RuntimeError) as caught:
        b.load_state_dict(state)
    for word in ("scale", "other", "first.bias", "[7]", "[5]"):
        assert word in str(caught.value)
    assert [p.tolist() for p in b.parameters()] == before
    del state["first.bias"]
    result = b.load_state_dict(state, strict=False)
    assert set(result.missing_keys) == {"scale", "first.bias"}
    assert result.unexpected_keys == ["other"]


def test_modes_and_verbs():
    net = Net()
    assert net.training and not net.eval().rest[1].training
    assert net.train().rest[1].training
    seen = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen[-1] == "Net" and len(seen) == 6
    net(td.randn(2, 3)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert not net(td.randn(2, 3)).requires_grad


def test_moving_to_another_dtype_keeps_parameters():
    net = Net()
    ids = [id(p) for p in net.parameters()]
    net(td.randn(2, 3)).sum().backward()
    net.double()
    assert [id(p) for p in net.parameters()] == ids
    assert all(p.dtype is td.float64 and p.grad.dtype is td.float64
               for p in net.parameters())
    assert net(td.randn(2, 3, dtype=td.float64)).dtype is td.float64


def test_printing():
    text = repr(Net())
    assert "(first): Linear(in_features=3, out_features=5, bias=True)" in text
    assert "(rest): Sequential(\n    (0): Linear" in text
    assert repr(nn.ReLU()) == "ReLU()"
    assert repr(nn.Parameter(td.ones(1))).startswith("Parameter containing:")


def test_linear_matches_numpy_and_its_init():
    td.manual_seed(3)
    layer = nn.Linear(100, 50)
    bound = 1 / math.sqrt(100)
    w = layer.weight.detach().numpy()
    assert abs(w).max() <= bound and abs(w).max() > 0.9 * bound
    x = td.randn(7, 100)
    np.testing.assert_allclose(
        layer(x).detach().numpy(),
        x.numpy() @ w.T + layer.bias.detach().numpy(), rtol=1e-4, atol=1e-5)
    td.manual_seed(3)
    again = td.empty(50, 100).uniform_(-bound, bound)
    assert again.tolist() == layer.weight.tolist()
    assert layer.bias.tolist() == td.empty(50).uniform_(-bound, bound).tolist()


def test_sequential():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Flatten())
    assert [type(m).__name__ for m in net] == ["Linear", "ReLU", "Flatten"]
    assert len(net[:2]) == 2 and net[-1] is net[2]
    net.append(nn.Linear(3, 1))
    assert net(td.ones(4, 2)).shape == (4, 1)
    with pytest.raises(TypeError, match="Module"):
        nn.Sequential(3)
    named = nn.Sequential({"a": nn.Identity()})
    assert "a" in dict(named.named_children())


def test_initialisers():
    w = td.empty(200, 300)
    assert nn.init.uniform_(w, 2, 3) is w
    assert 2 <= w.tolist()[0][0] < 3
    assert nn.init.constant_(w, 4)[0, 0].item() == 4
    for fill, std in ((nn.init.xavier_uniform_, math.sqrt(2 / 500)),
                      (nn.init.xavier_normal_, math.sqrt(2 / 500)),
                      (nn.init.kaiming_uniform_, math.sqrt(2 / 300)),
                      (nn.init.kaiming_normal_, math.sqrt(2 / 300))):
        a = fill(w).numpy()
        assert abs(a.std() / std - 1) < 0.02 and abs(a.mean()) < std / 20
    p = nn.Parameter(td.empty(3, 3))
    nn.init.ones_(p)
    assert p.requires_grad and p.is_leaf
    with pytest.raises(ValueError):
        nn.init.xavier_normal_(td.empty(3))
    with pytest.raises(ValueError):
        nn.init.kaiming_normal_(w, mode="sideways")
    with pytest.raises(ValueError):
        nn.init.calculate_gain("wiggle")


X = [[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]]
Y = [0, 2]


def test_cross_entropy_golden_values():
    x, y = td.tensor(X), td.tensor(Y)
    w = td.tensor([1.0, 2.0, 3.0])
    for loss, value in ((F.cross_entropy(x, y), .288726002),
                        (F.cross_entropy(x, y, w), .229286015),
                        (F.cross_entropy(x, y, label_smoothing=.1), .422059327),
                        (nn.CrossEntropyLoss(w, label_smoothing=.1)(x, y),
                         .360229999)):
        assert abs(loss.item() - value) < 2e-6
    none = F.cross_entropy(x, y, reduction="none").tolist()
    np.testing.assert_allclose(none, [.407605946, .169846043], rtol=1e-5)


def test_losses_complain():
    x = td.tensor(X)
    with pytest.raises(IndexError):
        F.cross_entropy(x, td.tensor([0, 7]))
    with pytest.raises(Exception, match="(?i)reduction"):
        F.cross_entropy(x, td.tensor(Y), reduction="sideways")
    with pytest.raises(Exception):
        F.cross_entropy(x, td.tensor([0, 1, 2]))
    with pytest.raises(Exception, match="(?i)smoothing"):
        F.cross_entropy(x, td.tensor(Y), label_smoothing=2.0)


def test_mse():
    a, b = td.tensor([1.0, 2.0]), td.tensor([3.0, 5.0])
    assert F.mse_loss(a, b).item() == 6.5
    assert nn.MSELoss("sum")(a, b).item() == 13.0
    assert F.mse_loss(a, b, reduction="none").tolist() == [4.0, 9.0]


def test_softmax():
    x = td.randn(3, 4)
    e = np.exp(x.numpy())
    np.testing.assert_allclose(F.softmax(x, dim=1).numpy(),
                               e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(F.log_softmax(x, 0).numpy(),
                               np.log(e / e.sum(0)), rtol=1e-4, atol=1e-5)


class Holder(nn.Module):
    fixed = 1

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(td.ones(2))
        self.plain = td.ones(2)
        self.register_buffer("mean", td.zeros(2))
        self.child = nn.Linear(2, 2)


REGISTERED = [("register_parameter", "parameter", lambda: nn.Parameter(td.ones(1))),
              ("register_buffer", "buffer", lambda: td.ones(1)),
              ("add_module", "module", lambda: nn.Linear(1, 1)),
              ("register_module", "module", lambda: nn.Linear(1, 1))]


@pytest.mark.parametrize("method, what, make", REGISTERED)
def test_registering_refuses_names_under_which_a_state_loses_something(method, what, make):
    m = Holder()
    before = list(m.state_dict())
    register = getattr(m, method)
    for name, error, words in [
            ("a.b", KeyError, f"{what} name can't contain \".\""), ("", KeyError, f"{what} name can't be empty"),
            (3, TypeError, f"{what} name should be a string. Got int"), (None, TypeError, "should be a string"),
            ("forward", KeyError, "attribute 'forward' already exists"), ("fixed", KeyError, "'fixed' already exists"),
            ("plain", KeyError, "'plain' already exists"), ("training", KeyError, "'training' already exists")]:
        with pytest.raises(error) as caught:
            register(name, make())
        assert words in caught.value.args[0]
    others = {"parameter": ["mean", "child"], "buffer": ["weight", "child"], "module": ["weight", "mean"]}[what]
    for name in others:
        with pytest.raises(KeyError, match=f"attribute '{name}' already exists"):
            register(name, make())
    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        getattr(nn.Module, method)(Holder.__new__(Holder), "x", make())
    assert list(m.state_dict()) == before
    register("fresh", make())
    register("fresh", make())
    register("none", None)
    assert len(m.state_dict()) > len(before)


@pytest.mark.parametrize("method, wrong, words", [
    ("register_parameter", lambda: td.ones(2), r"Tensor' object to parameter 'x' \(nn.Parameter or None required\)"),
    ("register_parameter", lambda: 3, "cannot assign 'int' object to parameter 'x'"),
    ("register_buffer", lambda: [1.0], r"cannot assign 'list' object to buffer 'x' \(Tensor or None required\)"),
    ("register_buffer", lambda: nn.Linear(1, 1), "Linear' object to buffer 'x'"),
    ("add_module", lambda: td.ones(2), "Tensor is not a Module subclass"),
    ("add_module", lambda: nn.Linear, "type is not a Module subclass"),
    ("register_module", lambda: nn.Parameter(td.ones(2)), "Parameter is not a Module subclass")])
def test_registering_refuses_what_is_of_another_kind(method, wrong, words):
    m = Holder()
    with pytest.raises(TypeError, match=words):
        getattr(m, method)("x", wrong())
    assert not hasattr(m, "x")


def test_assigning_does_not_replace_what_is_registered_by_something_else():
    m = Holder()
    for name, wrong, words in [
            ("weight", td.ones(2), r"Tensor' as parameter 'weight' \(nn.Parameter or None expected\)"),
            ("weight", 3, "cannot assign 'int' as parameter 'weight'"),
            ("child", 3, r"cannot assign 'int' as module 'child' \(nn.Module or None expected\)"),
            ("child", td.ones(2), "Tensor' as module 'child'"),
            ("mean", 3, r"cannot assign 'int' as buffer 'mean' \(Tensor or None expected\)")]:
        with pytest.raises(TypeError, match=words):
            setattr(m, name, wrong)
    assert sorted(m.state_dict()) == ["child.bias", "child.weight", "mean", "weight"]
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        m.forward = nn.Parameter(td.ones(1))
    with pytest.raises(KeyError, match="name can.*contain"):
        setattr(m, "a.b", nn.Parameter(td.ones(1)))
    m.plain = nn.Parameter(td.ones(1))      # assigning may change the kind
    m.mean = nn.Parameter(td.ones(1))
    m.weight = nn.Linear(1, 1, bias=False)
    assert sorted(m.state_dict()) == ["child.bias", "child.weight", "mean", "plain", "weight.weight"]
    m.weight = None
    m.mean = None
    assert sorted(m.state_dict()) == ["child.bias", "child.weight", "plain"]


def test_a_parameter_with_the_name_of_a_transient_buffer_is_saved():
    m = nn.Module()
    m.register_buffer("x", td.ones(1), persistent=False)
    assert list(m.state_dict()) == []
    m.x = nn.Parameter(td.ones(1))
    assert list(m.state_dict()) == ["x"]
    m.register_buffer("y", td.ones(1), persistent=False)
    m.register_buffer("y", td.ones(1))
    assert list(m.state_dict()) == ["x", "y"]


def test_containers_keep_what_they_have_when_they_refuse():
    modules = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    for change in (lambda: modules.insert(0, 3), lambda: modules.append(td.ones(1)),
                   lambda: modules.__setitem__(0, "x")):
        with pytest.raises(TypeError, match="is not a Module subclass"):
            change()
    assert len(modules) == 2 and list(modules.state_dict()) == ["0.weight", "0.bias"]
    named = nn.ModuleDict({"a": nn.ReLU()})
    for name, error in [("keys", KeyError), ("", KeyError), ("a.b", KeyError), (3, TypeError)]:
        with pytest.raises(error):
            named[name] = nn.ReLU()
    parameters = nn.ParameterDict({"a": td.ones(1)})
    for name, error in [("keys", KeyError), ("", KeyError), ("a.b", KeyError), (3, TypeError)]:
        with pytest.raises(error):
            parameters[name] = nn.Parameter(td.ones(1))
    assert list(named) == ["a"] and list(parameters) == ["a"]
    with pytest.raises(KeyError):
        nn.Sequential({"a.b": nn.ReLU()})


def test_loading_refuses_what_is_no_tensor_before_it_copies():
    m = nn.Linear(2, 1)
    before = m.weight.tolist()
    state = {"weight": td.zeros(1, 2), "bias": [0.0]}
    with pytest.raises(RuntimeError, match="no tensor for bias: got list"):
        m.load_state_dict(state)
    assert m.weight.tolist() == before


@pytest.mark.parametrize("layer, shape", [
    (nn.Linear(2, 2), (1, 2)), (nn.Identity(), (1, 2)), (nn.Sequential(nn.Tanh()), (2,)), (nn.ReLU(), (1, 2)), (nn.PReLU(), (1, 2)),
    (nn.LayerNorm(3), (1, 3)), (nn.RMSNorm(2), (1, 2)), (nn.GroupNorm(1, 2), (1, 2)), (nn.Softmax(), (1, 2)), (nn.GELU(), (1, 2)),
    (nn.Dropout(), (1, 2)), (nn.Flatten(), (1, 2)), (nn.MaxPool1d(2), (1, 1, 2)), (nn.BatchNorm1d(2), (3, 2)), (nn.Conv2d(1, 1, 1), (1, 1, 2, 2))])
def test_layers_take_their_input_by_its_name(layer, shape):
    layer.eval()
    x = td.ones(shape)
    assert td.equal(layer(input=x), layer(x))


def test_embeddings_and_losses_take_their_input_by_its_name():
    assert nn.Embedding(4, 3)(input=td.tensor([1])).shape == (1, 3)
    assert nn.MSELoss()(input=td.ones(2), target=td.zeros(2)) == 1


def test_transformer_layers_are_pickled():
    import pickle
    layer = nn.TransformerEncoderLayer(4, 2).eval()
    x = td.ones(1, 3, 4)
    assert td.equal(pickle.loads(pickle.dumps(layer))(x), layer(x))
