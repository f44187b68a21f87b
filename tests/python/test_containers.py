# needs: containers layers
"""Lists, dictionaries, small layers and first values."""
import copy
import math
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import treadle as td
from treadle import nn
import treadle.nn.functional as F


def names(module):
    return [n for n, _ in module.named_parameters()]


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1, bias=False)})
        self.scales = nn.ParameterList([td.ones(2) for _ in range(2)])
        self.shifts = nn.ParameterDict({"x": nn.Parameter(td.zeros(2))})

    def forward(self, x):
        for block, scale in zip(self.blocks, [*self.scales, 1.0]):
            x = block(x) * scale
        return self.heads["a"](x + self.shifts["x"])


def test_what_is_inside_is_registered():
    net = Blocks()
    assert names(net) == [
        "blocks.0.weight", "blocks.0.bias", "blocks.1.weight",
        "blocks.1.bias", "blocks.2.weight", "blocks.2.bias",
        "heads.a.weight", "scales.0", "scales.1", "shifts.x"]
    net(td.ones(3, 2)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    again = Blocks()
    again.load_state_dict(net.state_dict())
    for other in (again, copy.deepcopy(net),
                  pickle.loads(pickle.dumps(nn.ModuleList(
                      [nn.Linear(2, 2)])))):
        assert names(other)
    assert again(td.ones(1, 2)).tolist() == net(td.ones(1, 2)).tolist()
    assert "(0-2): 3 x Linear(in_features=2" in repr(net)
    assert "(0): Parameter of shape (2,)" in repr(net.scales)


def test_module_lists():
    a, b, c, d = (nn.Linear(1, n + 1) for n in range(4))
    modules = nn.ModuleList([a, b])
    assert modules.append(c) is modules and len(modules) == 3
    modules.insert(0, d)
    assert list(modules) == [d, a, b, c] and modules[-1] is c
    del modules[1]
    assert list(modules._modules) == ["0", "1", "2"]
    modules[1] = a
    assert list(modules) == [d, a, c] and a in modules
    assert modules.pop() is c and list(modules) == [d, a]
    modules += [b]
    assert list(modules.extend([c])) == [d, a, b, c]
    part = modules[1:3]
    assert type(part) is nn.ModuleList and list(part) == [a, b]
    assert list(part._modules) == ["0", "1"]
    assert list(part + [d]) == [a, b, d] and len(part) == 2
    assert list(reversed(modules)) == [c, b, a, d]
    del modules[1:3]
    assert list(modules) == [d, c]
    for i in (2, -3):
        with pytest.raises(IndexError):
            modules[i]
    with pytest.raises(TypeError, match="Module"):
        modules.append(td.ones(2))
    with pytest.raises(TypeError):
        modules["0"]
    assert len(nn.ModuleList()) == 0 and {modules: 1}[modules] == 1


def test_module_dictionaries():
    a, b, c = (nn.Linear(1, n + 1) for n in range(3))
    modules = nn.ModuleDict([("x", a), ("y", b)])
    assert list(modules) == ["x", "y"] == list(modules.keys())
    modules["x"] = c
    assert list(modules.items()) == [("x", c), ("y", b)]
    modules.update({"z": a})
    assert modules.pop("y") is b and "y" not in modules
    assert list(modules.values()) == [c, a] and modules.get("q") is None
    del modules["x"]
    assert names(modules) == ["z.weight", "z.bias"]
    modules.clear()
    assert len(modules) == 0 and modules != nn.ModuleDict()
    with pytest.raises(KeyError):
        modules["x"]
    with pytest.raises(TypeError, match="Module"):
        modules["x"] = 3


def test_parameter_containers():
    p = nn.Parameter(td.ones(2))
    some = nn.ParameterList([p])
    some.append(td.zeros(3))
    assert some[0] is p and isinstance(some[1], nn.Parameter)
    assert some[1].requires_grad and names(some) == ["0", "1"]
    some[0] = td.ones(4)
    assert [tuple(q.shape) for q in some] == [(4,), (3,)]
    assert len(some[1:]) == 1
    named = nn.ParameterDict({"a": p})
    named["b"] = td.ones(1)
    assert list(named.state_dict()) == ["a", "b"] and named["a"] is p
    assert named.pop("a") is p and names(named) == ["b"]


def test_sequential_is_a_list_too():
    a, b, c = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    net = nn.Sequential(OrderedDict([("a", a), ("b", b)]))
    assert net.append(c) is net and list(net._modules) == ["a", "b", "2"]
    head = net[:2]
    assert type(head) is nn.Sequential and head.a is a
    assert names(head) == ["a.weight", "a.bias"]
    net = nn.Sequential(a, c)
    net.insert(1, b)
    assert [type(m).__name__ for m in net] == ["Linear", "ReLU", "Linear"]
    net[1] = nn.Tanh()
    assert type(net[1]) is nn.Tanh and net(td.ones(4, 2)).shape == (4, 1)
    del net[-1]
    assert net(td.ones(4, 2)).shape == (4, 3)
    both = nn.Sequential(a) + nn.Sequential(c)
    assert list(both) == [a, c]
    assert nn.Sequential()(3) == 3
    for name in ("count", "index", "remove", "reverse"):
        net.register_buffer(name, td.ones(1))
        assert getattr(net, name) is net._buffers[name]


def test_embedding():
    td.manual_seed(1)
    e = nn.Embedding(10, 3, padding_idx=-1)
    assert e.padding_idx == 9 and e.weight[9].tolist() == [0, 0, 0]
    index = td.tensor([[1, 9], [1, 0]])
    out = e(index)
    assert out.shape == (2, 2, 3)
    assert out[0, 0].tolist() == e.weight[1].tolist()
    out.sum().backward()
    assert e.weight.grad[1].tolist() == [2, 2, 2]
    assert e.weight.grad[9].tolist() == [0, 0, 0]
    assert repr(e) == "Embedding(10, 3, padding_idx=9)"
    assert repr(nn.Embedding(5, 3, -1, 2.0, 1.0, True, True)) == \
        "Embedding(5, 3, padding_idx=4, max_norm=2.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True)"
    assert abs(nn.Embedding(300, 300).weight.std().item() - 1) < .02
    table = td.randn(4, 2)
    frozen = nn.Embedding.from_pretrained(table)
    assert not frozen.weight.requires_grad
    assert frozen(td.tensor([2])).tolist() == [table[2].tolist()]
    assert nn.Embedding.from_pretrained(table, False).weight.requires_grad
    short = nn.Embedding(5, 4, max_norm=1.0)
    assert (short(td.arange(5)).norm(2, 1) < 1.00001).all()
    with pytest.raises(ValueError, match="padding_idx 10"):
        nn.Embedding(10, 3, padding_idx=10)
    with pytest.raises(IndexError):
        e(td.tensor([10]))
    with pytest.raises(NotImplementedError, match="sparse"):
        nn.Embedding(3, 3, sparse=True)(td.tensor([0]))


def test_bilinear_and_distances():
    layer = nn.Bilinear(3, 4, 2).double()
    x, z = (td.randn(5, n, dtype=td.float64) for n in (3, 4))
    expected = np.einsum("ni,oij,nj->no", x.numpy(),
                         layer.weight.detach().numpy(), z.numpy()) \
        + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x, z).detach().numpy(), expected,
                               rtol=1e-12)
    assert "in2_features=4" in repr(layer)
    assert abs(layer.weight).max().item() <= 3 ** -.5
    assert nn.Bilinear(3, 4, 2, bias=False).bias is None
    y = td.randn(5, 3, dtype=td.float64)
    a, b = x.numpy(), y.numpy()
    np.testing.assert_allclose(
        nn.CosineSimilarity()(x, y).numpy(), (a * b).sum(1) / np.sqrt(
            (a * a).sum(1) * (b * b).sum(1)), rtol=1e-12)
    for p in (1, 2):
        np.testing.assert_allclose(
            nn.PairwiseDistance(p, keepdim=True)(x, y).numpy(),
            (np.abs(a - b + 1e-6) ** p).sum(1, keepdims=True) ** (1 / p),
            rtol=1e-12)
    assert td.autograd.gradcheck(F.pairwise_distance, (
        x.requires_grad_(), y.requires_grad_()))


def test_flatten_and_unflatten():
    x = td.arange(24).reshape(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(2, (2, 2))(x).shape == (2, 3, 2, 2)
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert nn.Identity(3, a=4)(x) is x


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (3, 2, 4)])
def test_orthogonal(shape):
    td.manual_seed(3)
    w = nn.Parameter(td.empty(*shape, dtype=td.float64))
    assert nn.init.orthogonal_(w, gain=2.0) is w and w.is_leaf
    a = w.detach().numpy().reshape(shape[0], -1) / 2
    product = a @ a.T if a.shape[0] <= a.shape[1] else a.T @ a
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-13)
    with pytest.raises(ValueError):
        nn.init.orthogonal_(td.empty(3))


def test_truncated_normal():
    td.manual_seed(5)
    w = td.empty(40000, dtype=td.float64)
    nn.init.trunc_normal_(w)
    assert -2 <= w.min().item() and w.max().item() <= 2
    assert abs(w.mean().item()) < .02 and abs(w.std().item() - .8796) < .01
    nn.init.trunc_normal_(w, mean=1.0, std=.5, a=1.5, b=4.0)
    assert 1.5 <= w.min().item() < 1.501
    # the mean of a normal law beyond one deviation is 1.5251 of them
    assert abs(w.mean().item() - (1 + .5 * 1.52514)) < .01


def test_identities_and_sparse():
    assert nn.init.eye_(td.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    w = nn.init.dirac_(td.empty(4, 2, 3), groups=2)
    x = td.randn(1, 4, 5)
    y = sum(w[:2, c, 1].reshape(2, 1) * x[0, c] for c in range(2))
    assert y.tolist() == x[0, :2].tolist()
    assert w[2:].tolist() == w[:2].tolist() and w.sum().item() == 4
    w = nn.init.sparse_(td.empty(10, 6), .25)
    assert (w == 0).sum(0).tolist() == [3] * 6
    for fill in (nn.init.eye_, nn.init.dirac_, nn.init.sparse_):
        with pytest.raises(ValueError):
            fill(*(td.empty(3), .5)[:1 + (fill is nn.init.sparse_)])


def test_gains_and_fans():
    gain = nn.init.calculate_gain
    assert gain("conv_transpose2d") == gain("linear") == 1
    assert gain("leaky_relu", .2) == math.sqrt(2 / 1.04)
    fans = nn.init._calculate_fan_in_and_fan_out
    assert fans(td.empty(8, 3, 5, 5)) == (75, 200)


def test_layers_on_a_device_and_in_a_dtype():
    layer = nn.Linear(2, 3, device="cpu", dtype=td.float64)
    assert layer.weight.dtype is td.float64 is layer.bias.dtype
