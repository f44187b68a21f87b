# needs: losses layers
"""Losses against PyTorch's numbers: values, gradients, edges, modules."""
import inspect
import math
import warnings

import numpy as np
import pytest
import treadle as td
from treadle import nn
import treadle.nn.functional as F

X = [[.3, -1.2, 2.1], [-.4, .8, .05]]
T = [[.1, .9, .5], [.7, .2, .6]]
P = [[.3, .8, .45], [.05, .99, .6]]
# value and the first three elements of the input's gradient
GOLDEN = [
    ("mse_loss(X, T)",
     1.48041666667, [0.0666666667, -0.7, 0.533333333]),
    ("l1_loss(X, T)",
     1.025, [0.166666667, -0.166666667, 0.166666667]),
    ("smooth_l1_loss(X, T, beta=.7)",
     0.708630952381, [0.0476190476, -0.166666667, 0.166666667]),
    ("smooth_l1_loss(X, T, beta=0.0)",
     1.025, [0.166666667, -0.166666667, 0.166666667]),
    ("huber_loss(X, T, delta=.52)",
     0.406333333333, [0.0333333333, -0.0866666667, 0.0866666667]),
    ("binary_cross_entropy(P, T)",
     1.32881808811, [0.158730159, -0.104166667, -0.0336700337]),
    ("binary_cross_entropy(P, T, W)",
     1.34453164821, [0.0793650794, -0.104166667, -0.0673400673]),
    ("binary_cross_entropy_with_logits(X, T)",
     0.970955466891, [0.0790737528, -0.111420797, 0.0651505298]),
    ("binary_cross_entropy_with_logits(X, T, weight=W, pos_weight=W * 2)",
     1.83586906338, [0.0395368764, -0.226699515, 0.075752649]),
    ("kl_div(X, P)",
     -0.373711161013, [-0.05, -0.133333333, -0.075]),
    ("kl_div(X, P, reduction='batchmean')",
     -1.12113348304, [-0.15, -0.4, -0.225]),
    ("kl_div(X, T, log_target=True)",
     0.798438330038, [-0.184195153, -0.409933852, -0.274786878]),
    ("nll_loss(X, Y)",
     -0.85, [0.0, 0.0, -0.5]),
    ("nll_loss(X, Y, W)",
     -1.6, [0.0, 0.0, -0.8]),
    ("nll_loss(X, Y, W, ignore_index=2)",
     0.4, [0.0, 0.0, 0.0]),
    ("cross_entropy(X, Y, W, label_smoothing=.1)",
     0.571050250309, [0.0987492702, 0.0101881415, -0.108937412]),
    ("hinge_embedding_loss(X, S, 1.5)",
     1.29166666667, [0.166666667, -0.166666667, 0.166666667]),
    ("margin_ranking_loss(X, T, S, .5)",
     0.408333333333, [-0.166666667, 0.0, -0.0]),
    ("soft_margin_loss(X, S)",
     0.547622133558, [-0.0709262472, 0.0385792028, -0.0181828035]),
    ("cosine_embedding_loss(X, T, s, .2)",
     0.5, [-0.0198328393, -0.178495554, -0.0991641965]),
    ("triplet_margin_loss(X, T, P)",
     1.34383055983, [0.0377694764, -0.0108928883, -0.0160356552]),
    ("triplet_margin_loss(X, P, T, swap=True)",
     2.03810391797, [1.9284333e-07, -0.385686467, 0.318191687]),
    ("gaussian_nll_loss(X, T, P, full=True)",
     3.47396294716, [0.111111111, -0.4375, 0.592592593]),
    ("poisson_nll_loss(X, T * 4, full=True)",
     3.3202348781, [0.158309801, -0.549800965, 1.02769499]),
    ("poisson_nll_loss(P, T, log_input=False)",
     1.05266636332, [0.111111113, -0.020833331, -0.0185185144]),
    ("multi_margin_loss(X, Y)",
     0.608333333333, [0.0, 0.0, 0.0]),
    ("multi_margin_loss(X, Y, p=2, margin=.5, weight=W)",
     0.316041666667, [0.0, 0.0, 0.0]),
]


def wide(values):
    return td.tensor(values, dtype=td.float64)


def named():
    return {"X": wide(X).requires_grad_(), "T": wide(T),
            "P": wide(P).requires_grad_(), "W": wide([.5, 1.0, 2.0]),
            "Y": td.tensor([2, 0]), "s": td.tensor([1, -1]),
            "S": td.tensor([[1, -1, 1], [-1, -1, 1]])}


@pytest.mark.parametrize("text, value, slope", GOLDEN)
def test_values_and_gradients_of_pytorch(text, value, slope):
    names = named()
    loss = eval(text, {**vars(F), **names})
    assert abs(loss.item() - value) < 1e-10 * max(1, abs(value))
    loss.backward()
    x = names["P" if text.split("(")[1][0] == "P" else "X"]
    np.testing.assert_allclose(x.grad.reshape(-1)[:3].tolist(), slope,
                               rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("text", [g[0] for g in GOLDEN
                                  if "batchmean" not in g[0]])
def test_the_mean_is_the_mean_of_none(text):
    def call(reduction):
        return eval(text[:-1] + f", reduction='{reduction}')",
                    {**vars(F), **named()})
    none = call("none")
    np.testing.assert_allclose(none.sum().item(), call("sum").item(),
                               rtol=1e-12)
    if "nll_loss(X" not in text and "cross_entropy(X, Y" not in text:
        np.testing.assert_allclose(none.mean().item(), call("mean").item(),
                                   rtol=1e-12)
    with pytest.raises(Exception, match="(?i)reduction"):
        call("sideways")


@pytest.mark.parametrize("name", [
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "soft_margin_loss", "hinge_embedding_loss"])
def test_nothing_and_one_number(name):
    loss = getattr(F, name)
    empty = td.zeros(0, 3)
    assert math.isnan(loss(empty, empty).item())
    assert loss(empty, empty, reduction="sum").item() == 0
    assert loss(empty, empty, reduction="none").shape == (0, 3)
    one = loss(td.tensor(.5), td.tensor(1.0))
    assert one.shape == () and math.isfinite(one.item())
    a, b = td.rand(4, 3), td.rand(4, 3)
    assert abs(loss(a.T, b.T).item() - loss(a, b).item()) < 1e-6
    bad = a.clone()
    bad[0, 0] = float("nan")
    if name == "binary_cross_entropy":
        with pytest.raises(RuntimeError, match="probabilities"):
            loss(bad, b)
    else:
        assert math.isnan(loss(bad, b).item())
    with pytest.raises((TypeError, RuntimeError, NotImplementedError)):
        loss(td.ones(3, dtype=td.int64), td.ones(3, dtype=td.int64))


def test_bits_at_the_ends():
    p = wide([0, 1, 0, 1]).requires_grad_()
    t = wide([0, 1, 1, 0])
    loss = F.binary_cross_entropy(p, t, reduction="none")
    assert loss.tolist() == [0, 0, 100, 100]
    loss.sum().backward()
    assert p.grad.tolist() == [0, 0, -1e12, 1e12]
    x = wide([1000, -1000, 1000, -1000]).requires_grad_()
    loss = F.binary_cross_entropy_with_logits(x, wide([1, 0, 0, 1]),
                                              reduction="none")
    assert loss.tolist() == [0, 0, 1000, 1000]
    loss.sum().backward()
    assert x.grad.tolist() == [0, 0, 1, -1]
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(x, t)
    with pytest.raises(ValueError, match="differ in shape"):
        F.binary_cross_entropy(p, t[:2])
    with pytest.raises(ValueError, match="differ in shape"):
        F.binary_cross_entropy_with_logits(p, t.reshape(2, 2))


def test_a_target_that_is_broadcast_is_warned_of():
    with pytest.warns(UserWarning, match=r"\(4,\).*\(3, 1\)"):
        assert F.mse_loss(td.ones(3, 1), td.zeros(4)).item() == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.l1_loss(td.ones(3), td.zeros(3))
        F.kl_div(td.ones(3, 2), td.ones(2))


def test_bends():
    a, b = td.ones(2), td.zeros(2)
    with pytest.raises(RuntimeError, match="huber_loss.*-1"):
        F.huber_loss(a, b, delta=-1.0)
    with pytest.raises(RuntimeError, match="huber_loss"):
        F.huber_loss(a, b, delta=0.0)
    with pytest.raises(RuntimeError, match="smooth_l1_loss"):
        F.smooth_l1_loss(a, b, beta=-1.0)
    x = wide([1, 1, 2]).requires_grad_()
    F.smooth_l1_loss(x, wide([1, 0, 3]), reduction="sum",
                     beta=0.0).backward()
    assert x.grad.tolist() == [0, 1, -1]


def test_labels_of_pictures_and_of_one_example():
    td.manual_seed(2)
    x = td.randn(2, 5, 3, 4, dtype=td.float64)
    y = td.randint(0, 5, (2, 3, 4))
    y[0, 0, 0] = -100
    logp = F.log_softmax(x, 1)
    for how in ("mean", "sum", "none"):
        np.testing.assert_allclose(
            np.array(F.nll_loss(logp, y, reduction=how).tolist()),
            np.array(F.cross_entropy(x, y, reduction=how).tolist()),
            rtol=1e-12)
    assert F.nll_loss(logp[0, :, 0, 1], td.tensor(3)).shape == ()
    gone = td.full((2, 3, 4), -100)
    assert math.isnan(F.nll_loss(logp, gone).item())
    assert F.nll_loss(logp, gone, reduction="sum").item() == 0
    none = td.zeros(0, 4, requires_grad=True)
    F.nll_loss(none, td.zeros(0, dtype=td.int64)).backward()
    assert none.grad.shape == (0, 4)
    with pytest.raises(IndexError, match="target 5 at position 0"):
        F.nll_loss(logp[:, :, 0, 0], td.tensor([5, 0]))
    with pytest.raises(RuntimeError):
        F.nll_loss(logp, y[:, :2])
    with pytest.raises(RuntimeError, match="weight"):
        F.nll_loss(logp, y, weight=td.ones(4, dtype=td.float64))
    with pytest.raises(RuntimeError, match="labels"):
        F.nll_loss(logp, logp)


def test_an_ignored_label_hides_an_infinity():
    x = wide([[-math.inf, 0.0], [-.5, -1.0]]).requires_grad_()
    loss = F.nll_loss(x, td.tensor([-100, 0]))
    assert loss.item() == .5
    loss.backward()
    assert x.grad.tolist() == [[0, 0], [-1, 0]]


MODULES = [
    (nn.MSELoss(), "mse_loss(X, T)"), (nn.L1Loss(), "l1_loss(X, T)"),
    (nn.SmoothL1Loss(beta=.7), "smooth_l1_loss(X, T, beta=.7)"),
    (nn.HuberLoss("sum", .6), "huber_loss(X, T, 'sum', .6)"),
    (nn.BCELoss(), "binary_cross_entropy(P, T)"),
    (nn.BCEWithLogitsLoss(pos_weight=wide([1, 2, 4])),
     "binary_cross_entropy_with_logits(X, T, pos_weight=W * 2)"),
    (nn.NLLLoss(wide([.5, 1, 2]), ignore_index=2),
     "nll_loss(X, Y, W, ignore_index=2)"),
    (nn.KLDivLoss(reduction="batchmean"),
     "kl_div(X, T, reduction='batchmean')"),
    (nn.CrossEntropyLoss(label_smoothing=.1),
     "cross_entropy(X, Y, label_smoothing=.1)"),
    (nn.HingeEmbeddingLoss(1.5), "hinge_embedding_loss(X, S, 1.5)"),
    (nn.MarginRankingLoss(.5), "margin_ranking_loss(X, T, S, .5)"),
    (nn.SoftMarginLoss(), "soft_margin_loss(X, S)"),
    (nn.CosineEmbeddingLoss(.2), "cosine_embedding_loss(X, T, s, .2)"),
    (nn.TripletMarginLoss(swap=True),
     "triplet_margin_loss(X, T, P, swap=True)"),
    (nn.GaussianNLLLoss(full=True), "gaussian_nll_loss(X, T, P, True)"),
    (nn.PoissonNLLLoss(), "poisson_nll_loss(X, T)"),
    (nn.MultiMarginLoss(), "multi_margin_loss(X, Y)")]


@pytest.mark.parametrize("module, text", MODULES)
def test_modules_call_their_functions(module, text):
    names = named()
    operands = text[text.index("(") + 1:].replace(")", "").split(", ")
    given = [names[k] for k in operands if k in ("X", "T", "P", "Y", "S",
                                                 "s")]
    expected = eval(text, {**vars(F), **names})
    assert module(*given).item() == expected.item()
    assert repr(module) == type(module).__name__ + "()"


def test_weights_are_buffers_and_old_words_are_understood():
    loss = nn.BCEWithLogitsLoss(td.ones(3), pos_weight=td.ones(3))
    assert list(loss.state_dict()) == ["weight", "pos_weight"]
    assert loss.double().pos_weight.dtype is td.float64
    assert list(nn.NLLLoss().state_dict()) == []
    assert nn.L1Loss(size_average=False).reduction == "sum"
    assert nn.L1Loss(reduce=False).reduction == "none"
    assert F.l1_loss(td.ones(3), td.zeros(3), None, None, "sum").item() == 3
    assert F.l1_loss(td.ones(3), td.zeros(3), False).item() == 3
    assert list(inspect.signature(F.nll_loss).parameters) == [
        "input", "target", "weight", "size_average", "ignore_index",
        "reduce", "reduction"]
    assert "target" in F.nll_loss.__doc__
    with pytest.raises(TypeError, match="argument 'beta'"):
        nn.L1Loss(beta=3)
    with pytest.raises(TypeError, match="too many positional"):
        nn.GaussianNLLLoss(True)


@pytest.mark.parametrize("text", [g[0] for g in GOLDEN])
def test_second_derivatives(text):
    names = named()
    first = "P" if text.split("(")[1][0] == "P" else "X"

    def f(x):
        return eval(text, {**vars(F), **names, first: x})
    assert td.autograd.gradgradcheck(f, (names[first],))


def test_compiled_losses_are_the_same():
    def f(x, t, p, y):
        return (F.huber_loss(x, t), F.nll_loss(x, y), F.kl_div(x, t),
                F.binary_cross_entropy(p, t),
                F.binary_cross_entropy_with_logits(x, t))
    names = named()
    args = [names[k].detach() for k in "XTPY"]
    compiled = td.jit(f)
    compiled(*args)
    for a, b in zip(f(*args), compiled(*args)):
        assert abs(a.item() - b.item()) < 1e-12


def exact(x, dim, log):
    """Softmax or its logarithm in double precision, of NumPy."""
    x = np.asarray(x.tolist(), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        d = x - x.max(dim, keepdims=True)
        s = np.exp(d).sum(dim, keepdims=True)
        return d - np.log(s) if log else np.exp(d) / s


@pytest.mark.parametrize("shape, dim", [((7, 16), 0), ((131, 81), 0), ((3, 5, 17), 1), ((2, 300, 2, 67), 1),
                                        ((1, 40), 0), ((5, 1, 33), 1), ((70, 15), 0)])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_of_columns_side_by_side(shape, dim, log):
    td.manual_seed(4)
    op, before = td.log_softmax if log else td.softmax, td.get_num_threads()
    x = td.randn(*shape) * 10
    x.flatten()[0], x.flatten()[-1] = -math.inf, 200
    for one in (x, x.double()):
        td.set_num_threads(1)
        y = op(one, dim)
        limit = 1e-12 if one.dtype == td.float64 else 3e-6
        np.testing.assert_allclose(y.numpy(), exact(x, dim, log), rtol=limit, atol=limit / 30)
        for threads in (2, 3):
            td.set_num_threads(threads)
            assert op(one, dim).numpy().tobytes() == y.numpy().tobytes()
        td.set_num_threads(before)
    turned = x.transpose(0, -1).contiguous().transpose(0, -1)
    assert op(turned, dim).numpy().tobytes() == op(x, dim).numpy().tobytes()


def test_softmax_of_columns_that_have_no_numbers():
    x = td.randn(6, 20)
    x[:, 3], x[2, 5], x[4, 7] = -math.inf, math.nan, math.inf
    for op in (td.softmax, td.log_softmax):
        y = op(x, 0)
        bad = y.isnan().any(0)
        assert [j for j in range(20) if bad[j]] == [3, 5, 7]


@pytest.mark.parametrize("shape, dim", [((9, 70), -1), ((4, 3, 5000), 2), ((6, 20), 0), ((), 0), ((), -1), ((3, 0), 1)])
def test_gradient_of_log_softmax_by_rows_is_the_composed_one(shape, dim):
    td.manual_seed(5)
    x = td.randn(shape, requires_grad=True)
    g = td.randn(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    ways = [td.autograd.grad(td.log_softmax(x, dim), (x,), (g,), create_graph=again)[0] for again in (False, True)]
    np.testing.assert_allclose(*(w.detach().numpy() for w in ways), rtol=1e-5, atol=1e-6)
    wide = td.autograd.grad(td.log_softmax(x, dim, dtype=td.float64), (x,), (g.double(),))[0]
    assert wide.dtype == td.float32
    np.testing.assert_allclose(wide.numpy(), ways[1].detach().numpy(), rtol=1e-5, atol=1e-6)


def test_the_operator_of_rows_refuses_what_is_not():
    g = td.ones(3, 4)
    for y, dim in ((g.T, 1), (td.ones(4, 3), 0), (td.ones(3, 4), 0), (td.ones(2, 4), 1), (g.double(), 1)):
        with pytest.raises(RuntimeError, match="result"):
            td.log_softmax_backward(g, y, dim)
    assert td.log_softmax_backward(g, td.ones(4, 3).T, 1).shape == (3, 4)
    assert (td.log_softmax_backward(g, g, 1) == td.log_softmax_backward(g, g.clone(), 1)).all()
    assert td.log_softmax_backward(g, g, 1)[0, 0] < -9


def test_the_bend_at_its_ends():
    x, t = td.tensor([1.0, -3.0]).requires_grad_(), td.zeros(2)
    for delta in (math.inf, 3e38):
        y = F.huber_loss(x, t, delta=delta, reduction="none")
        assert y.tolist() == [0.5, 4.5] and td.autograd.grad(y.sum(), x)[0].tolist() == [1, -3]
    wide, none = td.tensor([0.25], dtype=td.float64).requires_grad_(), td.zeros(1, dtype=td.float64)
    g, = td.autograd.grad(F.smooth_l1_loss(wide, none, beta=0.3), wide, create_graph=True)
    assert g.item() == pytest.approx(0.25 / 0.3, rel=1e-15) and td.autograd.grad(g, wide)[0].item() == pytest.approx(1 / 0.3, rel=1e-15)
    g, = td.autograd.grad(F.huber_loss(wide, none, delta=0.2), wide, create_graph=True)
    assert g.item() == 0.2
