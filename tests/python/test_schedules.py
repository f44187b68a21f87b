# needs: schedules layers
"""Schedules against PyTorch's sequences: rates, momenta, resuming."""
import math
import pickle

import numpy as np
import pytest
import treadle as td

S = td.optim.lr_scheduler
NAN = float("nan")

GOLDEN = [
    ("S.StepLR(o, 2, .5)",
     [1, 1, 0.5, 0.5, 0.25, 0.25, 0.125]),
    ("S.MultiStepLR(o, [2, 4, 4], .1)",
     [1, 1, 0.1, 0.1, 0.001, 0.001]),
    ("S.ExponentialLR(o, gamma=.5)",
     [1, 0.5, 0.25, 0.125, 0.0625]),
    ("S.ConstantLR(o, total_iters=3)",
     [0.3333333333, 0.3333333333, 0.3333333333, 1, 1, 1]),
    ("S.LinearLR(o)",
     [0.3333333333, 0.4666666667, 0.6, 0.7333333333, 0.8666666667, 1,
      1, 1]),
    ("S.LinearLR(o, 1.0, .2, 4)",
     [1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2]),
    ("S.PolynomialLR(o, 4, 2.0)",
     [1, 0.5625, 0.25, 0.0625, 0, 0]),
    ("S.CosineAnnealingLR(o, 4)",
     [1, 0.8535533906, 0.5, 0.1464466094, 0, 0.1464466094, 0.5,
      0.8535533906, 1, 0.8535533906, 0.5]),
    ("S.CosineAnnealingLR(o, 5, eta_min=.1)",
     [1, 0.9140576475, 0.6890576475, 0.4109423525, 0.1859423525, 0.1,
      0.1859423525, 0.4109423525, 0.6890576475, 0.9140576475, 1,
      0.9140576475, 0.6890576475]),
    ("S.CosineAnnealingWarmRestarts(o, 3, 2)",
     [1, 0.75, 0.25, 1, 0.9330127019, 0.75, 0.5, 0.25, 0.06698729811,
      1, 0.9829629131]),
    ("S.CosineAnnealingWarmRestarts(o, 2, eta_min=.05)",
     [1, 0.525, 1, 0.525, 1, 0.525]),
    ("S.OneCycleLR(o, 1.0, 10)",
     [0.04, 0.52, 1, 0.950484632, 0.8117456539, 0.6112620219,
      0.3887419781, 0.1882583461, 0.04951936799, 4e-06]),
    ("S.OneCycleLR(o, max_lr=.8, epochs=4, steps_per_epoch=3, "
     "anneal_strategy='linear', three_phase=True)",
     [0.032, 0.3273846154, 0.6227692308, 0.6818461538, 0.3864615385,
      0.09107692308, 0.02758664828, 0.02206995862, 0.01655326897,
      0.01103657931, 0.005519889655, 3.2e-06]),
    ("S.LambdaLR(o, lambda e: .95 ** e)",
     [1, 0.95, 0.9025, 0.857375, 0.81450625]),
    ("S.MultiplicativeLR(o, [lambda e: 1 / e])",
     [1, 1, 0.5, 0.1666666667, 0.04166666667]),
    ("S.SequentialLR(o, [S.ConstantLR(o, .1, 2), S.ExponentialLR(o, "
     ".9)], [3])",
     [0.1, 0.1, 1, 1, 0.9, 0.81, 0.729, 0.6561]),
    ("S.SequentialLR(o, [S.LinearLR(o, .25, 1.0, 3), "
     "S.CosineAnnealingLR(o, 4), S.StepLR(o, 1, .5)], milestones=[3, 6])",
     [0.25, 0.5, 0.75, 1, 0.8535533906, 0.5, 1, 0.5, 0.25]),
    ("S.ChainedScheduler([S.ConstantLR(o, .1, 2), S.ExponentialLR(o, .9)])",
     [0.1, 0.09, 0.81, 0.729, 0.6561, 0.59049]),
    ("(S.LinearLR(o, .5, 1.0, 3), S.StepLR(o, 2, .1))",
     [0.5, 0.6666666667, 0.08333333333, 0.1, 0.01, 0.01]),
]


def optimiser(lr=1.0, groups=1, **options):
    return td.optim.SGD([{"params": [td.ones(1, requires_grad=True)]}
                         for _ in range(groups)], lr=lr, **options)


def make(text, o):
    made = eval(text, {"S": S, "o": o})
    return made if isinstance(made, tuple) else (made,)


def follow(o, plans, n):
    seen = []
    for _ in range(n):
        seen.append(o.param_groups[0]["lr"])
        o.step()
        for plan in plans:
            plan.step()
    return seen


@pytest.mark.parametrize("text, rates", GOLDEN)
def test_rates_of_pytorch(text, rates):
    o = optimiser(momentum=.9)
    seen = follow(o, make(text, o), len(rates))
    np.testing.assert_allclose(seen, rates, rtol=2e-9, atol=1e-15)


@pytest.mark.parametrize("text, rates", GOLDEN)
def test_resuming_in_the_middle(text, rates):
    o = optimiser(momentum=.9)
    plans = make(text, o)
    follow(o, plans, 3)
    state = pickle.loads(pickle.dumps(
        ([p.state_dict() for p in plans], o.state_dict())))
    again = optimiser(momentum=.9, lr=7.0)
    copies = make(text, again)
    for plan, saved in zip(copies, state[0]):
        plan.load_state_dict(saved)
    again.load_state_dict(state[1])
    np.testing.assert_allclose(follow(again, copies, len(rates) - 3),
                               rates[3:], rtol=2e-9, atol=1e-15)
    assert copies[-1].get_last_lr() == [again.param_groups[0]["lr"]]


def test_one_cycle_moves_momentum():
    o = optimiser()
    plan = S.OneCycleLR(o, 1.0, 10)
    seen = []
    for _ in range(10):
        seen.append(o.param_groups[0]["momentum"])
        plan.step()
    np.testing.assert_allclose(seen, [
        .95, .9, .85, .8549515566, .8688255099, .8888739533, .9111260467,
        .9311744901, .9450484434, .95], rtol=1e-9)
    with pytest.raises(ValueError, match="step 11 of 10"):
        plan.step()
    adam = td.optim.Adam([td.ones(1, requires_grad=True)])
    plan = S.OneCycleLR(adam, [.5], total_steps=10)
    plan.step()
    assert adam.param_groups[0]["betas"] == (.9, .999)
    with pytest.raises(ValueError, match="momentum"):
        S.OneCycleLR(td.optim.Adagrad([td.ones(1, requires_grad=True)]),
                     .1, 5)
    for bad in ({}, {"total_steps": -3}, {"total_steps": 5, "pct_start": 2},
                {"total_steps": 5, "anneal_strategy": "jump"}):
        with pytest.raises(ValueError, match="OneCycleLR"):
            S.OneCycleLR(o, .1, **bad)


LOSSES = [1, 1, 1, 1, 1, 1, .5, .5, .5, .49, .2, .2, .2, .3, NAN, .1]


@pytest.mark.parametrize("options, rates", [
    ({"factor": .5, "patience": 1},
     [1, 1, 1, .5, .5, .25, .25, .25, .25, .125, .125, .125, .125, .0625,
      .0625, .03125]),
    ({"mode": "max", "factor": .5, "patience": 0, "cooldown": 2,
      "threshold_mode": "abs"},
     [1, 1, .5, .5, .5, .25, .25, .25, .125, .125, .125, .0625, .0625,
      .0625, .03125, .03125]),
    ({"patience": 2, "min_lr": .05, "factor": .3, "threshold": .3},
     [1, 1, 1, 1, .3, .3, .3, .3, .3, .3, .09, .09, .09, .09, .05, .05])])
def test_plateaus(options, rates):
    o = optimiser()
    plan, seen = S.ReduceLROnPlateau(o, **options), []
    for k, loss in enumerate(LOSSES):
        if k == 7:
            state = plan.state_dict()
            plan = S.ReduceLROnPlateau(o)
            plan.load_state_dict(state)
        seen.append(o.param_groups[0]["lr"])
        plan.step(td.tensor(float(loss)))
    np.testing.assert_allclose(seen, rates, rtol=1e-12)
    for bad in ({"factor": 1.0}, {"mode": "up"}, {"min_lr": [0, 0]},
                {"threshold_mode": "x"}):
        with pytest.raises(ValueError):
            S.ReduceLROnPlateau(o, **bad)


def test_named_epochs_and_fractions():
    o = optimiser()
    plan = S.CosineAnnealingWarmRestarts(o, 3, 2)
    for epoch, rate in ((.5, .9330127019), (1.25, .6294095226),
                        (3.5, .9829629131), (4, .9330127019)):
        plan.step(epoch)
        assert abs(plan.get_last_lr()[0] - rate) < 1e-9
    o = optimiser()
    plan = S.StepLR(o, 2, .5)
    for epoch, rate in ((3, .5), (1, 1), (0, 1), (6, .125)):
        plan.step(epoch)
        assert o.param_groups[0]["lr"] == rate
    plan.step()
    assert plan.last_epoch == 7 and o.param_groups[0]["lr"] == .125


def test_warmup_then_decay():
    o = optimiser(lr=2.0)
    seen = follow(o, [S.LinearWarmup(o, warmup_steps=4, total_steps=8)], 10)
    assert seen == [.5, 1, 1.5, 2, 2, 1.5, 1, .5, 0, 0]
    assert "base * (t + 1) / w" in S.LinearWarmup.__doc__
    o = optimiser()
    assert follow(o, [S.LinearWarmup(o, 0, 2)], 3) == [1, .5, 0]


@pytest.mark.parametrize("name, options, words", [
    ("WSD", (3, -5, 4), "stable_steps"), ("WSD", (-1, 5, 4), "warmup_steps"), ("WSD", (3, 5, -4), "decay_steps"),
    ("WSD", (3, 5, 4, -1), "min_lr_ratio"), ("WSD", (3, 5, 4, 2.), "min_lr_ratio: expected 0 to 1, got 2.0"),
    ("WSD", (3, 5, 4, float("nan")), "min_lr_ratio"), ("LinearWarmup", (5, 3), "total_steps: expected 5 to inf, got 3"),
    ("LinearWarmup", (-2, 5), "warmup_steps"), ("LinearWarmup", (0, 0), "total_steps"),
    ("CosineAnnealingWarmRestarts", (0,), "T_0"), ("CosineAnnealingWarmRestarts", (2, 0), "T_mult: expected 1")])
def test_options_of_a_schedule_that_make_no_sense(name, options, words):
    with pytest.raises(ValueError, match=words):
        getattr(S, name)(optimiser(), *options)


def test_two_schedules_multiply():
    o = optimiser()
    plans = [S.ExponentialLR(o, .5), S.MultiStepLR(o, [2], .1)]
    assert follow(o, plans, 4) == [1, .5, .25 * .1, .125 * .1]


def test_groups_have_their_own_rates():
    o = optimiser(groups=2)
    o.param_groups[1]["lr"] = .5
    plan = S.LambdaLR(o, [lambda e: e + 1, lambda e: 1 / (e + 1)])
    plan.step()
    assert [g["lr"] for g in o.param_groups] == [2.0, .25]
    assert plan.base_lrs == [1.0, .5] == [
        g["initial_lr"] for g in o.param_groups]
    with pytest.raises(ValueError, match="2 functions"):
        S.LambdaLR(o, [lambda e: 1])


class Zigzag(S.LRScheduler):
    """A user's own."""
    def get_lr(self):
        return [g["lr"] * (.5 if self.last_epoch % 2 else 2)
                for g in self.optimizer.param_groups]


def test_users_write_their_own(capsys):
    o = optimiser()
    assert follow(o, [Zigzag(o, verbose=True)], 4) == [2, 1, 2, 1]
    assert "group 0 to 2.0000e+00" in capsys.readouterr().out
    assert S._LRScheduler is S.LRScheduler
    with pytest.raises(NotImplementedError, match="get_lr"):
        S.LRScheduler(o)


def test_resuming_by_last_epoch():
    o = optimiser()
    with pytest.raises(KeyError, match="initial_lr"):
        S.StepLR(o, 2, last_epoch=3)
    S.StepLR(o, 2, .5)
    o.param_groups[0]["lr"] = .5
    assert S.StepLR(o, 2, .5, last_epoch=3).get_last_lr() == [.25]


@pytest.mark.parametrize("make, error", [
    (lambda o: S.StepLR(3, 1), TypeError),
    (lambda o: S.ReduceLROnPlateau(3), TypeError),
    (lambda o: S.StepLR(o), TypeError),
    (lambda o: S.StepLR(o, 1, gama=3), TypeError),
    (lambda o: S.CosineAnnealingWarmRestarts(o, 0), ValueError),
    (lambda o: S.LinearLR(o, 2), ValueError), (lambda o: S.LinearLR(o, 1, -1), ValueError),
    (lambda o: S.SequentialLR(o, [S.StepLR(o, 1)], [1]), ValueError),
    (lambda o: S.SequentialLR(optimiser(), [S.StepLR(o, 1)], []),
     ValueError),
    (lambda o: S.ChainedScheduler([S.StepLR(o, 1),
                                   S.StepLR(optimiser(), 1)]), ValueError)])
def test_bad_schedules(make, error):
    with pytest.raises(error):
        make(optimiser())


def test_a_schedule_lowers_the_loss():
    td.manual_seed(1)
    x = td.randn(64, 3)
    y = x @ td.tensor([[1.0], [-2.0], [.5]]) + .1 * td.randn(64, 1)
    net = td.nn.Linear(3, 1)
    o = td.optim.AdamW(net.parameters(), lr=.3, weight_decay=0)
    plan = S.CosineAnnealingLR(o, 60)
    for _ in range(60):
        o.zero_grad()
        loss = td.nn.functional.mse_loss(net(x), y)
        loss.backward()
        o.step()
        plan.step()
    assert loss.item() < .02 and math.isfinite(loss.item())
