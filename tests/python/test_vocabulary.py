# needs: vocabulary layers exchange package
"""Names that are formulas: values that PyTorch 1.13 gives, and gradients against difference quotients.

A row is an expression and, for each result, its shape, its dtype, and the sum of its elements times cos(0), cos(1), ...;
the operands are sines (see operands()), so that the table can be computed anew with `t` standing for torch.
"""
import math
import re

import numpy as np

import pytest
import treadle as td

F = td.nn.functional
SHAPES = {"m34": (3, 4), "n34": (3, 4), "m45": (4, 5), "m52": (5, 2), "m35": (3, 5), "m73": (7, 3), "m74": (7, 4),
          "b235": (2, 3, 5), "b245": (2, 4, 5), "b254": (2, 5, 4), "b534": (5, 3, 4), "v3": (3,), "v4": (4,), "v5": (5,),
          "p4": (4,)}


def operands():
    names = {"t": td, "F": F}
    for k, (name, shape) in enumerate(SHAPES.items()):
        step = 1.37 + 0.61 * k
        x = td.sin(td.arange(math.prod(shape), dtype=td.float64) * step + step).reshape(shape)
        names[name] = x * x + 0.5 if name[0] == "p" else x
    names["i4"] = td.tensor([7, 1, 0, 4])
    names["i34"] = td.tensor([[0, 3, 2, 0], [2, 2, 2, 1], [3, 1, 0, 0]])
    return names


def summary(y):
    weights = td.cos(td.arange(y.numel(), dtype=td.float64))
    return [list(y.shape), repr(y.dtype).split(".")[1], (y.detach().flatten().double() * weights).sum().item()]


def results(expression, names):
    y = eval(expression, names)
    return list(y) if isinstance(y, tuple) else [y]


GOLDEN = [
    ('t.addbmm(m34, b235, b254, beta=0.5, alpha=2)',
     [[[3, 4], 'float64', -2.1512091]]),
    ('m34.addbmm(b235, b254)',
     [[[3, 4], 'float64', -1.1094438]]),
    ('t.chain_matmul(m34, m45, m52)',
     [[[3, 2], 'float64', 0.2830101]]),
    ('F.bilinear(m73, m74, b534, v5)',
     [[[7, 5], 'float64', 2.0423232]]),
    ('t.dist(m34, v4)',
     [[[], 'float64', 3.8667893]]),
    ('t.dist(m34, v4, 1)',
     [[[], 'float64', 11.1575314]]),
    ('t.dist(m34, v4, 3)',
     [[[], 'float64', 2.8634597]]),
    ('t.cdist(m34, m74)',
     [[[3, 7], 'float64', 9.4292201]]),
    ('t.cdist(m34, m74, 1)',
     [[[3, 7], 'float64', 18.0697361]]),
    ('t.cdist(b235, b245, p=3.0)',
     [[[2, 3, 4], 'float64', 0.5979342]]),
    ('t.pdist(m34)',
     [[[3], 'float64', 1.5780587]]),
    ('t.pdist(m34, 3.0)',
     [[[3], 'float64', 1.3259536]]),
    ('F.pairwise_distance(m34, n34)',
     [[[3], 'float64', 3.0386205]]),
    ('t.cov(m34)',
     [[[3, 3], 'float64', 0.4114635]]),
    ('t.cov(v4, correction=0)',
     [[[], 'float64', 0.527394]]),
    ('t.cov(m34, fweights=i4, aweights=p4)',
     [[[3, 3], 'float64', 0.3694157]]),
    ('t.corrcoef(m34)',
     [[[3, 3], 'float64', 0.5832089]]),
    ('t.cross(m34, n34)',
     [[[3, 4], 'float64', -1.7667064]]),
    ('t.cross(m73, m73 * m73, dim=1)',
     [[[7, 3], 'float64', 0.4043688]]),
    ('t.slice_scatter(m34, n34[:, :2], 1, 0, None, 2)',
     [[[3, 4], 'float64', -0.0395915]]),
    ('t.select_scatter(m34, v4, 0, -1)',
     [[[3, 4], 'float64', 1.3807157]]),
    ('t.diagonal_scatter(m34, v3, 1)',
     [[[3, 4], 'float64', 0.0082764]]),
    ('t.diagflat(v3, -1)',
     [[[4, 4], 'float64', -0.3455288]]),
    ('m34.put(i4, v4)',
     [[[3, 4], 'float64', 0.773458]]),
    ('t.put(m34, i4, v4, accumulate=True)',
     [[[3, 4], 'float64', 0.8601644]]),
    ('t.fill(m34, 2.5)',
     [[[3, 4], 'float64', -1.0325551]]),
    ('t.msort(m34)',
     [[[3, 4], 'float64', -0.9811391]]),
    ('t.narrow_copy(m34, 1, 1, 2)',
     [[[3, 2], 'float64', -0.7033052]]),
    ('t.channel_shuffle(b235.reshape(1, 6, 5, 1), 3)',
     [[[1, 6, 5, 1], 'float64', -3.8793566]]),
    ('t.combinations(v4, 3)',
     [[[4, 3], 'float64', 1.2369505]]),
    ('t.combinations(v3, 2, True)',
     [[[6, 2], 'float64', 1.3445079]]),
    ('t.vander(v4)',
     [[[4, 4], 'float64', -2.0988838]]),
    ('t.vander(i4, 3, True)',
     [[[4, 3], 'int64', -20.2054877]]),
    ('t.hsplit(v4, 2)[1]',
     [[[2], 'float64', 0.6972835]]),
    ('t.hsplit(m34, [1, 3])[1]',
     [[[3, 2], 'float64', -0.7033052]]),
    ('t.vsplit(m34, 3)[2]',
     [[[1, 4], 'float64', 0.6691702]]),
    ('t.dsplit(b254, 2)[1]',
     [[[2, 5, 2], 'float64', 1.5514849]]),
    ('t.block_diag(m34, v3, p4[0])',
     [[[5, 8], 'float64', 0.6182703]]),
    ('t.float_power(m34, 2)',
     [[[3, 4], 'float64', 0.0339959]]),
    ('t.rsub(m34, n34, alpha=2)',
     [[[3, 4], 'float64', -0.0878669]]),
    ('t.polygamma(0, p4)',
     [[[4], 'float64', -1.2582135]]),
    ('t.polygamma(2, p4)',
     [[[4], 'float64', -5.4458871]]),
    ('t.mvlgamma(p4 + 1, 3)',
     [[[4], 'float64', 0.146239]]),
    ('t.trapezoid(m34)',
     [[[3], 'float64', -0.449258]]),
    ('t.trapezoid(m34, v3, dim=0)',
     [[[4], 'float64', -3.5400419]]),
    ('t.trapezoid(b235, b235 * b235, dim=1)',
     [[[2, 5], 'float64', 0.0002858]]),
    ('t.cumulative_trapezoid(m34, v4)',
     [[[3, 3], 'float64', -0.1397752]]),
    ('F.softmin(m34, dim=0)',
     [[[3, 4], 'float64', -0.0780765]]),
    ('t.isin(i4, t.tensor([1, 7]))',
     [[[4], 'bool', 1.5403023]]),
    ('t.isin(i4, t.tensor([1, 7]), invert=True)',
     [[[4], 'bool', -1.4061393]]),
    ('t.nanmedian(t.sqrt(m34))',
     [[[], 'float64', 0.7717257]]),
    ('t.nanmedian(t.sqrt(m34), 1)',
     [[[3], 'float64', 0.6999723], [[3], 'int64', 0.1677063]]),
    ('t.deg2rad(m34)',
     [[[3, 4], 'float64', -0.0007875]]),
    ('t.rad2deg(m34)',
     [[[3, 4], 'float64', -2.5851251]]),
    ('t.sinc(m34)',
     [[[3, 4], 'float64', -0.0862998]]),
    ('t.signbit(m34)',
     [[[3, 4], 'bool', 0.1668589]]),
    ('t.lgamma(m34)',
     [[[3, 4], 'float64', 4.6584757]]),
    ('t.digamma(m34)',
     [[[3, 4], 'float64', -1181.4719917]]),
    ('t.erfinv(m34 / 2)',
     [[[3, 4], 'float64', -0.0170387]]),
    ('t.copysign(m34, n34)',
     [[[3, 4], 'float64', -1.4042109]]),
    ('t.copysign(i4, -0.0)',
     [[[4], 'float32', -3.5803323]]),
    ('t.ldexp(m34, i4)',
     [[[3, 4], 'float64', 83.1473639]]),
    ('t.logaddexp2(m34, n34)',
     [[[3, 4], 'float64', -0.5769284]]),
    ('t.gcd(i4 * 6, i4 + 2)',
     [[[4], 'int64', -2.1513417]]),
    ('t.lcm(i4 * 6, i4 - 9)',
     [[[4], 'int64', -63.8318443]]),
    ('t.nextafter(m34, n34)',
     [[[3, 4], 'float64', -0.0451189]]),
    ('m34.clone().cumsum_(1)',
     [[[3, 4], 'float64', 1.5770585]]),
    ('m34.clone().addmm_(m35, m45.t()[:5], beta=2)',
     [[[3, 4], 'float64', -0.8399514]]),
    ('m34.clone().clamp_min_(0.1).clamp_max_(0.5)',
     [[[3, 4], 'float64', -0.3322098]]),
    ('(m34 / 3).abs().logit_()',
     [[[3, 4], 'float64', -0.4017469]]),
    ('m34.clone().fill_diagonal_(3)',
     [[[3, 4], 'float64', 0.5435905]]),
    ('m73.clone().fill_diagonal_(3, wrap=True)',
     [[[7, 3], 'float64', 1.9696714]]),
    ('(m34 * 2).t_().exp()',
     [[[4, 3], 'float64', 3.6814025]]),
    ('(m34 * 2).unsqueeze_(1).squeeze_()',
     [[[3, 4], 'float64', -0.0902379]]),
    ('(b235 * 2).swapaxes_(0, 2).exp()',
     [[[5, 3, 2], 'float64', 11.9173899]]),
    ('m34.scatter_reduce(0, i34 % 3, n34, "sum")',
     [[[3, 4], 'float64', -0.2327874]]),
    ('m34.scatter_reduce(0, i34 % 3, n34, "mean")',
     [[[3, 4], 'float64', -0.4908228]]),
    ('m34.scatter_reduce(0, i34 % 3, n34, "mean", include_self=False)',
     [[[3, 4], 'float64', -0.4587498]]),
    ('m34.scatter_reduce(1, i34, n34, "amax")',
     [[[3, 4], 'float64', 0.7868032]]),
    ('m34.scatter_reduce(1, i34, n34, "amin", include_self=False)',
     [[[3, 4], 'float64', -0.8610385]]),
    ('m34.detach().scatter_reduce(1, i34, n34.detach(), "prod")',
     [[[3, 4], 'float64', -1.8863476]]),
    ('m34.detach().index_reduce(1, i4 % 3, n34.detach(), "mean")',
     [[[3, 4], 'float64', -0.3058499]]),
]
ROUGH = ("nanmedian", "msort", "zeta")      # NaN, ties, or no derivative by an operand


@pytest.mark.parametrize("expression, expected", GOLDEN, ids=[row[0] for row in GOLDEN])
def test_values_and_gradients(expression, expected):
    names = operands()
    got = [summary(y) for y in results(expression, names)]
    for (shape, dtype, value), (ours, kind, number) in zip(expected, got):
        assert (ours, kind) == (shape, dtype)
        assert number == pytest.approx(value, rel=1e-6, abs=2e-7)
    assert len(got) == len(expected)
    used = [n for n in SHAPES if re.search(rf"\b{n}\b", expression)]
    inputs = [names[n].detach().requires_grad_() for n in used]

    def function(*xs):
        return results(expression, {**names, **dict(zip(used, xs))})[0]
    if used and not expression.startswith(ROUGH, 2) and function(*inputs).requires_grad:
        assert td.autograd.gradcheck(function, inputs)
        assert td.autograd.gradgradcheck(function, inputs)


def test_functions_of_analysis_at_their_edges():
    inf, nan = math.inf, math.nan
    x = td.tensor([0.0, -0.0, -1, -2.5, inf, -inf, nan, 1e-300, 1e8, -1e6 + 0.25], dtype=td.float64)
    assert td.digamma(x).tolist() == pytest.approx(
        [-inf, inf, nan, 1.1031566406452432, inf, nan, nan, -1e300, 18.420680738952367, 10.673918154374481], rel=1e-12, nan_ok=True)
    assert td.lgamma(x[:4]).tolist() == pytest.approx([inf, inf, inf, -0.056243716497674054], rel=1e-12)
    x = td.tensor([0.0, -0.0, 1, -1, 1.5, nan, 1e-12, 1 - 2 ** -53, 0.5], dtype=td.float64)
    y = td.erfinv(x).tolist()
    assert y == pytest.approx([0, 0, inf, -inf, nan, nan, 8.862269254527581e-13, 5.863584748755168, 0.4769362762044699],
                              rel=1e-14, nan_ok=True)
    assert math.copysign(1, y[1]) == -1
    z = td.zeta(td.tensor([2.0, 2, 3, 1, 0.5, 2, 2.5], dtype=td.float64), td.tensor([1.0, 0.25, -1.5, 1, 1, -1, -0.5], dtype=td.float64))
    assert z.tolist() == pytest.approx([math.pi ** 2 / 6, 17.197329154507, 0.118102025820864, inf, nan, inf, nan], rel=1e-9, nan_ok=True)
    assert td.zeta(2.0, td.tensor(-1e9 + 0.5, dtype=td.float64)).item() == pytest.approx(math.pi ** 2)
    assert td.gcd(td.tensor([-2 ** 63, 0, 12]), td.tensor([-1, 0, -18])).tolist() == [1, 0, 6]
    assert td.lcm(td.tensor([0, 4]), td.tensor([0, -6])).tolist() == [0, 12]
    zero = td.zeros(2, dtype=td.float64, requires_grad=True)
    assert td.autograd.grad(td.sinc(zero).sum(), zero)[0].tolist() == [0, 0]
    assert td.signbit(td.tensor([-0.0, 0.0, -math.inf, 3])).tolist() == [True, False, True, False]


def test_a_shape_in_place_goes_on_in_the_graph():
    w = td.tensor([[1.0, 2, 3], [4, 5, 6]], requires_grad=True)
    x = w * 2
    same = x
    x.t_().unsqueeze_(0)
    assert same is x and x.shape == (1, 3, 2)
    x.mul_(x)
    x.sum().backward()
    assert w.grad.tolist() == (8 * w).tolist()
    view = (v := w * 2)[0]
    view.unsqueeze_(0).mul_(3)
    assert v[0].tolist() == [6, 12, 18] and td.autograd.grad(v.sum(), w)[0].tolist() == [[6, 6, 6], [2, 2, 2]]
    plain = td.zeros(2, 1, 3)
    assert plain.squeeze_(0).shape == (2, 1, 3) and plain.squeeze_().shape == (2, 3) and plain.swapaxes_(0, 1).shape == (3, 2)


def test_shapes_in_place_that_are_refused():
    w = td.ones(2, 3, requires_grad=True)
    for call in (w.t_, lambda: w.unsqueeze_(0)):
        with pytest.raises(RuntimeError, match="leaf that requires a gradient"):
            call()
    x = w * 2
    y = x * x
    x.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified in place"):
        y.sum().backward()
    with td.no_grad(), pytest.raises(RuntimeError, match="has a history"):
        x.squeeze_()
    with pytest.raises(RuntimeError, match="view cannot be detached"):
        (w * 2)[0].detach_()
    with pytest.raises(IndexError, match="unsqueeze_"):
        td.ones(2).unsqueeze_(5)


def test_detach_in_place(no_leaks):
    w = td.ones(2, requires_grad=True)
    x = w * 2
    assert x.detach_() is x and not x.requires_grad and x.is_leaf and x.grad_fn is None
    assert not w.detach_().requires_grad


def test_reducing_shares_a_gradient_among_equals():
    x = td.tensor([1.0, 9, 5], requires_grad=True)
    s = td.tensor([5.0, 2, 5, 9, 5], requires_grad=True)
    index = td.tensor([0, 0, 0, 1, 2])
    for keep, of_x, of_s in ((True, [0, .5, .5], [.5, 0, .5, .5, .5]), (False, [0, 0, 0], [.5, 0, .5, 1, 1])):
        y = x.scatter_reduce(0, index, s, "amax", include_self=keep)
        assert y.tolist() == [5, 9, 5]
        assert [g.tolist() for g in td.autograd.grad(y.sum(), (x, s))] == [of_x, of_s]
    nan = td.tensor([math.nan, 1, 2, 3, 4])
    for how in ("amin", "amax", "mean", "sum", "prod"):
        y = td.zeros(3).scatter_reduce(0, index, nan, how).tolist()
        assert math.isnan(y[0]) and not math.isnan(y[1] + y[2])
    whole = td.tensor([7, 7]).scatter_reduce(0, td.tensor([0, 0, 1]), td.tensor([1, 2, 4]), "mean", include_self=False)
    assert whole.tolist() == [1, 4] and whole.dtype == td.int64
    with pytest.raises(RuntimeError, match=r"reduce must be one of \['sum', 'prod', 'mean', 'amax', 'amin'\], got 'max'"):
        x.scatter_reduce(0, index, s, "max")
    y = td.zeros(2, 3).index_reduce_(1, td.tensor([0, 0]), td.tensor([[1.0, 5], [7, 2]]), "amax")
    assert y.tolist() == [[5, 0, 0], [7, 0, 0]]


@pytest.mark.parametrize("call, message", [
    (lambda x: x.vsplit(2), "vsplit: cannot cut shape"), (lambda x: x.dsplit(1), "dsplit: cannot cut"),
    (lambda x: td.hsplit(td.tensor(1.0), 1), "hsplit: cannot cut"), (lambda x: td.cross(x[:, :2], x[:, :2], 1), "cross: expected"),
    (lambda x: x.float().fill_diagonal_(1)[0].fill_diagonal_(1), "fill_diagonal_: expected equal"),
    (lambda x: x.logit_(), "logit_: the result is"), (lambda x: x.sinc_(), "sinc_: the result is"),
    (lambda x: td.gcd(x, 1.5), "gcd: not defined for float")])
def test_what_is_refused_says_so(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(td.ones(3, 3, dtype=td.int64) if "vsplit" not in message else td.ones(3, 4, dtype=td.int64))


def test_the_rest_of_the_corners():
    x, y = td.randn(2, 30, 5, dtype=td.float64), td.randn(40, 5, dtype=td.float64)
    exact = td.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    for mode in None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist":
        assert td.allclose(td.cdist(x, y, compute_mode=mode), exact)
    same = y.clone().requires_grad_()
    td.cdist(same, same).sum().backward()
    assert td.isfinite(same.grad).all()
    far = td.arange(60.0).reshape(30, 2)
    far[0, 0], far[1] = float("nan"), 1e20
    assert td.isnan(td.cdist(far, far)[0]).all() and not (td.cdist(far, far)[1, 2:] == 0).any()
    half = (td.randn(30, 3) + 200).half()
    assert td.allclose(td.cdist(half, half).float(), td.cdist(half.float(), half.float(), compute_mode="donot_use_mm_for_euclid_dist"), atol=2e-2)
    with pytest.raises(ValueError, match="compute_mode must be one of"):
        td.cdist(x, y, compute_mode="fast")
    assert td.cdist(td.ones(0, 3), td.ones(2, 3)).shape == (0, 2) and td.cdist(td.ones(1, 0), td.ones(2, 0), math.inf).tolist() == [[0, 0]] and td.pdist(td.ones(1, 3)).shape == (0,)
    assert td.isin(td.tensor([math.nan, 1]), td.tensor([math.nan])).tolist() == [False, False]
    assert td.isin(3, td.tensor([])).item() is False and td.isin(td.tensor([True]), True).item() is True
    values, places = td.tensor([[math.nan, 3, 1], [math.nan] * 3]).nanmedian(1, keepdim=True)
    assert values.shape == (2, 1) and values[0].item() == 1 and places[0].item() == 2 and math.isnan(values[1])
    assert [i.tolist() for i in td.unravel_index(td.tensor([5, 11]), (2, 3, 2))] == [[0, 1], [2, 2], [1, 1]]
    assert td.vander(td.tensor([2, 3]), 0).shape == (2, 0) and td.combinations(td.ones(2), 3).shape == (0, 3)
    for weights in {"fweights": td.tensor([1, -1, 2])}, {"aweights": td.tensor([1., -.5, 2])}:
        with pytest.raises(RuntimeError, match="cov: a weight is negative"):
            td.cov(td.tensor([[1., 2, 3], [4, 5, 7]]), **weights)
    assert td.cov(td.tensor([[1., 2, 3]])).item() == 1 and td.cov(td.tensor([[1., 2, 3]])).shape == ()
    assert td.cov(td.ones(2, 1)).isnan().all() and td.block_diag(td.ones(1, 2), td.ones(0, 1)).shape == (1, 3)
    assert td.diff(td.tensor([1, 4, 9]), prepend=td.tensor([0])).tolist() == [1, 3, 5] and td.ones(3).diff(9).shape == (0,)
    td.manual_seed(3)
    logits = td.zeros(500, 4, requires_grad=True)
    choice = F.gumbel_softmax(logits + td.tensor([0.0, 0, 0, math.log(7)]), hard=True)
    assert choice.sum(1).tolist() == pytest.approx([1] * 500) and choice.mean(0)[3].item() == pytest.approx(0.7, abs=0.07)
    (choice * td.arange(4.0)).sum().backward()
    assert logits.grad.abs().sum() > 0
    assert "= (input - other).norm(p)" in td.dist.__doc__


def test_a_bound_that_is_nan_shows():
    nan, x = float("nan"), td.tensor([1.0, 2.0])
    for bounds in ({"min": td.tensor([nan, 0.0])},
                   {"max": td.tensor([nan, 3.0])},
                   {"min": td.tensor([nan, 0.0]), "max": 5}):
        y = x.clamp(**bounds).tolist()
        assert y[0] != y[0] and y[1] == 2
    y = td.tensor([nan, 4.0]).clamp(td.tensor(0.0), td.tensor(3.0)).tolist()
    assert y[0] != y[0] and y[1] == 3


def test_logit_of_bytes_does_not_wrap_around():
    y = td.logit(td.tensor([1, 2], dtype=td.uint8)).tolist()
    assert y[0] == float("inf") and y[1] != y[1]


@pytest.mark.parametrize("way", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(way):
    a = np.random.RandomState(3).randn(4, 7, 3)
    q = np.array([0, 0.1, 0.25, 0.5, 0.83, 1])
    x, levels = td.tensor(a, requires_grad=True), td.tensor(q)
    for dim in (None, 0, 1, -1):
        for keep in (False, True):
            want = np.quantile(a, q, axis=dim, keepdims=keep, method=way)
            np.testing.assert_allclose(td.quantile(x, levels, dim, keep, interpolation=way).detach().numpy(), want, 1e-12)
            one = x.quantile(0.25, dim, keep, interpolation=way)
            np.testing.assert_allclose(one.detach().numpy(), want[2], 1e-12)
    assert td.autograd.gradcheck(lambda x: x.quantile(levels[1:5], 1, interpolation=way), (x,))
    a[1, 2, 0] = math.nan
    np.testing.assert_allclose(td.tensor(a).nanquantile(levels, 1, interpolation=way).numpy(),
                               np.nanquantile(a, q, axis=1, method=way), 1e-12)
    assert td.tensor(a).quantile(0.5).isnan() and td.tensor(a).quantile(0.5, 1).isnan().sum() == 1
    assert td.tensor(2.0).quantile(0.3).item() == 2


def test_what_is_no_quantile():
    x = td.ones(3)
    for call, words in ((lambda: x.quantile(1.5), "quantile: argument 'q'"), (lambda: x.quantile(td.ones(1, 1)), "argument 'q'"),
                        (lambda: td.ones(3, dtype=td.int64).quantile(0.5), "argument 'input'.*int64"),
                        (lambda: td.ones(0).nanquantile(0.5), "nanquantile: argument 'input'"),
                        (lambda: x.quantile(0.5, interpolation="cubic"), "argument 'interpolation'.*cubic")):
        with pytest.raises(RuntimeError, match=words):
            call()
