# needs: python
"""SGD against the numbers of PyTorch, and its books."""

import numpy as np
import pytest
import treadle as td
from treadle.optim import SGD

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
    (lambda p: SGD([p], lr=float("nan")), ValueError)])
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
    marks = []
    for _ in range(30):
        sgd.zero_grad()
        loss = td.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        del loss
        marks.append(td.memory_stats()["bytes"])
    assert len(set(marks[2:])) == 1 and td.live_node_count() == 0
