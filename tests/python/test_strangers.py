# needs: strangers
"""What programs of others touch: names, calls, paths, data."""
import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.utils.data import (
    BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset,
    RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
    TensorDataset, WeightedRandomSampler, default_convert,
    get_worker_info, random_split)


def run(tmp_path, text, *arguments):
    path = tmp_path / "program.py"
    path.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "treadle", str(path), *arguments],
        capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.environ["TREADLE_STAGE"]})


def test_a_program_finds_torch(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nn = torch.ones(2)\n")
    done = run(tmp_path, """
import sys
import torch
import torch.nn as nn, torch.nn.functional as F
from torch import Tensor, optim
from torch.autograd import Variable
from torch.autograd.variable import Variable as Again
from torch.nn.parameter import Parameter
from torch.nn.modules.module import Module
from torch.optim.optimizer import Optimizer
from torch.utils.data.dataloader import DataLoader
from torch.nn.modules.utils import _pair
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.utils.hooks import RemovableHandle
import torch.backends.cudnn as cudnn
import treadle, treadle.nn, beside
assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2)
assert issubclass(nn.BatchNorm2d, _BatchNorm) and not cudnn.benchmark
assert issubclass(nn.Conv2d, _ConvNd)
assert isinstance(nn.ReLU().register_forward_hook(id), RemovableHandle)
assert torch is treadle and nn is treadle.nn and Variable is Again
assert treadle.__spec__.name == "treadle" == treadle.__name__
assert nn.__spec__.name == "treadle.nn" and Parameter is nn.Parameter
assert issubclass(optim.SGD, Optimizer) and issubclass(nn.Linear, Module)
assert isinstance(beside.n, Tensor) and callable(torch.tensor)
try:
    import torch.no_such_thing
except ModuleNotFoundError as error:
    print(error)
print(sys.argv[1:], __name__)
""", "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("No module named 'treadle.no_such_thing'\n"
                           "['--epochs', '3'] __main__\n")


def test_standing_for_what_is_there_already_is_refused():
    with pytest.raises(ImportError, match="sys is imported already"):
        td.stand_for("sys")


def test_forward_hooks_see_and_replace():
    layer, x, seen = nn.Linear(3, 2), td.ones(4, 3), []
    plain = layer(x)
    first = layer.register_forward_pre_hook(
        lambda module, args: seen.append(args[0].shape))
    second = layer.register_forward_pre_hook(
        lambda module, args: 2 * args[0])
    last = layer.register_forward_hook(
        lambda module, args, result: result + 1)
    assert td.allclose(layer(x), 2 * plain - layer.bias + 1)
    assert seen == [x.shape] and len(layer._forward_hooks) == 1
    for handle in first, second, last:
        handle.remove()
        handle.remove()
    assert td.equal(layer(x), plain) and len(seen) == 1
    with layer.register_forward_hook(lambda *a: a[-1] * 0):
        assert layer(x).sum() == 0
    assert td.equal(layer(x), plain)


def test_hooks_with_keywords_and_in_order():
    class Scale(nn.Module):
        def forward(self, x, by=1):
            return x * by
    module, order = Scale(), []
    module.register_forward_hook(lambda m, a, r: order.append(1))
    module.register_forward_hook(lambda m, a, r: order.append(0),
                                 prepend=True)
    module.register_forward_pre_hook(
        lambda m, a, k: (a, {"by": 5}), with_kwargs=True)
    module.register_forward_hook(
        lambda m, a, k, r: order.append(k["by"]), with_kwargs=True)
    assert module(td.tensor(2.0), by=3) == 10
    assert order == [0, 1, 5]


def test_a_hook_may_remove_itself():
    layer = nn.Identity()

    def once(module, args, result):
        handle.remove()
        return -result
    handle = layer.register_forward_hook(once)
    assert layer(td.tensor(1.0)) == -1 and layer(td.tensor(1.0)) == 1


def test_backward_hooks_see_both_sides():
    class Three(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(td.tensor(3.0))

        def forward(self, x):
            return self.w * x
    module, seen = Three(), []

    def double(m, inner, outer):
        seen.append((inner, outer))
        return tuple(g if g is None else 2 * g for g in inner)
    module.register_full_backward_hook(double)
    x = td.tensor(5.0, requires_grad=True)
    module(x).backward()
    (inner, outer), = seen
    assert [g.item() for g in inner + outer] == [3, 1]
    assert x.grad == 6 and module.w.grad == 5
    module(td.tensor(5.0)).backward()
    assert seen[1][0] == (None,) and seen[1][1][0] == 1


def test_one_call_for_several_arguments_and_results():
    class Pair(nn.Module):
        def forward(self, a, b, n, k=1):
            return a * b * k, n, a + b
    module, seen = Pair(), []
    module.register_full_backward_hook(
        lambda m, inner, outer: seen.append((inner, outer)))
    a, b = (td.ones(2, requires_grad=True) for _ in range(2))
    p, _, q = module(a, b, 7, k=3)
    (p.sum() + q.sum()).backward()
    (inner, outer), = seen
    assert inner[2] is None and outer[1] is None and len(outer) == 3
    assert a.grad.tolist() == b.grad.tolist() == [4, 4]
    assert inner[0].tolist() == [4, 4]


def test_second_derivatives_go_through_a_hooked_module():
    class Cube(nn.Module):
        def forward(self, x):
            return x ** 3
    module, calls = Cube(), []
    module.register_full_backward_hook(lambda *a: calls.append(1))
    x = td.tensor([0.7, -1.3], dtype=td.float64, requires_grad=True)
    assert td.autograd.gradcheck(module, (x,))
    assert td.autograd.gradgradcheck(module, (x,))
    assert calls


def test_paths_lead_to_parts():
    net = nn.Sequential(dict(a=nn.Linear(3, 2), b=nn.Sequential(nn.Tanh())))
    net.b.register_buffer("count", td.tensor(4))
    assert net.get_submodule("b.0") is net.b[0]
    assert net.get_submodule("") is net and net._get_name() == "Sequential"
    assert net.get_parameter("a.weight") is net.a.weight
    assert net.get_buffer("b.count") is net.b.count
    for find, bad in ((net.get_submodule, "b.7"), (net.get_parameter, "a.w"),
                      (net.get_buffer, "a.weight")):
        with pytest.raises(AttributeError, match=bad[-1]):
            find(bad)
    assert repr(net[:1]) == ("Sequential(\n  (a): Linear(in_features=3, "
                             "out_features=2, bias=True)\n)")


def test_conversions_keep_parameters_and_their_order():
    net = nn.Linear(2, 2)
    weight = net.weight
    net.register_buffer("steps", td.tensor(3))
    assert net.half().weight.dtype is td.float16
    assert net.bfloat16().steps.dtype is td.int64
    assert net.to(td.zeros(1, dtype=td.float64)).weight.dtype is td.float64
    assert net.type(td.float32).steps.dtype is td.float32
    assert net.to("cpu", non_blocking=True).weight is weight
    with pytest.raises(TypeError, match="floating"):
        net.to(td.int64)
    net.weight = nn.Parameter(td.zeros(2, 2))
    assert list(net.state_dict()) == ["weight", "bias", "steps"]
    kept = net.state_dict(prefix="a.", keep_vars=True)
    assert kept["a.bias"] is net.bias
    assert repr(net.load_state_dict(net.state_dict())) \
        == "<All keys matched successfully>"


def test_modules_with_hooks_are_copied():
    net = nn.Linear(2, 2)
    net.register_forward_hook(plus_one)
    x = td.ones(1, 2)
    for other in copy.deepcopy(net), pickle.loads(pickle.dumps(net)):
        assert td.equal(other(x), net(x)) and other.weight is not net.weight


def plus_one(module, args, result):
    return result + 1


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.float32(i), i * i


def test_samplers():
    assert list(SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(RandomSampler(range(7))) == list(range(7))
    many = RandomSampler(range(3), replacement=True, num_samples=8)
    assert len(many) == 8 and set(many) <= {0, 1, 2}
    assert sorted(RandomSampler(range(3), num_samples=6)) == \
        [0, 0, 1, 1, 2, 2]
    cut = BatchSampler(SequentialSampler(range(7)), 3, False)
    assert list(cut) == [[0, 1, 2], [3, 4, 5], [6]] and len(cut) == 3
    cut = BatchSampler(SequentialSampler(range(7)), 3, True)
    assert list(cut) == [[0, 1, 2], [3, 4, 5]] and len(cut) == 2
    some = SubsetRandomSampler([9, 4])
    assert sorted(some) == [4, 9] and len(some) == 2
    td.manual_seed(0)
    drawn = list(WeightedRandomSampler([0.0, 3.0, 1.0], 4000))
    assert len(drawn) == 4000 and set(drawn) == {1, 2}
    assert abs(drawn.count(1) / 4000 - 0.75) < 0.03


def test_loaders_take_samplers():
    class Even(Sampler):
        def __iter__(self):
            return iter(range(0, 8, 2))

        def __len__(self):
            return 4
    loader = DataLoader(Squares(8), 3, sampler=Even(), pin_memory=True)
    assert [y.tolist() for _, y in loader] == [[0, 4, 16], [36]]
    assert len(loader) == 2
    loader = DataLoader(Squares(8), batch_sampler=[[1], [2, 3]])
    assert [y.tolist() for _, y in loader] == [[1], [4, 9]]
    single = DataLoader(Squares(2), batch_size=None)
    assert [y for _, y in single] == [0, 1] and len(single) == 2
    with pytest.raises(ValueError, match="sampler"):
        DataLoader(Squares(8), shuffle=True, sampler=Even())


def test_streams_are_only_iterated():
    class Lines(IterableDataset):
        def __iter__(self):
            return iter(range(3, 8))
    assert [b.tolist() for b in DataLoader(Lines(), 2)] == \
        [[3, 4], [5, 6], [7]]
    assert list(DataLoader(Lines(), batch_size=None)) == [3, 4, 5, 6, 7]
    assert len(list(DataLoader(Lines(), 2, drop_last=True))) == 2
    with pytest.raises(ValueError, match="IterableDataset exclude each other"):
        DataLoader(Lines(), 2, shuffle=True)
    with pytest.raises(TypeError):
        len(DataLoader(Lines(), 2))


def test_the_order_is_drawn_when_the_epoch_begins():
    loader = DataLoader(TensorDataset(td.arange(9)), 4, shuffle=True)
    td.manual_seed(2)
    expected = td.randperm(9).tolist()
    td.manual_seed(2)
    epoch = iter(loader)
    td.rand(5)
    assert [i for b, in epoch for i in b.tolist()] == expected


def test_datasets_are_joined_and_split():
    both = Squares(3) + Squares(2)
    assert isinstance(both, ConcatDataset) and len(both) == 5
    assert [both[i][1] for i in (0, 2, 3, 4, -1)] == [0, 4, 0, 1, 1]
    for bad in 5, -6:
        with pytest.raises(IndexError, match="range"):
            both[bad]
    parts = random_split(range(10), [7, 3],
                         generator=td.Generator().manual_seed(1))
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(i for p in parts for i in p) == list(range(10))
    assert [len(p) for p in random_split(range(10), [0.55, 0.25, 0.2])] \
        == [6, 2, 2]
    with pytest.raises(ValueError, match="sum to 9"):
        random_split(range(10), [4, 5])


def test_items_without_batches():
    got = default_convert({"a": (np.arange(2), "b"), "c": 1.5})
    assert got["a"][0].tolist() == [0, 1] and got["a"][1] == "b"
    assert got["c"] == 1.5 and get_worker_info() is None


def test_variables_are_leaves():
    x = td.ones(2, requires_grad=True)
    y = td.autograd.Variable(x * 2)
    assert y.is_leaf and not y.requires_grad
    z = td.autograd.Variable(x, requires_grad=True)
    assert z.requires_grad and z is not x
    assert z.data_ptr() == x.data_ptr()
    assert isinstance(x, td.autograd.Variable)
    assert not isinstance(1, td.autograd.Variable)
    with pytest.raises(TypeError, match="list"):
        td.autograd.Variable([1.0])


def test_data_writes_behind_the_back_of_a_graph():
    x, buffer = td.ones(3, requires_grad=True), td.zeros(3)
    y = x * buffer
    buffer.data[0] = 5
    buffer.data[1:].fill_(2)
    y.sum().backward()
    assert x.grad.tolist() == [5, 2, 2] and buffer._version == 0
    for changed in buffer, buffer.detach(), buffer[1:]:
        y = x * buffer
        changed.add_(1)
        with pytest.raises(RuntimeError, match="modified in place"):
            y.sum().backward()
    lent = buffer.data
    y = x * lent
    lent.add_(1)
    with pytest.raises(RuntimeError, match="modified in place"):
        y.sum().backward()


def test_what_follows_the_numbers_of_a_tensor():
    x = td.full((2, 8), 0.5, dtype=td.float64, requires_grad=True)
    row = "[" + ", ".join(["0.5000"] * 8) + "]"
    body = f"tensor([{row},\n        {row}]"
    assert repr(x) == body + ",\n       dtype=treadle.float64, " \
        "requires_grad=True)"
    y = (x * 1)[:, :1]
    assert repr(y) == "tensor([[0.5000],\n        [0.5000]], " \
        "dtype=treadle.float64, grad_fn=<SliceBackward0>)"
    assert repr(td.zeros(2, 0, dtype=td.int32)) == \
        "tensor([], size=(2, 0), dtype=treadle.int32)"
    td.set_printoptions(linewidth=40)
    try:
        assert repr(y).endswith("]],\n       dtype=treadle.float64,\n"
                                "       grad_fn=<SliceBackward0>)")
    finally:
        td.set_printoptions(profile="default")
    assert repr(td.tensor(2.0, requires_grad=True) * 1) == \
        "tensor(2., grad_fn=<MulBackward0>)"


def test_the_class_of_a_node_is_named_after_its_operator():
    class Twice(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g
    x = td.ones(2, requires_grad=True)
    node = (x.exp() + 1).grad_fn
    assert type(node).__name__ == node.name() == "AddBackward0"
    inner = node.next_functions[0][0]
    assert type(inner).__name__ == "ExpBackward0"
    assert type(inner) is type(x.exp().grad_fn)
    leaf = inner.next_functions[0][0]
    assert type(leaf).__name__ == "AccumulateGrad" and leaf.variable is x
    assert type(Twice.apply(x).grad_fn).__name__ == "TwiceBackward"


def test_an_option_can_be_required():
    from treadle.optim.optimizer import Optimizer, required
    p = td.zeros(1, requires_grad=True)
    with pytest.raises(ValueError, match="rate"):
        Optimizer([p], {"rate": required, "other": 1})
    opt = Optimizer([{"params": [p], "rate": 2}], {"rate": required})
    assert opt.param_groups[0]["rate"] == 2


def test_a_buffer_of_a_sequential_is_found_under_any_name():
    net = nn.Sequential(nn.Linear(2, 2))
    for name in "count", "index", "remove", "reverse":
        net.register_buffer(name, td.tensor(3))
        assert getattr(net, name) is net.get_buffer(name)
    net += [nn.Tanh()]
    assert isinstance(net.pop(), nn.Tanh) and len(net) == 1


def test_a_normalised_weight_learns_length_and_direction():
    td.manual_seed(3)
    layer = nn.Linear(3, 2).double()
    before, x = layer.weight.detach().clone(), td.randn(4, 3).double()
    plain = layer(x)
    assert nn.utils.weight_norm(layer) is layer
    assert [n for n, _ in layer.named_parameters()] == \
        ["bias", "weight_g", "weight_v"]
    assert layer.weight_g.shape == (2, 1)
    assert td.allclose(layer(x), plain) and td.allclose(layer.weight, before)
    layer(x).square().sum().backward()
    g, v = layer.weight_g.grad, layer.weight_v.grad
    assert td.allclose((v * layer.weight_v).sum(1), td.zeros(2).double())
    w = before.requires_grad_()
    td.nn.functional.linear(x, w, layer.bias.detach()).square().sum() \
        .backward()
    unit = before.detach() / before.detach().norm(dim=1, keepdim=True)
    assert td.allclose(g, (w.grad * unit).sum(1, keepdim=True))


def test_sequences_are_padded():
    from treadle.nn.utils.rnn import pad_sequence
    parts = [td.ones(2, 3), td.ones(4, 3, requires_grad=True)]
    batch = pad_sequence(parts, batch_first=True, padding_value=-1)
    assert batch.shape == (2, 4, 3) and batch[0, 2:].eq(-1).all()
    assert pad_sequence(parts).shape == (4, 2, 3)
    batch.sum().backward()
    assert parts[1].grad.eq(1).all()
    words = [td.tensor([5]), td.tensor([7, 8])]
    assert pad_sequence(words, True).tolist() == [[5, 0], [7, 8]]


def test_a_split_into_nothing_is_refused():
    from treadle.utils.data import random_split
    with pytest.raises(ValueError):
        random_split(range(5), [])
