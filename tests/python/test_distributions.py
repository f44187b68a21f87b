# needs: distributions
# SPDX-License-Identifier: MIT
"""Four distributions: beside torch.distributions, their moments, their gradients, their refusals."""
import math

import pytest
import treadle as td
from treadle.distributions import Bernoulli, Categorical, Normal, Uniform, kl_divergence

PARAMETERS = {
    "Normal": [dict(loc=[[0.3], [-2.0]], scale=[0.5, 1.0, 3.0]), dict(loc=[1.0], scale=[2.0])],
    "Uniform": [dict(low=[-1.0, 0.0], high=[2.0, 0.5]), dict(low=[[-1.5]], high=[2.5, 3.0])],
    "Bernoulli": [dict(probs=[0.02, 0.2, 0.9]), dict(logits=[-3.0, 0.1, 4.0])],
    "Categorical": [dict(probs=[[0.2, 0.0, 3.0], [1.0, 1.0, 2.0]]), dict(logits=[0.1, -4.0, 2.0])]}
VALUES = {"Normal": [[-1.5], [0.2]], "Uniform": [[0.0], [0.25]], "Bernoulli": [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]],
          "Categorical": [[0], [2]]}
CASES = [(name, i) for name, all in PARAMETERS.items() for i in range(len(all))]


def made(library, module, name, i, dtype="float64"):
    dtype = getattr(library, dtype)
    named = {k: library.tensor(v, dtype=dtype, requires_grad=True) for k, v in PARAMETERS[name][i].items()}
    return getattr(module, name)(**named), list(named.values())


@pytest.fixture
def peer():
    return pytest.importorskip("torch", reason="PyTorch is not installed: make deps-peers")


def same(a, b):
    a, b = td.tensor(a.tolist(), dtype=td.float64), td.tensor(b.tolist(), dtype=td.float64)
    assert a.shape == b.shape and td.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True), (a, b)


@pytest.mark.parametrize("name, i", CASES)
def test_as_pytorch(peer, name, i):
    import torch.distributions
    ours, x = made(td, td.distributions, name, i)
    theirs, y = made(peer, torch.distributions, name, i)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) and tuple(ours.event_shape) == ()
    assert ours.has_rsample == theirs.has_rsample
    for what in ("mean", "variance", "stddev"):
        same(getattr(ours, what), getattr(theirs, what))
    if name in ("Bernoulli", "Categorical"):
        same(ours.probs, theirs.probs)
        same(ours.logits, theirs.logits)
    for f in (lambda d, t: d.entropy(), lambda d, t: d.log_prob(t.tensor(VALUES[name]).double())):
        mine, other = f(ours, td), f(theirs, peer)
        same(mine, other)
        mine.sum().backward(retain_graph=True)
        other.sum().backward(retain_graph=True)
    for a, b in zip(x, y):
        same(a.grad, b.grad)
    assert tuple(ours.sample((2, 3)).shape) == tuple(theirs.sample((2, 3)).shape)
    assert str(ours.sample().dtype).split(".")[1] == str(theirs.sample().dtype).split(".")[1]


@pytest.mark.parametrize("name", PARAMETERS)
def test_divergences_as_pytorch(peer, name):
    import torch.distributions
    for i in range(2):
        for j in range(2):
            (p, x), (q, _) = made(td, td.distributions, name, i), made(td, td.distributions, name, j)
            (a, y), (b, _) = made(peer, torch.distributions, name, i), made(peer, torch.distributions, name, j)
            mine, other = kl_divergence(p, q), torch.distributions.kl_divergence(a, b)
            same(mine, other)
            if i != 0 or name in ("Normal", "Uniform"):     # at 0 and 1 the two differ, rightly: inf times 0
                mine[mine.isfinite()].sum().backward()
                other[other.isfinite()].sum().backward()
                for a, b in zip(x, y):
                    same(a.grad, b.grad)


def test_the_ends_of_probabilities():
    coin = Bernoulli(td.tensor([0.0, 1.0]))
    assert kl_divergence(Bernoulli(td.tensor(0.5)), coin).tolist() == [math.inf, math.inf]
    assert kl_divergence(coin, coin).tolist() == [0, 0]
    assert coin.entropy().tolist() == pytest.approx([0, 0], abs=1e-5)
    sure = Categorical(logits=td.tensor([0.0, -math.inf]))
    assert sure.entropy().item() == 0 and sure.log_prob(td.tensor(1)).item() == -math.inf
    assert sure.sample((50,)).sum().item() == 0


@pytest.mark.parametrize("name", PARAMETERS)
def test_draws_have_the_moments(name):
    d, _ = made(td, td.distributions, name, 0, "float32")
    x = d.sample((20000,))
    assert not x.requires_grad
    if name == "Categorical":
        shares = td.stack([(x == k).float().mean(0) for k in range(3)], -1)
        assert (shares - d.probs).abs().max().item() < 0.02
        return
    error = (d.variance / 20000).sqrt()
    assert ((x.mean(0) - d.mean).abs() <= 5 * error + 1e-9).all()
    assert td.allclose(x.var(0), d.variance, rtol=0.06, atol=1e-9)


@pytest.mark.parametrize("kind", [Normal, Uniform])
def test_gradients_pass_through_draws(kind):
    a = td.tensor([0.5, 1.0], dtype=td.float64, requires_grad=True)
    b = td.tensor([2.0, 4.0], dtype=td.float64, requires_grad=True)

    def draw(a, b):
        td.manual_seed(3)
        return kind(a, b).rsample((4,)).sum()

    assert td.autograd.gradcheck(draw, (a, b))
    for f in (lambda a, b: kind(a, b).log_prob(td.tensor([1.5, 2.5])), lambda a, b: kind(a, b).entropy()):
        assert td.autograd.gradcheck(f, (a, b))
    with pytest.raises(NotImplementedError, match="Bernoulli.rsample"):
        Bernoulli(0.5).rsample()


def test_a_policy_learns_to_choose():
    logits = td.zeros(4, requires_grad=True)
    for _ in range(200):
        policy = Categorical(logits=logits)
        action = policy.sample((16,))
        (-policy.log_prob(action) * (action == 2).float()).mean().backward()
        with td.no_grad():
            logits -= logits.grad
        logits.grad = None
    assert Categorical(logits=logits).probs[2].item() > 0.9


def test_numbers_and_seeds():
    d = Normal(0.0, 1.0)
    assert d.batch_shape == () and d.sample().shape == () and d.log_prob(0.0).item() == pytest.approx(-0.9189385)
    td.manual_seed(4)
    x = Uniform(0, 1).sample((3,))
    td.manual_seed(4)
    assert x.tolist() == Uniform(0, 1).sample((3,)).tolist()
    assert Normal(td.ones(2, dtype=td.float64), 2).scale.dtype is td.float64


@pytest.mark.parametrize("wrong, message", [
    (lambda: Normal(0.0, 0.0), "Normal: expected scale > 0"),
    (lambda: Normal(math.nan, 1.0), "Normal: "),
    (lambda: Normal(0.0, td.tensor([1.0, math.nan])), "Normal: "),
    (lambda: Uniform(1.0, 1.0), "Uniform: expected low < high"),
    (lambda: Bernoulli(td.tensor([0.5, 1.5])), "Bernoulli: expected probabilities"),
    (lambda: Bernoulli(-0.1), "Bernoulli: expected probabilities"),
    (lambda: Bernoulli(), "Either `probs` or `logits`"),
    (lambda: Categorical(td.ones(2), td.ones(2)), "Either `probs` or `logits`"),
    (lambda: Categorical(td.tensor([0.5, -0.1])), "Categorical: expected probabilities"),
    (lambda: Categorical(td.zeros(3)), "Categorical: "),
    (lambda: Categorical(logits=td.tensor([math.nan, 1.0])), "Categorical: "),
    (lambda: Categorical(td.ones(3)).log_prob(td.tensor(3)), "Categorical: a value is outside"),
    (lambda: Categorical(td.ones(3)).log_prob(td.tensor(0.5)), "Categorical: a value"),
    (lambda: Bernoulli(0.5).log_prob(0.5), "Bernoulli: a value"),
    (lambda: Uniform(0.0, 1.0).log_prob(1.5), "Uniform: a value"),
    (lambda: Normal(0.0, 1.0).log_prob(math.nan), "Normal: a value")])
def test_wrong_parameters_and_values_are_refused(wrong, message):
    with pytest.raises(ValueError) as caught:
        wrong()
    assert message in str(caught.value)


def test_checks_can_be_left_out():
    assert Uniform(0.0, 1.0, validate_args=False).log_prob(1.5).item() == -math.inf
    with pytest.raises(NotImplementedError, match="Normal and Uniform"):
        kl_divergence(Normal(0.0, 1.0), Uniform(0.0, 1.0))


@pytest.mark.parametrize("name, i", CASES)
def test_supports_and_inverses(peer, name, i):
    import torch.distributions
    both = [made(td, td.distributions, name, i)[0], made(peer, torch.distributions, name, i)[0]]
    batch = [2, *both[0].batch_shape]
    same(*(d.expand(batch).log_prob(m.tensor(VALUES[name], dtype=m.float64)) for m, d in zip((td, peer), both)))
    assert list(both[0].expand(batch).sample((3,)).shape) == [3, *batch] and both[0].expand(batch).batch_shape == tuple(batch)
    same(*(d.expand(batch).entropy() for d in both))
    if name in ("Normal", "Uniform"):
        ps = [[0.1], [0.9]]
        same(*(d.cdf(m.tensor(VALUES[name], dtype=m.float64)) for m, d in zip((td, peer), both)))
        same(*(d.icdf(m.tensor(ps, dtype=m.float64)) for m, d in zip((td, peer), both)))
        missing = both[0].enumerate_support
    else:
        for expand in (True, False):
            same(*(d.enumerate_support(expand) for d in both))
            assert str(both[0].enumerate_support().dtype)[8:] == str(both[1].enumerate_support().dtype)[6:]
        missing = lambda: both[0].cdf(td.tensor(1))
        with pytest.raises(NotImplementedError):
            both[0].icdf(td.tensor(0.5))
    with pytest.raises(NotImplementedError, match=f"{name} has no such function"):
        missing()


def test_a_number_is_no_choice():
    for named in (dict(probs=td.tensor(1.0)), dict(logits=td.tensor(1.0)), dict(probs=1.0)):
        with pytest.raises(ValueError, match="Categorical: expected a vector of probabilities or logits, got 1.0"):
            Categorical(**named)


def test_parameters_of_the_common_shape_are_themselves():
    a, b, c = td.tensor(0.5, requires_grad=True), td.tensor([1.0, 2], requires_grad=True), td.tensor([2.0, 3], requires_grad=True)
    D = td.distributions
    assert D.Normal(a, 1.0).loc is a and D.Normal(b, c).scale is c and D.Normal(b, 1.0).mean is b
    assert D.Uniform(b, c).low is b and D.Bernoulli(a).probs is a and D.Bernoulli(logits=b).logits is b
    wide = D.Normal(a, c)
    assert wide.scale is c and wide.loc is not a and wide.loc.shape == (2,) and not wide.loc.is_leaf


def test_a_distribution_is_printed_with_its_parameters():
    D = td.distributions
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Uniform(0.0, td.ones(2))) == "Uniform(low: treadle.Size([2]), high: treadle.Size([2]))"
    assert D.Categorical(td.ones(4)).perplexity().item() == pytest.approx(4) and D.Normal(2.0, 1.0).mode.item() == 2
    assert D.Categorical(td.tensor([0.2, 0.8])).mode.item() == 1 and D.Bernoulli(0.7).mode.dtype is td.float32
