# needs: convolution layers
"""Convolutions against seven loops in NumPy, and numbers that PyTorch 1.13 gave."""
import itertools
import re

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import grad, gradcheck, gradgradcheck

F = nn.functional


def array(*shape):
    return np.cos(1.0 + 3.0 * np.arange(np.prod(shape))).reshape(shape)


def loops(x, w, b, stride, padding, dilation, groups):
    """The definition, for pictures."""
    s, m, d = stride, padding, dilation
    x = np.pad(x, ((0, 0), (0, 0), (m[0], m[0]), (m[1], m[1])))
    out = [(x.shape[2 + i] - d[i] * (w.shape[2 + i] - 1) - 1) // s[i] + 1 for i in (0, 1)]
    y = np.zeros((len(x), len(w), *out))
    for o, c in itertools.product(range(len(w)), range(w.shape[1])):
        channel = x[:, o // (len(w) // groups) * w.shape[1] + c]
        for i, j in itertools.product(range(w.shape[2]), range(w.shape[3])):
            y[:, o] += w[o, c, i, j] * channel[:, i * d[0]:][:, :(out[0] - 1) * s[0] + 1:s[0],
                                               j * d[1]:][:, :, :(out[1] - 1) * s[1] + 1:s[1]]
    return y if b is None else y + b[:, None, None]


# input, weight, stride, padding, dilation, groups
WINDOWS = [
    ((2, 2, 5, 7), (3, 2, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    ((3, 1, 6, 5), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((9, 4, 7, 6), (6, 2, 2, 3), (2, 3), (1, 2), (1, 1), 2),
    ((1, 3, 9, 8), (3, 1, 2, 3), (2, 1), (2, 0), (3, 2), 3),        # depthwise
    ((2, 3, 6, 7), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), 3),        # four lines of eight
    ((1, 2, 5, 14), (2, 1, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((1, 2, 3, 21), (2, 1, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((2, 2, 7, 4), (2, 1, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((2, 2, 11, 13), (1, 2, 4, 5), (3, 2), (3, 4), (1, 2), 1),      # one result
    ((2, 5, 4, 3), (7, 5, 1, 1), (1, 1), (0, 0), (1, 1), 1),        # the picture itself
    ((2, 5, 4, 3), (7, 5, 1, 1), (2, 2), (1, 0), (1, 1), 1),
    ((2, 3, 1, 40), (2, 3, 1, 7), (1, 4), (0, 3), (1, 1), 1),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_conv2d_is_the_seven_loops(window, dtype):
    shape, size, *options, groups = window
    x, w, b = array(*shape), array(*size), array(size[0])
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    ours = [td.from_numpy(a.astype(dtype)) for a in (x, w, b)]
    turned = td.from_numpy(np.ascontiguousarray(x.swapaxes(1, 3)).astype(dtype)).transpose(1, 3)
    for bias in (None, b):
        want = loops(x, w, bias, *options, groups)
        for t in (ours[0], turned):
            y = F.conv2d(t, ours[1], None if bias is None else ours[2], *options, groups)
            assert y.dtype is t.dtype and y.shape == want.shape
            np.testing.assert_allclose(y.numpy(), want, tolerance, tolerance)


@pytest.mark.parametrize("window", WINDOWS)
def test_the_three_convolutions_are_adjoint(window):
    """One number, read in three ways: <C(x,w),g> = <x,T(g,w)> = <w,W(x,g)>."""
    shape, size, s, m, d, groups = window
    x, w = td.from_numpy(array(*shape)), td.from_numpy(array(*size) + 0.5)
    y = F.conv2d(x, w, None, s, m, d, groups)
    g = td.from_numpy(array(*y.shape) - 0.2)
    extra = [n - ((p - 1) * s[i] - 2 * m[i] + d[i] * (size[2 + i] - 1) + 1)
             for i, (n, p) in enumerate(zip(shape[2:], y.shape[2:]))]
    back = F.conv_transpose2d(g, w, None, s, m, extra, groups, d)
    weight = td.convolution_weight(x, g, size, s, m, d, groups)
    number = (y * g).sum().item()
    assert back.shape == x.shape and weight.shape == w.shape
    assert abs((x * back).sum().item() - number) < 1e-10 * max(1, abs(number))
    assert abs((w * weight).sum().item() - number) < 1e-10 * max(1, abs(number))


def test_the_example_by_hand():
    x = td.tensor([[3., 2, 0, 1], [0, 1, 3, 2], [2, 1, 0, 0], [1, 0, 2, 1]]).reshape(1, 1, 4, 4)
    w = td.tensor([[1., 0], [2, -1]]).reshape(1, 1, 2, 2)
    x.requires_grad_(), w.requires_grad_()
    y = F.conv2d(x, w)
    assert y.tolist() == [[[[2, 1, 4], [3, 3, 3], [4, -1, 3]]]]
    y.sum().backward()
    assert w.grad.tolist() == [[[[12, 10], [10, 10]]]]
    assert x.grad.tolist() == [[[[1, 1, 1, 0], [3, 2, 2, -1], [3, 2, 2, -1], [2, 1, 1, -1]]]]


def test_golden_numbers_of_pytorch():
    x = (td.arange(1., 25, dtype=td.float64) / 10).reshape(1, 2, 3, 4).requires_grad_()
    w = (td.arange(1., 17, dtype=td.float64) / 10 - 0.8).reshape(2, 2, 2, 2).requires_grad_()
    b = td.tensor([.5, -.5], dtype=td.float64)
    y = F.conv2d(x, w, b, (2, 1), (1, 0), (1, 2))
    np.testing.assert_allclose(y.detach().numpy().ravel(), [
        .2, .1, -2.26, -2.54, 1.76, 1.98, 5.7, 6.06], atol=1e-6)
    gx, gw = grad((y * y).sum(), (x, w))
    np.testing.assert_allclose(gx.numpy().ravel(), [
        .856, 1.088, 1.248, 1.504, 4.304, 4.768, 4.992, 5.472, 5.68, 6.176, 6.368, 6.88,
        2.424, 2.752, 2.816, 3.168, 7.056, 7.584, 7.744, 8.288, 8.432, 8.992, 9.12, 9.696], 1e-6)
    np.testing.assert_allclose(gw.numpy().ravel(), [
        -5.308, -7.228, -9.068, -10.868, -16.828, -18.748, -19.868, -21.668,
        12.972, 17.676, 23.524, 29.724, 41.196, 45.9, 60.724, 66.924], 1e-6)
    y = F.conv_transpose2d(x, w, None, (2, 1), (1, 0), (1, 0), 1, (1, 2))
    assert y.shape == (1, 2, 5, 6)
    np.testing.assert_allclose(y.detach().numpy()[0, 1, ::2].ravel(), [
        .9, .96, 2.06, 2.2, 1.2, 1.28, 1.14, 1.2, 2.62, 2.76, 1.52, 1.6,
        1.38, 1.44, 3.18, 3.32, 1.84, 1.92], atol=1e-6)
    np.testing.assert_allclose(grad((y * y).sum(), x)[0].numpy()[0, 1].ravel(), [
        5.384, 5.664, 5.656, 5.968, 9.056, 9.376, 9.696, 10.08, 10.336, 10.656, 11.232, 11.616],
        1e-6)


def test_one_direction_and_single_pictures():
    x, w, b = td.from_numpy(array(2, 4, 9)), td.from_numpy(array(6, 2, 3)), td.ones(6).double()
    y = F.conv1d(x, w, b, 2, 1, 2, 2)
    want = loops(array(2, 4, 1, 9), array(6, 2, 1, 3), np.ones(6), (1, 2), (0, 1), (1, 2), 2)
    np.testing.assert_allclose(y.numpy(), want[:, :, 0], 1e-13)
    np.testing.assert_array_equal(F.conv1d(x[1], w, b, 2, 1, 2, 2).numpy(), y[1].numpy())
    back = F.conv_transpose1d(y, w, None, 2, 1, 0, 2, 2)
    assert back.shape == (2, 4, 9)
    np.testing.assert_array_equal(
        F.conv_transpose1d(y[0], w, None, (2,), 1, 0, 2, 2).numpy(), back[0].numpy())


def test_padding_same_puts_the_odd_zero_at_the_end():
    x, w = td.tensor([[1., 2, 4, 8]]), td.tensor([[[1., -1, 2, 3]]])
    assert F.conv1d(x, w, padding="same").tolist() == [[15, 31, 14, -4]]
    assert F.conv1d(x, w, padding="valid").tolist() == [[31]]
    x, w = td.randn(2, 3, 6, 7), td.randn(4, 3, 4, 3)
    assert F.conv2d(x, w, padding="same", dilation=(1, 2)).shape == (2, 4, 6, 7)


def test_an_output_padding_up_to_the_dilation():
    """Like zeros behind the input; PyTorch's numbers for ones."""
    x, w = td.ones(1, 1, 2), td.tensor([[[1., 10]]])
    y = F.conv_transpose1d(x, w, None, 1, 0, 2, 1, 3)
    assert y.tolist() == [[[1, 1, 0, 10, 10, 0, 0]]]
    with pytest.raises(RuntimeError, match="output_padding 3"):
        F.conv_transpose1d(x, w, None, 1, 0, 3, 1, 3)


@pytest.mark.parametrize("groups, stride, padding, dilation", [
    (1, 1, 0, 1), (2, 2, 1, 1), (1, (2, 3), 2, 2), (2, 1, "same", 1)])
def test_first_and_second_derivatives(groups, stride, padding, dilation):
    x = td.from_numpy(array(2, 2, 5, 6)).requires_grad_()
    w = td.from_numpy(array(4, 2 // groups, 2, 3)).requires_grad_()
    b = td.from_numpy(array(4)).requires_grad_()
    inputs = (x, w, b)
    conv = lambda *t: F.conv2d(*t, stride, padding, dilation, groups)
    assert gradcheck(conv, inputs) and gradgradcheck(conv, inputs)
    if padding == "same":
        return
    g = td.from_numpy(array(2, 4, 2, 3)).requires_grad_()
    back = lambda g, w: F.conv_transpose2d(g, w, None, stride, padding, 0, groups, dilation)
    assert gradcheck(back, (g, w)) and gradgradcheck(back, (g, w))


def test_third_derivatives_of_a_cube():
    x = td.from_numpy(array(1, 1, 3, 3)).requires_grad_()
    w = td.from_numpy(array(1, 1, 2, 2))
    y = (F.conv2d(x, w) ** 3).sum()
    for _ in range(3):
        y = (grad(y, x, create_graph=True)[0] * td.ones(1, 1, 3, 3).double()).sum()
    want = 6 * (F.conv2d(td.ones(1, 1, 3, 3).double(), w) ** 3).sum()
    assert abs(y.item() - want.item()) < 1e-12


def test_only_what_is_needed_is_saved():
    x, w = td.randn(2, 3, 8, 8), td.randn(4, 3, 3, 3, requires_grad=True)
    y = F.conv2d(x, w)
    x.add_(1)                       # saved for the weight's gradient
    with pytest.raises(RuntimeError, match="modified in place"):
        y.sum().backward()
    y = F.conv2d(x, w)
    with td.no_grad():
        w.add_(1)                   # not saved: x needs no gradient
    y.sum().backward()


def test_empty_batches_and_missing_channels():
    w = td.randn(4, 3, 3, 3, requires_grad=True)
    x = td.randn(0, 3, 8, 8, requires_grad=True)
    y = F.conv2d(x, w, td.ones(4))
    assert y.shape == (0, 4, 6, 6)
    y.sum().backward()
    assert w.grad.abs().sum().item() == 0 and x.grad.shape == x.shape
    y = F.conv2d(td.ones(2, 0, 3, 3), td.ones(2, 0, 2, 2), td.tensor([1., 2]))
    assert y.tolist() == [[[[1, 1]] * 2, [[2, 2]] * 2]] * 2


def test_nan_stays_in_its_windows():
    x = td.zeros(1, 1, 6, 6)
    x[0, 0, 2, 3] = float("nan")
    bad = td.isnan(F.conv2d(x, td.ones(1, 1, 2, 2), stride=2))[0, 0]
    assert bad.tolist() == [[False] * 3, [False, True, False], [False] * 3]
    bad = td.isnan(F.conv2d(x, td.ones(16, 1, 3, 3), padding=1))[0, 5]
    assert bad.sum().item() == 9


def test_bits_do_not_depend_on_threads():
    """Many times, since pictures that add in the order of arrival may arrive in order."""
    x, w = td.randn(37, 8, 23, 23, requires_grad=True), td.randn(16, 8, 3, 3, requires_grad=True)
    answers, before = [], td.get_num_threads()
    for threads in (1, *(2, 3) * 4):
        td.set_num_threads(threads)
        y = F.conv2d(x, w, padding=1)
        answers.append([t.detach().numpy() for t in (y, *grad(y, (x, w), y))])
    td.set_num_threads(before)
    for other in answers[1:]:
        for a, b in zip(answers[0], other):
            np.testing.assert_array_equal(a, b)


def test_a_strip_smaller_than_the_picture():
    """64 taps of channels and lines of 90: several strips in each picture."""
    x, w = array(1, 48, 40, 90), array(3, 48, 3, 3)
    y = F.conv2d(td.from_numpy(x), td.from_numpy(w), padding=1)
    np.testing.assert_allclose(y.numpy(), loops(x, w, None, (1, 1), (1, 1), (1, 1), 1),
                               1e-10, 1e-10)


X, W = td.ones(1, 4, 6, 6), td.ones(6, 4, 3, 3)


@pytest.mark.parametrize("call, kind, words", [
    (lambda: F.conv2d(X, td.ones(6, 3, 3, 3)), RuntimeError, "input [1, 4, 6, 6] does not go with "
     "weight [6, 3, 3, 3]"),
    (lambda: F.conv2d(X, td.ones(6, 4, 3)), RuntimeError, "conv2d: expected an input of 4"),
    (lambda: F.conv1d(X, td.ones(6, 4, 3)), RuntimeError, "conv1d: expected an input of 3"),
    (lambda: F.conv2d(X, W, groups=0), RuntimeError, "groups=0"),
    (lambda: F.conv2d(X, td.ones(6, 2, 3, 3), groups=4), RuntimeError, "groups=4"),
    (lambda: F.conv2d(X, td.ones(6, 4, 7, 3)), RuntimeError, "a kernel of 7 "),
    (lambda: F.conv2d(X, W, stride=0), RuntimeError, "stride 0"),
    (lambda: F.conv2d(X, W, padding=-1), RuntimeError, "padding -1"),
    (lambda: F.conv2d(X, W, dilation=0), RuntimeError, "dilation 0"),
    (lambda: F.conv2d(X, W, stride=1 << 40), RuntimeError, "stride 1099511627776"),
    (lambda: F.conv2d(X, W, stride=(1, 1, 1)), RuntimeError, "options of 2"),
    (lambda: F.conv2d(X, W, td.ones(5)), RuntimeError, "bias has shape [5], expected [6]"),
    (lambda: F.conv2d(X, W.double()), RuntimeError, "float32 and float64"),
    (lambda: F.conv2d(X.long(), W.long()), RuntimeError, "got int64"),
    (lambda: F.conv2d(X, W, padding="all"), RuntimeError, "got 'all'"),
    (lambda: F.conv2d(X, W, stride=2, padding="same"), RuntimeError, "with stride (2, 2)"),
    (lambda: F.conv_transpose2d(X, W), RuntimeError, "does not go with weight"),
    (lambda: F.conv_transpose2d(X, td.ones(4, 2, 3, 3), output_padding=1), RuntimeError,
     "output_padding 1"),
    (lambda: td.convolution_weight(X, X, W.shape, [1], [0], [1], 1), RuntimeError,
     "grad has shape [1, 4, 6, 6], expected [1, 6, 4, 4]"),
    (lambda: F.conv2d(X, W, stride=1.5), TypeError, ""),
    (lambda: nn.Conv2d(4, 6, 3, groups=3), ValueError, "divisible by groups 3"),
    (lambda: nn.Conv2d(4, 6, 3, padding="none"), ValueError, "got 'none'"),
    (lambda: nn.Conv2d(4, 6, 3, 2, "same"), ValueError, "with stride (2, 2)"),
    (lambda: nn.Conv2d(4, 6, 3, padding_mode="wrap"), ValueError, "got 'wrap'"),
    (lambda: nn.ConvTranspose2d(4, 6, 3, padding_mode="reflect"), ValueError, "('zeros',)"),
])
def test_bad_calls_say_what_is_wrong(call, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        call()


@pytest.mark.parametrize("layer, line, shapes", [
    (lambda: nn.Conv1d(4, 6, 3), "Conv1d(4, 6, kernel_size=(3,), stride=(1,))", [(6, 4, 3), (6,)]),
    (lambda: nn.Conv2d(4, 6, 3, 2, 1, groups=2, bias=False),
     "Conv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2, bias=False)",
     [(6, 2, 3, 3)]),
    (lambda: nn.Conv2d(4, 6, (3, 5), padding="same", padding_mode="circular"),
     "Conv2d(4, 6, kernel_size=(3, 5), stride=(1, 1), padding=same, padding_mode=circular)",
     [(6, 4, 3, 5), (6,)]),
    (lambda: nn.ConvTranspose2d(4, 6, 3, 2, output_padding=1, dilation=2),
     "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), dilation=(2, 2), "
     "output_padding=(1, 1))", [(4, 6, 3, 3), (6,)]),
])
def test_layers_print_and_name_as_in_pytorch(layer, line, shapes):
    layer = layer()
    assert repr(layer) == line
    assert list(layer.state_dict()) == ["weight", "bias"][:len(shapes)]
    assert [tuple(p.shape) for p in layer.parameters()] == shapes


def test_layers_begin_within_their_bound():
    layer = nn.Conv2d(8, 64, 3, groups=2)
    bound = (4 * 9) ** -0.5
    for p in layer.parameters():
        assert 0.9 * bound < p.detach().abs().max().item() <= bound
    layer = nn.ConvTranspose2d(8, 64, 3)         # of the weight's second dimension
    assert layer.weight.detach().abs().max().item() <= (64 * 9) ** -0.5


@pytest.mark.parametrize("mode, numpy", [("zeros", "constant"), ("reflect", "reflect"),
                                         ("replicate", "edge"), ("circular", "wrap")])
def test_layers_pad_in_four_modes(mode, numpy):
    layer = nn.Conv2d(2, 3, (4, 3), padding=(2, 1), padding_mode=mode, dtype=td.float64)
    same = nn.Conv2d(2, 3, (4, 3), padding="same", padding_mode=mode, dtype=td.float64)
    same.load_state_dict(layer.state_dict())
    x, (w, b) = array(2, 2, 6, 5), [p.detach().numpy() for p in layer.parameters()]
    for net, rows in ((layer, (2, 2)), (same, (1, 2))):
        padded = np.pad(x, ((0, 0), (0, 0), rows, (1, 1)), numpy)
        np.testing.assert_allclose(net(td.from_numpy(x)).detach().numpy(),
                                   loops(padded, w, b, (1, 1), (0, 0), (1, 1), 1), 1e-12)


TILED = [(1, 16, 16, 8, 8, 1, (1, 1)), (2, 16, 16, 7, 9, 1, (1, 1)), (5, 32, 16, 32, 31, 1, (0, 1)), (33, 64, 64, 8, 8, 1, (1, 1)),
         (9, 17, 48, 13, 17, 1, (2, 2)), (6, 16, 32, 16, 10, 2, (1, 0)), (3, 16, 16, 8, 8, 1, (3, 0))]


@pytest.mark.parametrize("n, c, o, h, v, groups, padding", TILED)
def test_tiles_are_as_exact_as_they_say(n, c, o, h, v, groups, padding):
    """Winograd's: float32, forward, to the picture and to the weight, beside the same in float64, which goes another way."""
    td.manual_seed(n)
    x, w, b = td.randn(n, groups * c, h, v, dtype=td.float64), td.randn(groups * o, c, 3, 3, dtype=td.float64), td.randn(groups * o, dtype=td.float64)
    results = []
    for dtype in (td.float64, td.float32):
        a, k = x.to(dtype).detach().requires_grad_(True), w.to(dtype).detach().requires_grad_(True)
        y = F.conv2d(a, k, b.to(dtype), padding=padding, groups=groups)
        results.append([z.detach().double().numpy() for z in (y, *grad(y, [a, k], y.detach() / y.detach().std()))])
    np.testing.assert_allclose(results[0][0][:1, :2], loops(x[:1].numpy(), w.numpy(), b.numpy(), (1, 1), padding, (1, 1), groups)[:, :2], atol=1e-10)
    for exact, tiled in zip(*results):
        wrong = (tiled - exact) / exact.std()
        assert np.sqrt((wrong ** 2).mean()) < 2e-6 and abs(wrong).max() < 2e-5


def test_tiles_have_the_same_bits_on_all_threads_and_in_parts():
    x, w = td.randn(12, 16, 16, 16), td.randn(32, 16, 3, 3)
    before, y = td.get_num_threads(), []
    for threads in (1, 2, 3):
        td.set_num_threads(threads)
        k = w.detach().requires_grad_(True)
        z = F.conv2d(x, k, padding=1)
        y.append((z.detach().numpy(), grad(z, k, z.detach())[0].numpy()))
    td.set_num_threads(before)
    for other in y[1:]:
        np.testing.assert_array_equal(other[0], y[0][0])
        np.testing.assert_array_equal(other[1], y[0][1])
    np.testing.assert_array_equal(F.conv2d(x[3:5], w, padding=1).numpy(), y[0][0][3:5])


def test_tiles_of_no_picture():
    x, w = td.zeros(0, 16, 8, 8, requires_grad=True), td.ones(32, 16, 3, 3, requires_grad=True)
    y = F.conv2d(x, w, padding=1)
    to_x, to_w = grad(y, [x, w], td.zeros(0, 32, 8, 8))
    assert y.shape == (0, 32, 8, 8) and to_x.shape == x.shape and to_w.abs().sum().item() == 0


def test_a_transposed_layer_is_asked_for_a_size():
    layer, x = nn.ConvTranspose2d(2, 3, 3, stride=2), td.randn(1, 2, 3, 3)
    assert layer(x).shape == (1, 3, 7, 7)
    assert layer(x, output_size=[8, 7]).shape == (1, 3, 8, 7)
    assert layer(x, output_size=(1, 3, 7, 8)).shape == (1, 3, 7, 8)
    for size in ([9, 7], [7, 6], [7]):
        with pytest.raises(ValueError, match="output_size"):
            layer(x, output_size=size)


def test_a_network_learns_where_the_stripe_is(no_leaks):
    """Rows against columns: a question about neighbours, answered anywhere."""
    def batch(n):
        x, y = td.zeros(n, 1, 8, 8), td.randint(0, 2, (n,))
        for i, place in enumerate(td.randint(0, 8, (n,)).tolist()):
            (x[i, 0] if y[i].item() else x[i, 0].t())[place] = 1
        return x + 0.1 * td.randn(n, 1, 8, 8), y
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 8, 3, stride=2),
                        nn.ReLU(), nn.Flatten(), nn.Linear(72, 2))
    optimiser = td.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(60):
        x, y = batch(32)
        optimiser.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimiser.step()
    x, y = batch(100)
    assert (net(x).argmax(1) == y).sum().item() > 95


def test_a_trace_writes_one_step_a_convolution():
    net = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.ConvTranspose2d(3, 2, 3))
    x = td.randn(1, 2, 5, 5)
    with td.jit.record() as tape:
        net(x)
    assert [line.split()[2].split("(")[0] for line in tape.instructions] == ["convolution"] * 2
    np.testing.assert_array_equal(td.jit(lambda x: net(x))(x).detach().numpy(),
                                  net(x).detach().numpy())
