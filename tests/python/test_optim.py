# needs: dialect exchange package
"""Optimisers against the numbers of PyTorch, and their books."""
import copy
import pickle

import numpy as np
import pytest
import treadle as td
from treadle.optim import SGD, Adam

GRADS = [[1, -.5], [.1, 2], [-.3, .7], [4, -.01]]


@pytest.mark.parametrize("options, expected", [
    ({}, (0.52, -2.219)),
    ({"momentum": .9}, (0.286, -2.50205)),
    ({"momentum": .9, "nesterov": True}, (-0.1226, -2.670845)),
    ({"momentum": .9, "dampening": .5, "weight_decay": .1},
     (0.413700589, -2.041487784)),
    ({"momentum": .9, "maximize": True}, (1.714, -1.49795))])
def test_golden_trajectories(options, expected):
    p = td.tensor([1.0, -2.0], dtype=td.float64, requires_grad=True)
    sgd = SGD([p], lr=.1, **options)
    for g in GRADS:
        p.grad = td.tensor(g, dtype=td.float64)
        sgd.step()
    np.testing.assert_allclose(p.tolist(), expected, rtol=1e-8)


TEN = GRADS + [[.2, .3], [-1, -2], [.05, .5], [0, -.4], [-.7, 1.5], [.6, -.25]]


def walk(name, options, dtype=td.float64, steps=TEN):
    p = td.tensor([1.0, -2.0], dtype=dtype, requires_grad=True)
    o = getattr(td.optim, name)([p], **{"lr": .1, **options})
    for g in steps:
        p.grad = td.tensor(g, dtype=dtype)
        o.step()
    return p, o


@pytest.mark.parametrize("dtype, rtol", [(td.float64, 1e-11),
                                         (td.float32, 3e-6)])
@pytest.mark.parametrize("name, options, expected", [
    ("Adam", {}, (0.538100192519, -2.15093156297)),
    ("Adam", {"weight_decay": 0.1}, (0.496301358545, -2.00674804965)),
    ("Adam", {"betas": (0.9, 0.5), "amsgrad": True},
     (0.65333812331, -2.09491080337)),
    ("Adam", {"betas": (0.0, 0.9), "maximize": True},
     (1.19614123743, -1.92596437504)),
    ("Adam", {"eps": 0.1, "lr": 0.3}, (-0.274188207992, -2.44360690709)),
    ("AdamW", {}, (0.530855958139, -2.13047901249)),
    ("AdamW", {"weight_decay": 0.1, "amsgrad": True},
     (0.468898115271, -1.95429564368)),
    ("RMSprop", {}, (-0.578310976943, -2.15738139422)),
    ("RMSprop", {"alpha": 0.9, "momentum": 0.9},
     (-1.99095164969, -2.06020958073)),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1},
     (-1.59841858089, -1.30745213325)),
    ("RMSprop", {"maximize": True, "eps": 0.01},
     (2.48542148579, -1.7307575015)),
    ("Adagrad", {}, (0.841846737142, -2.01538272952)),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1},
     (0.831902568042, -1.96170611975)),
    ("Adagrad", {"initial_accumulator_value": 0.5, "maximize": True},
     (1.14176113727, -1.9488528769)),
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
     (-0.59017804636, -1.83066275999)),
    ("SGD", {"momentum": 0.9, "nesterov": True},
     (-1.4262359866, -3.02824667764))])
def test_ten_steps_of_pytorch(name, options, expected, dtype, rtol):
    p, _ = walk(name, options, dtype)
    np.testing.assert_allclose(p.tolist(), expected, rtol=rtol)


STATES = {"SGD": {"momentum_buffer"},
          "Adam": {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
          "AdamW": {"step", "exp_avg", "exp_avg_sq"},
          "RMSprop": {"step", "square_avg", "grad_avg", "momentum_buffer"},
          "Adagrad": {"step", "sum"}}
OPTIONS = {"SGD": {"momentum": .9}, "Adam": {"amsgrad": True}, "AdamW": {},
           "RMSprop": {"centered": True, "momentum": .5},
           "Adagrad": {"lr_decay": .1}}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_state_has_pytorchs_name_and_resumes(name):
    whole, _ = walk(name, OPTIONS[name])
    p, o = walk(name, OPTIONS[name], steps=TEN[:5])
    state = o.state_dict()
    assert set(state["state"][0]) == STATES[name]
    assert all(s.item() == 5 for k, s in state["state"][0].items()
               if k == "step")
    q = td.tensor(p.tolist(), dtype=td.float64, requires_grad=True)
    again = getattr(td.optim, name)([q], lr=3.0)
    again.load_state_dict(pickle.loads(pickle.dumps(state)))
    for g in TEN[5:]:
        q.grad = td.tensor(g, dtype=td.float64)
        again.step()
    assert q.tolist() == whole.tolist()
    assert again.param_groups[0]["lr"] == .1
    assert "lr: 0.1" in repr(again) and repr(again).startswith(name)


def test_a_state_takes_the_type_of_its_parameter():
    _, o = walk("Adam", {}, td.float64, TEN[:2])
    p = td.tensor([1.0, 2.0], requires_grad=True)
    mine = Adam([p])
    mine.load_state_dict(o.state_dict())
    assert mine.state[p]["exp_avg"].dtype is td.float32
    assert mine.state[p]["step"].dtype is td.float32
    old = o.state_dict()
    old["state"][0]["step"] = 2                     # as older files have it
    mine.load_state_dict(old)
    p.grad = td.ones(2)
    mine.step()
    assert mine.state[p]["step"].item() == 3


def test_a_deep_copy_goes_on_alone():
    net = td.nn.Linear(2, 2)
    o = Adam(net.parameters(), lr=.1)
    net(td.ones(1, 2)).sum().backward()
    o.step()
    net2, o2 = copy.deepcopy((net, o))
    assert o2.param_groups[0]["params"][0] is net2.weight
    before = net.weight.tolist()
    o2.step()
    assert net.weight.tolist() == before != net2.weight.tolist()
    assert o.state[net.weight]["step"].item() == 1
    assert o2.state[net2.weight]["step"].item() == 2


class Sign(td.optim.Optimizer):
    """A user's own."""
    def __init__(self, params, lr=.1, decay=0.0):
        super().__init__(params, dict(lr=lr, decay=decay))

    @td.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state["n"] = state.get("n", 0) + 1
                p.mul_(1 - group["decay"])
                p.data.add_(p.grad.sign(), alpha=-group["lr"])


def test_users_write_their_own():
    a = td.tensor([1.0, -1.0], requires_grad=True)
    b = td.tensor([3.0], requires_grad=True)
    o = Sign([a], lr=.25)
    o.add_param_group({"params": [b], "lr": .5})
    (a.sum() * b).sum().backward()
    a.grad = td.tensor([2.0, -3.0])
    b.grad = td.tensor([.1])
    o.step()
    assert a.tolist() == [.75, -.75] and b.tolist() == [2.5]
    assert o.state_dict()["state"] == {0: {"n": 1}, 1: {"n": 1}}
    plan = td.optim.lr_scheduler.StepLR(o, 1, .5)
    plan.step()
    assert [g["lr"] for g in o.param_groups] == [.125, .25]
    with pytest.raises(NotImplementedError, match="step"):
        o2 = td.optim.Optimizer([a], {})
        o2.step()


def test_the_words_for_ways_to_step_are_accepted():
    p = td.ones(2, requires_grad=True)
    Adam([p], foreach=True, fused=False, capturable=True)
    SGD([p], .1, foreach=False)
    td.optim.RMSprop([p], foreach=None)
    td.optim.Adagrad([p], .1, 0, 0, 0, 1e-10, True, maximize=True)
    with pytest.raises(NotImplementedError, match="differentiable"):
        Adam([p], differentiable=True)


def test_steps_refuse_what_does_not_fit():
    p = td.ones(3, requires_grad=True)
    o = Adam([p])
    p.grad = td.ones(3)
    o.step()
    o.state[p]["exp_avg"] = td.ones(2)
    with pytest.raises(RuntimeError, match=r"exp_avg has shape \[2\], expected \[3\]"):
        o.step()
    o.state[p]["exp_avg"] = td.ones(3)
    o.state[p]["step"] = td.ones(2)
    with pytest.raises(TypeError, match="one float"):
        o.step()


def test_parameters_that_are_views_with_gaps():
    for name, options in OPTIONS.items():
        base = td.zeros(2, 3, dtype=td.float64)
        base[:, 1] = td.tensor([1.0, -2.0], dtype=td.float64)
        p = base[:, 1].requires_grad_()
        o = getattr(td.optim, name)([p], lr=.1, **options)
        for g in TEN:
            p.grad = td.tensor([g, g], dtype=td.float64).T[:, 0] * 1
            p.grad = td.tensor(g, dtype=td.float64)
            o.step()
        assert p.tolist() == walk(name, options)[0].tolist()
        assert base[:, 0].tolist() == [0, 0]


@pytest.mark.parametrize("name", OPTIONS)
def test_compiled_steps_count(name):
    """Thirty compiled steps are thirty eager ones, at two rates."""
    def train(jit):
        td.manual_seed(4)
        net = td.nn.Linear(3, 2)
        o = getattr(td.optim, name)(net.parameters(), lr=.05,
                                    **OPTIONS[name])
        x, y = td.randn(8, 3), td.randn(8, 2)

        def step(x, y):
            o.zero_grad()
            loss = td.nn.functional.mse_loss(net(x), y)
            loss.backward()
            o.step()
            return loss
        run = td.jit(step) if jit else step
        losses = []
        for k in range(30):
            if k == 20:
                o.param_groups[0]["lr"] = .01
            losses.append(run(x, y).item())
        return losses, net.weight.tolist()
    for a, b in zip(train(False), train(True)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_clipping():
    p, q = td.ones(2, requires_grad=True), td.ones(1, requires_grad=True)
    idle = td.ones(1, requires_grad=True)
    p.grad, q.grad = td.tensor([3.0, 0.0]), td.tensor([4.0])
    clip = td.nn.utils.clip_grad_norm_
    assert clip([p, q, idle], 10.0).item() == 5.0
    assert p.grad.tolist() == [3.0, 0.0]
    assert clip([p, q], 1.0).item() == 5.0
    np.testing.assert_allclose(p.grad.tolist() + q.grad.tolist(),
                               [.5999999, 0, .7999998], rtol=1e-7)
    q.grad = td.tensor([-4.0])
    assert clip((x for x in (p, q)), 2.0, float("inf")).item() == 4.0
    assert abs(q.grad.item() + 2.0) < 1e-6
    q.grad = td.tensor([float("nan")])
    with pytest.raises(RuntimeError, match="norm"):
        clip(q, 1.0, error_if_nonfinite=True)
    assert np.isnan(clip([p, q], 1.0).item()) and np.isnan(p.grad[0].item())
    assert clip([idle], 1.0).item() == 0.0
    p.grad = td.tensor([3.0, -.25])
    td.nn.utils.clip_grad_value_(p, .5)
    assert p.grad.tolist() == [.5, -.25]


def test_parameters_as_one_vector():
    net = td.nn.Linear(2, 3)
    ids = [id(p) for p in net.parameters()]
    v = td.nn.utils.parameters_to_vector(net.parameters())
    assert v.shape == (9,) and v.requires_grad
    td.nn.utils.vector_to_parameters(td.arange(9.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert net.bias.tolist() == [6, 7, 8] and net.bias.requires_grad
    assert [id(p) for p in net.parameters()] == ids


def test_resuming_from_a_state_dict():
    def run(steps, state=None, values=(1.0, -2.0)):
        p = td.tensor(values, dtype=td.float64, requires_grad=True)
        sgd = SGD([p], lr=.1, momentum=.9)
        if state is not None:
            sgd.load_state_dict(state)
        for g in steps:
            p.grad = td.tensor(g, dtype=td.float64)
            sgd.step()
        return p.tolist(), sgd.state_dict()
    whole, _ = run(GRADS)
    half, state = run(GRADS[:2])
    assert state["param_groups"][0]["params"] == [0]
    assert run(GRADS[2:], state, half)[0] == whole


def test_groups_have_their_own_options():
    a, b = (td.ones(1, requires_grad=True) for _ in range(2))
    sgd = SGD([{"params": [a]}, {"params": b, "lr": .5}], lr=.1)
    for p in (a, b):
        p.grad = td.ones(1)
    sgd.step()
    assert abs(a.item() - .9) < 1e-6 and abs(b.item() - .5) < 1e-6
    sgd.param_groups[0]["lr"] = 0.0
    sgd.step()
    assert abs(a.item() - .9) < 1e-6


def test_parameters_without_gradient_are_left_alone():
    a, b = (td.ones(1, requires_grad=True) for _ in range(2))
    sgd = SGD([a, b], lr=.1, momentum=.9)
    a.grad = td.ones(1)
    sgd.step()
    assert b.item() == 1.0 and b not in sgd.state
    sgd.zero_grad()
    assert a.grad is None
    a.grad = td.ones(1)
    sgd.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0]


def test_closure():
    p = td.tensor([2.0], requires_grad=True)
    sgd = SGD([p], lr=.1)

    def closure():
        sgd.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss
    assert sgd.step(closure).item() == 4.0
    assert abs(p.item() - 1.6) < 1e-6


@pytest.mark.parametrize("make, error", [
    (lambda p: SGD([], lr=.1), ValueError),
    (lambda p: SGD(p, lr=.1), TypeError),
    (lambda p: SGD([3], lr=.1), TypeError),
    (lambda p: SGD([p * 2], lr=.1), ValueError),
    (lambda p: SGD([p, p], lr=.1), ValueError),
    (lambda p: SGD([{"params": [p]}, {"params": [p]}], lr=.1), ValueError),
    (lambda p: SGD([p], lr=-1), ValueError),
    (lambda p: SGD([p], lr=.1, momentum=-1), ValueError),
    (lambda p: SGD([p], lr=.1, nesterov=True), ValueError),
    (lambda p: SGD([p], lr=float("nan")), ValueError),
    (lambda p: SGD([{"params": {p}}], lr=.1), TypeError),
    (lambda p: Adam([p], lr=-1), ValueError),
    (lambda p: Adam([p], betas=(.9, 1.0)), ValueError),
    (lambda p: Adam([p], betas=(-.1, .9)), ValueError),
    (lambda p: Adam([p], eps=-1), ValueError),
    (lambda p: td.optim.AdamW([p], weight_decay=-1), ValueError),
    (lambda p: td.optim.RMSprop([p], alpha=-1), ValueError),
    (lambda p: td.optim.RMSprop([p], momentum=-1), ValueError),
    (lambda p: td.optim.Adagrad([p], lr_decay=-1), ValueError)])
def test_bad_options(make, error):
    with pytest.raises(error):
        make(td.ones(2, requires_grad=True))


def test_regression_learns(no_leaks):
    x = td.rand(256, 1) * 2 - 1
    y = x * 2 + 1
    net = td.nn.Linear(1, 1)
    sgd = SGD(net.parameters(), lr=.3, momentum=.5)
    for _ in range(60):
        sgd.zero_grad()
        td.nn.functional.mse_loss(net(x), y).backward()
        sgd.step()
    assert abs(net.weight.item() - 2) < 1e-3
    assert abs(net.bias.item() - 1) < 1e-3


def test_memory_does_not_grow_from_step_to_step():
    net = td.nn.Sequential(td.nn.Linear(20, 30), td.nn.ReLU(),
                           td.nn.Linear(30, 10))
    sgd = SGD(net.parameters(), lr=.1, momentum=.9)
    x, y = td.randn(16, 20), td.randint(0, 10, (16,))
    marks, nodes = [], td.live_node_count()
    for _ in range(30):
        sgd.zero_grad()
        loss = td.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        del loss
        marks.append(td.memory_stats()["bytes"])
    assert len(set(marks[2:])) == 1 and td.live_node_count() == nodes


class Fleeting(td.nn.Parameter):
    """A parameter whose gradient another thread takes away after the first look."""
    looks = 0

    @property
    def grad(self):
        self.looks += 1
        return td.ones(3) if self.looks == 1 else None


@pytest.mark.parametrize("use", [
    *(lambda p, name=name: getattr(td.optim, name)([p], lr=0.1).step() for name in OPTIONS),
    lambda p: td.optim.SGD([p], lr=0.1).zero_grad(set_to_none=False),
    lambda p: td.nn.ParameterList([p]).zero_grad(set_to_none=False),
    lambda p: td.nn.ParameterList([p]).double(),
    lambda p: td.nn.utils.clip_grad_value_([p], 1.0)])
def test_a_gradient_is_asked_for_once(use):
    p = Fleeting(td.ones(3))
    use(p)
    assert p.looks == 1
