# needs: pooling layers
"""Pooling and dropout against NumPy, and against numbers that PyTorch 1.13 gave."""
import itertools

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import gradcheck, gradgradcheck

F = nn.functional
PICTURE = [[1.0, 3, 2, 1], [4, 2, 0, 5], [6, 1, 7, 2], [2, 8, 3, 4]]
INF = float("inf")
NAN = float("nan")


def array(*shape):
    """Values without ties, of no order."""
    n = int(np.prod(shape))
    return (np.arange(n) * 7919 % 1009 / 100.0 - 5).reshape(shape)


def double(x):
    return td.from_numpy(np.array(x, dtype="float64"))


def spans(n, size, step, margin, dilation, ceil):
    """Positions inside the input of each window along a dimension, and its width."""
    last = n + 2 * margin - dilation * (size - 1) - 1
    count = -(-last // step) + 1 if ceil else last // step + 1
    if ceil and (count - 1) * step >= n + margin:
        count -= 1
    windows = []
    for i in range(count):
        at = [i * step - margin + dilation * k for k in range(size)]
        width = min(i * step - margin + size, n + margin) - (i * step - margin)
        windows.append(([p for p in at if 0 <= p < n], width))
    return windows


def parts(n, m):
    return [(list(range(i * n // m, -(-(i + 1) * n // m))), 0) for i in range(m)]


def reference(a, down, across, what):
    """what(window, width, flat positions) for every window of every plane."""
    out = np.zeros((*a.shape[:-2], len(down), len(across)))
    for plane in np.ndindex(*a.shape[:-2]):
        for i, (rows, h) in enumerate(down):
            for j, (columns, w) in enumerate(across):
                places = [(r, c) for r in rows for c in columns]
                values = [a[plane][p] for p in places]
                flat = [r * a.shape[-1] + c for r, c in places]
                out[plane][i, j] = what(values, h * w, flat)
    return out


CASES = [(size, step, margin, dilation, ceil)
         for size, step, margin, dilation, ceil in itertools.product(
             (1, 2, 3), (1, 2, 3), (0, 1), (1, 2), (False, True))
         if margin <= size // 2 and dilation * (size - 1) < 5 + margin
         and not (margin and dilation > 1)]


def plain_maxima(x, size, step, margin, dilation, m):
    """Maxima and places of a plane, window by window; (-inf, 0) of nothing."""
    value, place = np.full(m, -np.inf), np.zeros(m, "int64")
    for w in np.ndindex(*m):
        inside = [[p for p in (w[k] * step[k] - margin[k] + dilation[k] * j for j in range(size[k])) if 0 <= p < x.shape[k]] for k in range(2)]
        seen = [(x[i, j], i * x.shape[1] + j) for i in inside[0] for j in inside[1]]
        for n, (v, p) in enumerate(seen):
            if n == 0 or v > value[w] or v != v:
                value[w], place[w] = v, p
    return value, place


@pytest.mark.parametrize("seed", range(8))
def test_windows_of_any_geometry(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        shape = rng.choice([1, 2, 5, 7, 8, 9, 15, 16, 17, 24, 33], 2)
        size, step, dilation = (rng.integers(1, k, 2) for k in (6, 5, 4))
        margin = [int(rng.integers(0, k // 2 + 1)) for k in size]
        x = rng.standard_normal((3, *shape)).astype(rng.choice(["float32", "float64"]))
        if seed % 4 == 1:
            x = np.rint(x)
        if seed % 4 == 2:
            x[rng.random(x.shape) < 0.6] = -np.inf
        if seed % 4 == 3:
            x[rng.random(x.shape) < 0.05] = np.nan
        try:
            y, at = F.max_pool2d(td.from_numpy(x), size.tolist(), step.tolist(), margin, dilation.tolist(), bool(seed % 2),
                                 return_indices=True)
        except RuntimeError:
            assert (np.array(shape) + 2 * np.array(margin) <= dilation * (size - 1)).any()
            continue
        for k in range(3):
            value, place = plain_maxima(x[k], size, step, margin, dilation, tuple(y.shape[1:]))
            np.testing.assert_array_equal(y[k].numpy(), value)
            np.testing.assert_array_equal(at[k].numpy(), place)


@pytest.mark.parametrize("case", CASES)
def test_maxima_and_their_places(case):
    size, step, margin, dilation, ceil = case
    a = array(2, 2, 6, 5)
    down, across = (spans(n, size, step, margin, dilation, ceil) for n in (6, 5))
    y, at = td.max_pool2d_with_indices(double(a), *case)
    np.testing.assert_array_equal(
        y.numpy(), reference(a, down, across, lambda v, _, p: max(v)))
    np.testing.assert_array_equal(at.numpy(), reference(
        a, down, across, lambda v, _, p: p[int(np.argmax(v))]))
    line = F.max_pool1d(double(a[0, :, 0]), *case)
    np.testing.assert_array_equal(line.numpy(), reference(
        a[0, :, :1], [([0], 1)], across, lambda v, _, p: max(v))[:, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_every_length_have_their_maxima_and_places(dtype):
    """Fewer windows than a vector has, as many, and some that are left over; with ties and NaN."""
    for (size, step), n in itertools.product(((2, 2), (3, 2), (3, 1)), range(3, 45)):
        x = (array(2, 7, n) * 0.7).round().astype(dtype)
        x[0, 2, n // 2] = NAN
        y, at = F.max_pool2d(td.from_numpy(x), size, step, return_indices=True)
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::step, ::step]
        flat = windows.reshape(*windows.shape[:3], -1)
        k = np.where(np.isnan(flat).any(-1), np.isnan(flat).argmax(-1), np.nan_to_num(flat, nan=-INF).argmax(-1))
        np.testing.assert_array_equal(y.numpy(), np.take_along_axis(flat, k[..., None], -1)[..., 0])
        down, across = np.ogrid[:flat.shape[1], :flat.shape[2]]
        np.testing.assert_array_equal(at.numpy(), (down * step + k // size) * n + across * step + k % size)


@pytest.mark.parametrize("count", [True, False])
@pytest.mark.parametrize("case", [c for c in CASES if c[3] == 1])
def test_means(case, count):
    size, step, margin, _, ceil = case
    a = array(3, 6, 5)
    down, across = (spans(n, size, step, margin, 1, ceil) for n in (6, 5))
    y = F.avg_pool2d(double(a), size, step, margin, ceil, count)
    np.testing.assert_allclose(y.numpy(), reference(
        a, down, across, lambda v, w, _: sum(v) / (w if count else len(v))))
    y = F.avg_pool2d(double(a), size, step, margin, ceil, count, divisor_override=-3)
    np.testing.assert_allclose(y.numpy(), reference(
        a, down, across, lambda v, *_: sum(v) / -3))
    y = F.avg_pool1d(double(a[0]), size, step, margin, ceil, count)
    np.testing.assert_allclose(y.numpy(), reference(
        a[0][:, None], [([0], 1)], across,
        lambda v, w, _: sum(v) / (w if count else len(v)))[:, 0])


@pytest.mark.parametrize("m", [(1, 1), (1, 3), (2, 5), (4, 4), (9, 7)])
def test_parts(m):
    a = array(2, 1, 7, 5)
    down, across = parts(7, m[0]), parts(5, m[1])
    np.testing.assert_allclose(F.adaptive_avg_pool2d(double(a), m).numpy(), reference(
        a, down, across, lambda v, *_: np.mean(v)))
    y, at = F.adaptive_max_pool2d(double(a), m, return_indices=True)
    np.testing.assert_array_equal(y.numpy(), reference(a, down, across, lambda v, *_: max(v)))
    np.testing.assert_array_equal(at.numpy(), reference(
        a, down, across, lambda v, _, p: p[int(np.argmax(v))]))
    np.testing.assert_allclose(
        F.adaptive_avg_pool1d(double(a[0, 0]), m[1]).numpy(),
        reference(a[0, 0][:, None], [([0], 0)], across, lambda v, *_: np.mean(v))[:, 0])
    assert F.adaptive_max_pool1d(double(a[0, 0]), m[1]).shape == (7, m[1])


def test_the_picture_of_the_chapter():
    x = td.tensor([PICTURE], requires_grad=True)
    y, at = F.max_pool2d(x, 2, return_indices=True)
    assert y.tolist() == [[[4, 5], [8, 7]]] and at.tolist() == [[[4, 7], [13, 10]]]
    y.backward(td.tensor([[[10.0, 20], [30, 40]]]))
    assert x.grad.tolist() == [[[0, 0, 0, 0], [10, 0, 0, 20], [0, 0, 40, 0], [0, 30, 0, 0]]]
    x.grad = None
    y = F.avg_pool2d(x, 2)
    assert y.tolist() == [[[2.5, 2.0], [4.25, 4.0]]]
    y.backward(td.tensor([[[4.0, 8], [12, 16]]]))
    assert x.grad.tolist() == [[[1, 1, 2, 2]] * 2 + [[3, 3, 4, 4]] * 2]


def test_ties_infinities_and_nan():
    ones = td.ones(1, 4, 4, requires_grad=True)
    F.max_pool2d(ones, 3, 1).sum().backward()
    assert ones.grad.tolist() == [[[1, 1, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]]
    low = td.full((1, 4, 4), -INF)
    y, at = F.max_pool2d(low, 2, padding=1, return_indices=True)
    assert y.max().item() == -INF
    assert at.tolist() == [[[0, 1, 3], [4, 5, 7], [12, 13, 15]]]
    x = td.arange(16.0).reshape(1, 4, 4)
    x[0, 0, 1] = x[0, 1, 0] = NAN
    y, at = F.max_pool2d(x, 2, return_indices=True)
    assert str(y.tolist()) == "[[[nan, 7.0], [13.0, 15.0]]]"
    assert at.tolist() == [[[4, 7], [13, 15]]]          # the last NaN, as in PyTorch
    negative = F.max_pool2d(-td.ones(1, 2, 2), 2, padding=1)
    assert negative.max().item() == -1                  # the margin is no zero


def test_gradients_twice():
    x = double(array(2, 2, 5, 4)).requires_grad_()
    for f in (lambda x: F.max_pool2d(x, (3, 2), 2, 1),
              lambda x: F.max_pool2d(x.transpose(2, 3), 2, 1, dilation=2),
              lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
              lambda x: F.adaptive_avg_pool2d(x, (3, None)),
              lambda x: F.adaptive_avg_pool2d(x, 1),
              lambda x: F.adaptive_max_pool2d(x, (2, 3)),
              lambda x: F.max_pool1d(x[0], 2), lambda x: F.avg_pool1d(x[0], 3, 1, 1),
              lambda x: F.adaptive_avg_pool1d(x[0], 3),
              lambda x: F.local_response_norm(x, 3, alpha=0.5)):
        assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_any_layout_gives_the_same():
    a = array(3, 2, 6, 8)
    want = F.max_pool2d(double(a), 3, 2).numpy(), F.avg_pool2d(double(a), 3, 2).numpy()
    turned = double(a.transpose(3, 1, 2, 0).copy()).transpose(0, 3)
    gaps = double(np.repeat(a, 2, -1))[..., ::2]
    for x in (turned, gaps):
        np.testing.assert_array_equal(F.max_pool2d(x, 3, 2).numpy(), want[0])
        np.testing.assert_array_equal(F.avg_pool2d(x, 3, 2).numpy(), want[1])
    row = double(a[0, 0, :1]).expand(4, 6, 8)
    np.testing.assert_array_equal(F.max_pool2d(row, 2).numpy(),
                                  F.max_pool2d(row.clone(), 2).numpy())


@pytest.mark.parametrize("call, error, words", [
    (lambda x: F.max_pool2d(x, 3, padding=2), RuntimeError, "padding of at most half"),
    (lambda x: F.max_pool2d(x, 9), RuntimeError, "no window of size 9 fits 4"),
    (lambda x: F.max_pool2d(x, (2, 2, 2)), RuntimeError, "one number or 2"),
    (lambda x: F.max_pool2d(x, 2, 0), RuntimeError, "above 0"),
    (lambda x: F.max_pool2d(x, 0), RuntimeError, "above 0"),
    (lambda x: F.max_pool2d(x, 2, dilation=0), RuntimeError, "above 0"),
    (lambda x: F.avg_pool2d(x, 2, padding=-1), RuntimeError, "above 0"),
    (lambda x: F.avg_pool2d(x, 2, divisor_override=0), RuntimeError, "divisor_override"),
    (lambda x: F.max_pool2d(x.long(), 2), RuntimeError, "needs floating-point"),
    (lambda x: F.max_pool2d(x[0, 0], 2), RuntimeError, r"expected 3 or 4 dimensions; got \[4, 6\]"),
    (lambda x: F.max_pool1d(x, 2), RuntimeError, r"expected 2 or 3 dimensions; got \[1, 1, 4, 6\]"),
    (lambda x: F.max_pool2d(td.zeros(2, 0, 4, 4), 2), RuntimeError, "only the batch"),
    (lambda x: F.adaptive_avg_pool2d(x, -1), RuntimeError, "output sizes"),
    (lambda x: F.adaptive_avg_pool2d(x, (1, 2, 3)), RuntimeError, "one number or 2"),
    (lambda x: F.adaptive_avg_pool2d(td.zeros(2, 2, 0, 3), 2), RuntimeError, "only the batch"),
    (lambda x: td.avg_pool2d_backward(x, [1, 1, 4, 6], [2]), RuntimeError, r"grad has shape \[1, 1, 4, 6\], expected \[1, 1, 2, 3\]"),
    (lambda x: td.avg_pool2d_backward(x, [1, -1, 4, 6], [2]), RuntimeError, "only the batch"),
    (lambda x: F.max_pool2d(None, 2), TypeError, "input"),
    (lambda x: nn.MaxPool2d(), TypeError, "missing a required argument: 'kernel_size'"),
    (lambda x: nn.MaxPool2d(2, bias=True), TypeError, "unexpected keyword argument 'bias'"),
    (lambda x: F.dropout(x, 1.5), ValueError, "between 0 and 1, but got 1.5"),
    (lambda x: F.dropout(x, -0.1), ValueError, "between 0 and 1"),
    (lambda x: F.dropout(x, NAN), ValueError, "between 0 and 1"),
    (lambda x: F.dropout(x.long(), 0.5), RuntimeError, "needs floating-point"),
    (lambda x: F.dropout1d(td.ones(3)), RuntimeError, "at least 2 dimensions"),
    (lambda x: nn.Dropout(2.0), ValueError, "between 0 and 1"),
    (lambda x: nn.Softmax2d()(x[0, 0]), ValueError, "expected 3D or 4D"),
    (lambda x: F.local_response_norm(x[0, 0], 3), ValueError, "3D or higher")])
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call(td.arange(24.0).reshape(1, 1, 4, 6))


def test_nothing_in_the_batch():
    assert F.max_pool2d(td.zeros(0, 3, 4, 4), 2).shape == (0, 3, 2, 2)
    assert F.adaptive_avg_pool2d(td.zeros(2, 0, 3, 3), 2).shape == (2, 0, 2, 2)
    assert F.adaptive_avg_pool2d(td.zeros(2, 2, 3, 3), 0).shape == (2, 2, 0, 0)


def test_dropout_zeroes_a_share_and_keeps_the_mean():
    td.manual_seed(3)
    x = td.ones(100, 1000)
    y = F.dropout(x, 0.2)
    values, counts = np.unique(y.numpy(), return_counts=True)
    assert values.tolist() == [0.0, 1.25]
    assert abs(counts[0] / 1e5 - 0.2) < 0.005            # 4 standard deviations
    td.manual_seed(3)
    assert (F.dropout(x, 0.2) == y).all()
    assert not (F.dropout(x, 0.2) == y).all()


def test_dropout_out_of_training_is_nothing():
    x = td.randn(5, 3)
    assert F.dropout(x, 0.5, False) is x and F.dropout(x, 0.0) is x
    assert nn.Dropout(0.5).eval()(x) is x
    assert F.dropout(x, 1.0).abs().sum().item() == 0
    assert F.alpha_dropout(x, 1.0, True).abs().sum().item() == 0
    live = td.memory_stats()["live_tensors"] if isinstance(td.memory_stats(), dict) else None
    for _ in range(10):
        F.dropout(x, 0.5, False)
    if live is not None:
        assert td.memory_stats()["live_tensors"] == live


def test_gradient_of_dropout_is_its_mask():
    x = double(array(4, 5)).requires_grad_()
    y = F.dropout(x, 0.4)
    y.sum().backward()
    np.testing.assert_allclose((x.grad * x).detach().numpy(), y.detach().numpy())

    def f(x):
        td.manual_seed(5)
        return F.alpha_dropout(x, 0.4, True) * F.dropout(x, 0.4)
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_dropout_in_place():
    x = td.ones(1000)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert sorted(set(x.tolist())) == [0.0, 2.0]
    x = td.ones(50, 4, requires_grad=True)
    y = nn.Dropout(0.5, inplace=True)(x * 1)
    y.sum().backward()
    assert (x.grad == y.detach()).all()


@pytest.mark.parametrize("drop, shape, inner", [
    (F.dropout1d, (20, 30, 4), 4), (F.dropout1d, (30, 4), 4),
    (F.dropout2d, (9, 20, 2, 3), 6), (F.dropout3d, (8, 9, 2, 1, 2), 4),
    (F.dropout3d, (40, 2, 2, 2), 8),
    (lambda x: F.feature_alpha_dropout(x, 0.5, True), (9, 20, 3), 3)])
def test_whole_channels_go(drop, shape, inner):
    channels = drop(td.ones(shape)).numpy().reshape(-1, inner)
    assert (channels == channels[:, :1]).all() and len(np.unique(channels)) == 2


def test_alpha_dropout_keeps_mean_and_variance():
    td.manual_seed(1)
    y = F.alpha_dropout(td.randn(200000), 0.3, True)
    assert abs(y.mean().item()) < 0.01 and abs(y.var().item() - 1) < 0.02
    low = F.alpha_dropout(td.zeros(100), 0.5, True)
    assert {round(v, 6) for v in low.tolist()} == {0.779194, -0.779194}


def test_local_response_norm():
    x = td.arange(12.0).reshape(1, 6, 2)                 # from PyTorch 1.13
    want = [0.0, 0.9997500777244568, 1.9990005493164062, 2.997377634048462,
            3.9944088459014893, 4.989650249481201, 5.982658863067627, 6.972997188568115,
            7.960232257843018, 8.94393539428711, 9.959195137023926, 10.944775581359863]
    np.testing.assert_allclose(F.local_response_norm(x, 3).flatten().tolist(), want, 1e-6)
    np.testing.assert_allclose(nn.LocalResponseNorm(3)(x).flatten().tolist(), want, 1e-6)


@pytest.mark.parametrize("module, text", [
    (nn.MaxPool1d(2), "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
    (nn.MaxPool2d(3, 2, 1, ceil_mode=True),
     "MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=True)"),
    (nn.AvgPool1d(2), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
    (nn.AvgPool2d((2, 1), None, (1, 0)),
     "AvgPool2d(kernel_size=(2, 1), stride=(2, 1), padding=(1, 0))"),
    (nn.AdaptiveAvgPool1d(3), "AdaptiveAvgPool1d(output_size=3)"),
    (nn.AdaptiveAvgPool2d((None, 3)), "AdaptiveAvgPool2d(output_size=(None, 3))"),
    (nn.AdaptiveMaxPool2d(2), "AdaptiveMaxPool2d(output_size=2)"),
    (nn.Dropout(0.3), "Dropout(p=0.3, inplace=False)"),
    (nn.Dropout2d(inplace=True), "Dropout2d(p=0.5, inplace=True)"),
    (nn.AlphaDropout(), "AlphaDropout(p=0.5, inplace=False)"),
    (nn.LocalResponseNorm(3), "LocalResponseNorm(3, alpha=0.0001, beta=0.75, k=1.0)"),
    (nn.Softmax2d(), "Softmax2d()")])
def test_modules_print_as_in_pytorch(module, text):
    assert repr(module) == text and not module.state_dict()


def test_modules_are_their_functions():
    x = td.randn(2, 3, 6, 5)
    for module, want in (
            (nn.MaxPool2d(2), F.max_pool2d(x, 2)),
            (nn.MaxPool2d(2, 1, ceil_mode=True), F.max_pool2d(x, 2, 1)),
            (nn.MaxPool2d(2, return_indices=True), F.max_pool2d(x, 2, return_indices=True)),
            (nn.AvgPool2d(2, 1, 1, count_include_pad=False),
             F.avg_pool2d(x, 2, 1, 1, False, False)),
            (nn.AdaptiveAvgPool2d((None, 2)), F.adaptive_avg_pool2d(x, (6, 2))),
            (nn.AdaptiveMaxPool2d(3), F.adaptive_max_pool2d(x, 3)),
            (nn.Softmax2d(), F.softmax(x, 1))):
        got = module(x)
        for a, b in zip(*((t if isinstance(t, tuple) else (t,)) for t in (got, want))):
            assert (a == b).all()
    assert nn.MaxPool1d(2)(x[0]).shape == (3, 6, 2) and nn.AvgPool1d(2)(x[0]).shape == (3, 6, 2)
    assert nn.AdaptiveAvgPool1d(4)(x[0]).shape == nn.AdaptiveMaxPool1d(4)(x[0]).shape == (3, 6, 4)


def test_poolings_are_compiled_as_they_run():
    x = td.randn(2, 3, 6, 5)

    def f(x):
        y = F.avg_pool2d(F.max_pool2d(x, 2, 1), 2)
        return F.dropout(F.adaptive_avg_pool2d(y, 1) + F.adaptive_max_pool2d(y, 1), 0.5, False)
    np.testing.assert_allclose(td.jit(f)(x).numpy(), f(x).numpy(), 1e-6)


def test_a_training_step_is_compiled():
    nets = [nn.Linear(64, 64) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    optimisers = [td.optim.SGD(n.parameters(), lr=0.1) for n in nets]
    x, y = td.randn(5, 64), td.randn(5, 1, 2, 2)

    def step(net, opt):
        opt.zero_grad()
        picture = net(x).reshape(5, 1, 8, 8)
        loss = F.mse_loss(F.avg_pool2d(F.max_pool2d(picture, 2), 2), y)
        loss.backward()
        opt.step()
        return loss
    compiled = td.jit(lambda x, y: step(nets[0], optimisers[0]))
    for _ in range(3):
        assert compiled(x, y).item() == pytest.approx(step(nets[1], optimisers[1]).item(), rel=1e-4)
