# needs: normalisation layers
"""Normalisations against NumPy in float64, and against numbers that PyTorch 1.13 gave."""
import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import gradcheck, gradgradcheck

F = nn.functional
NAN = float("nan")


def array(*shape):
    n = int(np.prod(shape))
    return (np.arange(n) * 7919 % 1009 / 100.0 - 4).reshape(shape)


def double(x):
    return td.from_numpy(np.array(x, dtype="float64"))


def standard(a, axes, eps=1e-5):
    return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + eps)


def close(ours, theirs, tolerance=1e-12):
    np.testing.assert_allclose(ours.detach().numpy(), theirs, tolerance, tolerance)


@pytest.mark.parametrize("shape, axes", [
    ((3, 5), 1), ((2, 3, 4), 1), ((2, 3, 4), 2), ((7,), 1), ((2, 1), 1), ((2, 3, 700), 1),
    ((1, 5000), 1), ((3, 9001), 1)])
def test_layer_norm(shape, axes):
    a, last = array(*shape), shape[-axes:]
    w, b = array(*last) + 0.5, array(*last) * 2
    along = tuple(range(-axes, 0))
    close(F.layer_norm(double(a), last), standard(a, along))
    close(F.layer_norm(double(a), last, double(w), double(b), 0.1),
          standard(a, along, 0.1) * w + b)
    close(F.layer_norm(double(a), last, bias=double(b)), standard(a, along) + b)
    close(F.rms_norm(double(a), last, double(w), 0.1),
          a / np.sqrt((a * a).mean(along, keepdims=True) + 0.1) * w)


@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 5), (2, 4, 3, 3), (5, 2, 2, 2, 2), (2, 2, 4, 9)])
def test_batches_groups_and_instances(shape):
    a, c = array(*shape), shape[1]
    w, b = array(c) + 0.5, array(c) * 2
    column = (1, c) + (1,) * (a.ndim - 2)
    along = (0, *range(2, a.ndim))
    close(F.batch_norm(double(a), None, None, double(w), double(b), True),
          standard(a, along) * w.reshape(column) + b.reshape(column))
    groups = standard(a.reshape(shape[0], 2, -1), 2).reshape(shape)
    close(F.group_norm(double(a), 2, double(w), double(b)),
          groups * w.reshape(column) + b.reshape(column))
    mean, var = array(c) / 3, np.abs(array(c)) + 1
    want = (a - mean.reshape(column)) / np.sqrt(var.reshape(column) + 0.1)
    for norm in (F.batch_norm, F.instance_norm):
        named = {"use_input_stats" if norm is F.instance_norm else "training": False}
        close(norm(double(a), double(mean), double(var), eps=0.1, **named), want)
        close(norm(double(a), double(mean), double(var), double(w), double(b), eps=0.1, **named),
              want * w.reshape(column) + b.reshape(column))
    if a.ndim > 2:
        close(F.instance_norm(double(a), weight=double(w)),
              standard(a, tuple(range(2, a.ndim))) * w.reshape(column))


def test_running_statistics():
    a = array(4, 3, 5)
    for norm, name, n in ((F.batch_norm, "training", 20), (F.instance_norm, "use_input_stats", 5)):
        mean, var = double([1.0, 2, 3]), double([1.0, 2, 3])
        along = (0, 2) if n == 20 else 2
        norm(double(a), mean, var, momentum=0.3, **{name: True})
        now, spread = a.mean(along), a.var(along) * n / (n - 1)
        if n == 5:
            now, spread = now.mean(0), spread.mean(0)
        close(mean, np.array([1, 2, 3]) * 0.7 + now * 0.3)
        close(var, np.array([1, 2, 3]) * 0.7 + spread * 0.3)
        norm(td.zeros(0, 3, 5, dtype=td.float64), mean, var, **{name: True})
        assert not mean.isnan().any()


def test_numbers_of_pytorch():
    x = td.arange(24.0).reshape(2, 3, 4) ** 1.5
    first = [-1.141007661819458, -0.6352742910385132, 0.28942230343818665, 1.486859917640686]
    np.testing.assert_allclose(F.layer_norm(x, (4,)).flatten()[:4].tolist(), first, 1e-5)
    np.testing.assert_allclose(
        F.layer_norm(x, (3, 4), eps=0.1).flatten()[:2].tolist(),
        [-1.260849118232727, -1.176396131515503], 1e-5)
    m = nn.BatchNorm2d(1)
    y = td.arange(8.0).reshape(2, 1, 2, 2)
    np.testing.assert_allclose(m(y).flatten()[:2].tolist(),
                               [-1.5275237560272217, -1.0910884141921997], 1e-5)
    assert m.running_mean.item() == pytest.approx(0.35)
    assert m.running_var.item() == pytest.approx(1.5) and m.num_batches_tracked.item() == 1
    np.testing.assert_allclose(m.eval()(y).flatten()[:2].tolist(),
                               [-0.2857728600502014, 0.5307210087776184], 1e-5)
    n = nn.InstanceNorm1d(3, track_running_stats=True)
    n(x)
    np.testing.assert_allclose(n.running_mean.tolist(), [2.5993, 4.3210, 6.4613], 1e-4)
    np.testing.assert_allclose(n.running_var.tolist(), [3.6902, 5.2070, 6.7090], 1e-4)
    np.testing.assert_allclose(n.eval()(x).flatten()[:2].tolist(),
                               [-1.3530985116958618, -0.8325356841087341], 1e-5)
    c = nn.BatchNorm1d(3, momentum=None)
    for k in range(3):
        c(x * (k + 1))
    np.testing.assert_allclose(c.running_mean.tolist(), [51.98597, 86.41923, 129.2258], 1e-5)
    np.testing.assert_allclose(c.running_var.tolist(), [3116.61, 5007.621, 6832.928], 1e-5)


def test_a_large_mean_costs_no_digits():
    """The variance of 10000, 10001, 10002 is 2/3; E[x^2] - E[x]^2 in float32 has no digit right."""
    x = td.tensor([[10000.0, 10001, 10002]])
    want = standard(np.array([[0.0, 1, 2]]), 1)
    close(F.layer_norm(x, (3,)), want, 1e-6)
    wide = td.randn(1, 4, 1000) + 3000
    np.testing.assert_allclose(F.batch_norm(wide, None, None, training=True).numpy(), standard(
        wide.double().numpy(), (0, 2)), 0, 3e-4)     # the mean is rounded to a float
    assert F.layer_norm(td.full((2, 5), 0.1), (5,)).abs().max().item() < 1e-2


def test_nan_stays_in_its_channel():
    x = td.tensor([[1.0, NAN], [2.0, 3.0], [4.0, float("inf")]])
    y = F.batch_norm(x, None, None, training=True)
    assert y[:, 1].isnan().all()
    np.testing.assert_allclose(y[:, 0].tolist(), [-1.0690, -0.2673, 1.3363], 1e-3)
    assert F.layer_norm(td.ones(2, 4), (4,), eps=0.0).isnan().all()


def test_gradients_twice():
    x = double(array(3, 4, 2, 5)).requires_grad_()
    w, b = double(array(4) + 0.3).requires_grad_(), double(array(4)).requires_grad_()
    v = double(array(2, 5)).requires_grad_()
    mean, var = double(array(4)), double(np.abs(array(4)) + 1)
    for f, given in (
            (lambda x, v: F.layer_norm(x[0], (2, 5), v, v), (x, v)),
            (lambda x, v: F.rms_norm(x[0], (2, 5), v), (x, v)),
            (lambda x, w, b: F.group_norm(x[:2], 2, w, b), (x, w, b)),
            (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (x, w, b)),
            (lambda x, w: F.batch_norm(x[:, :, 0, 0], None, None, w, None, True), (x, w)),
            (lambda x, w, b: F.batch_norm(x[:1], mean, var, w, b), (x, w, b)),
            (lambda x, w, b: F.instance_norm(x[:2], None, None, w, b), (x, w, b))):
        assert gradcheck(f, given) and gradgradcheck(f, given)


def test_all_three_results_of_standardise_have_gradients():
    x = double(array(2, 3, 9)).requires_grad_()
    for k in range(3):
        assert gradcheck(lambda x: td.standardise(x, 0.1)[k], (x,))
        assert gradgradcheck(lambda x: td.standardise(x, 0.1)[k], (x,))


@pytest.mark.parametrize("shape", [(2, 3, 40), (3, 5, 7), (1, 6, 4097), (4, 3, 1)])
@pytest.mark.parametrize("dtype", [td.float32, td.float64])
def test_loop_and_formula_agree(shape, dtype):
    """The kernel and its gradient, against the operators that stand for them in a trace."""
    x = double(array(*shape)).to(dtype).requires_grad_()
    g = double(np.cos(array(*shape))).to(dtype)
    mean = x.mean((0, 2), keepdim=True)
    var = ((x - mean) ** 2).mean((0, 2), keepdim=True)
    want = (x - mean) * td.rsqrt(var + 0.01)
    slope, = td.autograd.grad(want, (x,), g)
    y, m, v = td.standardise(x, 0.01)
    by_formula, = td.autograd.grad(y, (x,), g, create_graph=True)
    by_loop, = td.autograd.grad(y, (x,), g)
    tolerance = 1e-5 if dtype is td.float32 else 1e-12
    for ours, theirs in ((y, want), (m, mean), (v, var),
                         (by_formula, slope), (by_loop, slope)):
        close(ours, theirs.detach().numpy(), tolerance)


def test_threads_make_no_difference():
    x = td.randn(7, 5, 3000)
    before = td.get_num_threads()
    try:
        results = []
        for n in (1, 2):
            td.set_num_threads(n)
            results.append([t.numpy().tobytes() for t in td.standardise(x, 1e-5)])
        assert results[0] == results[1]
    finally:
        td.set_num_threads(before)


def test_any_layout_gives_the_same():
    a = array(4, 6, 8)
    for x in (double(a.transpose(2, 1, 0).copy()).transpose(0, 2),
              double(np.repeat(a, 2, -1))[..., ::2]):
        close(F.layer_norm(x, (8,)), standard(a, 2))
        close(F.batch_norm(x, None, None, training=True), standard(a, (0, 2)))
    x = double(a[:1]).expand(3, 6, 8)
    close(F.instance_norm(x), np.broadcast_to(standard(a[:1], 2), (3, 6, 8)))


def test_nothing_to_normalise():
    assert F.layer_norm(td.zeros(3, 0), (0,)).shape == (3, 0)
    assert F.layer_norm(td.zeros(0, 6), (6,)).shape == (0, 6)
    assert F.batch_norm(td.zeros(0, 6), None, None, training=True).shape == (0, 6)
    assert F.group_norm(td.zeros(0, 6, 2), 3).shape == (0, 6, 2)


X = td.zeros(4, 6)


@pytest.mark.parametrize("call, error, words", [
    (lambda: F.layer_norm(X, (5,)), RuntimeError, r"does not end in normalized_shape \[5\]; got \[4, 6\]"),
    (lambda: F.layer_norm(X, ()), RuntimeError, "normalized_shape"),
    (lambda: F.layer_norm(X, (1, 4, 6)), RuntimeError, "normalized_shape"),
    (lambda: F.layer_norm(td.tensor(1.0), ()), RuntimeError, "normalized_shape"),
    (lambda: F.layer_norm(X, (6,), td.ones(5)), RuntimeError, r"weight has shape \[5\], expected \[6\]"),
    (lambda: F.layer_norm(X, (6,), None, td.ones(5)), RuntimeError, "bias has shape"),
    (lambda: F.layer_norm(X.long(), (6,)), RuntimeError, "needs floating-point"),
    (lambda: F.rms_norm(X, (5,)), RuntimeError, "normalized_shape"),
    (lambda: F.group_norm(X, 4), RuntimeError, "divisible by num_groups"),
    (lambda: F.group_norm(X, 0), RuntimeError, "divisible by num_groups"),
    (lambda: F.group_norm(X[0], 3), IndexError, r"expected \[batch, channels, ...\]; got \[6\]"),
    (lambda: F.group_norm(X, 3, td.ones(5)), RuntimeError, "weight has shape"),
    (lambda: F.group_norm(td.zeros(1, 3), 3), ValueError, "more than 1 value per channel"),
    (lambda: F.batch_norm(X, None, None), RuntimeError, "running_mean must"),
    (lambda: F.batch_norm(X, td.zeros(5), td.ones(5)), RuntimeError, r"running_mean has shape \[5\], expected \[6\]"),
    (lambda: F.batch_norm(X, td.zeros(6), None), RuntimeError, "running_var must"),
    (lambda: F.batch_norm(X, None, None, td.ones(5), training=True), RuntimeError, "weight has"),
    (lambda: F.batch_norm(X[:1], None, None, training=True), ValueError, "more than 1 value"),
    (lambda: F.batch_norm(X[0], None, None, training=True), IndexError, r"got \[6\]"),
    (lambda: F.batch_norm(X.long(), None, None, training=True), RuntimeError, "needs floating"),
    (lambda: F.instance_norm(X), ValueError, "more than 1 value"),
    (lambda: td.standardise(X, 0.1), RuntimeError, r"expected 3 dimensions; got \[4, 6\]"),
    (lambda: td.affine_backward(X, X, X[0, :5]), RuntimeError, "weights of rows, or of planes"),
    (lambda: td.affine_backward(X.byte(), X.byte(), X[0].byte()), RuntimeError, "needs floating-point"),
    (lambda: td.layer_norm(None, (6,)), TypeError, "input"),
    (lambda: nn.BatchNorm1d(3)(X), RuntimeError, "running_mean"),
    (lambda: nn.BatchNorm2d(3)(X), ValueError, r"expected 4D input \(got 2D input\)"),
    (lambda: nn.InstanceNorm2d(3)(X), ValueError, r"expected 3D or 4D input \(got 2D input\)"),
    (lambda: nn.GroupNorm(3, 4), ValueError, "num_channels must be divisible"),
    (lambda: nn.LayerNorm(5)(X), RuntimeError, "normalized_shape")])
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("module, text, state", [
    (nn.BatchNorm1d(3),
     "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
     "weight bias running_mean running_var num_batches_tracked"),
    (nn.BatchNorm3d(3, affine=False, momentum=None),
     "BatchNorm3d(3, eps=1e-05, momentum=None, affine=False, bias=False, track_running_stats=True)",
     "running_mean running_var num_batches_tracked"),
    (nn.LayerNorm((3, 4)), "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True, bias=True)", "weight bias"),
    (nn.LayerNorm(4, elementwise_affine=False),
     "LayerNorm((4,), eps=1e-05, elementwise_affine=False, bias=False)", ""),
    (nn.LayerNorm(4, bias=False), "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=False)", "weight"),
    (nn.RMSNorm(4), "RMSNorm((4,), eps=None, elementwise_affine=True)", "weight"),
    (nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)", "weight bias"),
    (nn.InstanceNorm2d(3),
     "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)", ""),
    (nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
     "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
     "weight bias running_mean running_var num_batches_tracked")])
def test_modules_print_and_save_as_in_pytorch(module, text, state):
    assert repr(module) == text
    assert sorted(module.state_dict()) == sorted(state.split())
    assert module.double() is module
    for name, value in module.state_dict().items():
        assert value.dtype is (td.int64 if name.startswith("num") else td.float64)


def test_modules_train_and_evaluate():
    x = td.randn(8, 3, 4, 4) * 3 + 2
    m = nn.BatchNorm2d(3, track_running_stats=False)
    assert (m(x) == m.eval()(x)).all()
    m = nn.BatchNorm2d(3)
    for _ in range(200):
        m(x)
    assert m.num_batches_tracked.item() == 200
    close(m.eval()(x), m.train()(x).detach().numpy(), 1e-2)
    m.reset_running_stats()
    assert m.num_batches_tracked.item() == 0 and m.running_var.tolist() == [1, 1, 1]
    other = nn.BatchNorm2d(3)
    other.load_state_dict(m.state_dict())
    m(x).sum().backward()
    assert m.weight.grad.abs().max().item() < 1e-3 and m.bias.grad.tolist() == [128] * 3
    i = nn.InstanceNorm2d(3)
    assert (i(x)[0] == i(x[0])).all()
    assert nn.RMSNorm(4)(x).shape == nn.GroupNorm(3, 3)(x).shape == nn.LayerNorm(4)(x).shape == x.shape


def test_a_training_step_is_compiled():
    net = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.LayerNorm(5))
    twin = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.LayerNorm(5))
    twin.load_state_dict(net.state_dict())
    optimisers = [td.optim.SGD(n.parameters(), lr=0.1) for n in (net, twin)]
    x, y = td.randn(7, 6), td.randn(7, 5)

    def step(n, opt):
        opt.zero_grad()
        loss = F.mse_loss(n(x), y)
        loss.backward()
        opt.step()
        return loss
    compiled = td.jit(lambda x, y: step(net, optimisers[0]))
    for _ in range(3):
        assert compiled(x, y).item() == pytest.approx(step(twin, optimisers[1]).item(), rel=1e-4)
    for name, value in net.state_dict().items():
        close(value, twin.state_dict()[name].numpy(), 1e-4)


def test_running_statistics_of_another_size_are_refused():
    x = td.ones(2, 3, 4)
    with pytest.raises(RuntimeError, match=r"batch_norm: running_mean has shape \[4\], expected \[3\]"):
        td.nn.BatchNorm1d(4)(x)
    with pytest.raises(RuntimeError, match="batch_norm: running_mean must be given in evaluation"):
        td.nn.functional.batch_norm(x, None, None)


@pytest.mark.parametrize("norm", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_shapes_that_do_not_fit_are_refused_in_every_type(norm, dtype):
    with pytest.raises(RuntimeError, match="does not end in normalized_shape"):
        getattr(F, norm)(td.ones(2, 3, dtype=getattr(td, dtype)), [99])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(3, 1), (5, 7), (4, 16), (2, 3, 33), (70, 128), (9, 1000), (2, 5000), (0, 4), (3, 0)])
def test_a_layer_normalisation_at_once_has_the_bits_of_its_parts(shape, dtype):
    kind = getattr(td, dtype)
    x, w, b = (td.randn(*s).to(kind) for s in (shape, shape[-1:], shape[-1:]))
    turned = td.randn(*reversed(shape)).to(kind).permute(*reversed(range(len(shape))))
    for v in (x, turned):
        for threads in (1, 2):
            before = td.get_num_threads()
            td.set_num_threads(threads)
            with td.no_grad():
                at_once = F.layer_norm(v, shape[-1:], w, b)
            parts = F.layer_norm(v, shape[-1:], w.clone().requires_grad_(), b)
            td.set_num_threads(before)
            assert at_once.dtype is kind and at_once.shape == v.shape and not at_once.requires_grad
            assert ((at_once == parts) | (parts != parts)).all() and parts.requires_grad
    with td.no_grad(), pytest.raises(RuntimeError, match="weight has shape"):
        F.layer_norm(x, shape[-1:], td.ones(shape[-1] + 1), b)
    compiled = td.jit(lambda v: F.layer_norm(v, shape[-1:], w, b))
    if dtype == "float32" and 0 not in shape:
        with td.no_grad():
            close(compiled(x), F.layer_norm(x, shape[-1:], w, b).numpy(), 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm, shape", [
    *(("layer", s) for s in ((1, 1), (5, 7), (127, 3), (128, 16), (130, 33), (3, 90, 8), (300, 129))),
    *(("group", s) for s in ((3, 4, 2), (2, 4, 8), (1, 2, 9), (3, 6, 5, 7), (130, 2, 1, 16), (2, 4, 5000), (9, 2, 2, 2, 2))),
    *(("batch", s) for s in ((5, 7), (300, 3), (4, 3, 40), (1, 3, 8)))])
def test_back_through_scale_and_shift_at_once_is_the_sum_of_parts(norm, shape, dtype):
    x, g = (td.randn(*shape, dtype=getattr(td, dtype)) for _ in range(2))
    w, b = (td.randn(shape[-1 if norm == "layer" else 1], dtype=x.dtype) for _ in range(2))
    tolerance = 2e-4 if dtype == "float32" else 1e-12
    normal = {"layer": lambda x, w, b: F.layer_norm(x, shape[-1:], w, b), "group": lambda x, w, b: F.group_norm(x, 2, w, b),
              "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True)}[norm]

    def gradients(create_graph, threads=1, needs=(True, True, True)):
        before = td.get_num_threads()
        td.set_num_threads(threads)
        operands = [v.clone().requires_grad_(n) for v, n in zip((x, w, b), needs)]
        y = normal(*operands)
        found = td.autograd.grad(y, [v for v in operands if v.requires_grad], g, create_graph=create_graph)
        td.set_num_threads(before)
        return found
    once, parts = gradients(False), gradients(True)
    for a, p, two in zip(once, parts, gradients(False, 2)):
        close(a, p.detach().numpy(), tolerance)
        assert (a == two).all() and a.shape == p.shape
    for frozen in range(3):
        needs = tuple(i != frozen for i in range(3))
        for a, p in zip(gradients(False, 1, needs), [p for i, p in enumerate(parts) if i != frozen]):
            close(a, p.detach().numpy(), tolerance)
    turned = [v.clone().requires_grad_() for v in (x, w, b)]
    y = normal(*turned)
    for a, p in zip(td.autograd.grad(y.mT, turned, g.mT), once):
        assert (a == p).all()
