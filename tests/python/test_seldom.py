# needs: seldom layers strangers porting
"""Functions that few programs call: against PyTorch where it is installed, by difference quotients, and by hand."""
import copy
import pickle
import random

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import gradcheck, gradgradcheck

F = nn.functional
INF = float("inf")
numbers = np.random.default_rng(11)


def draw(*shape):
    return numbers.standard_normal(shape)


def double(x, grad=True):
    return td.tensor(np.asarray(x).tolist(), dtype=td.float64, requires_grad=grad).reshape(np.shape(x)).detach().requires_grad_(grad)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="needs PyTorch (python3-torch) to compare with")


def compare(torch, call, *arrays, grad=True, tolerance=1e-9):
    """call(module, *tensors) in both libraries: results, and gradients of the first by all operands."""
    results = []
    for m in (td, torch):
        x = [m.tensor(a.tolist(), dtype=m.float64).reshape(a.shape) for a in arrays]
        for each in x:
            each.requires_grad_(grad)
        y = call(m, *x)
        y = y if isinstance(y, (tuple, list)) else [y]
        if grad:
            weights = np.cos(np.arange(y[0].numel())).reshape(tuple(y[0].shape))
            (y[0] * m.tensor(weights.tolist(), dtype=m.float64).reshape(weights.shape)).sum().backward()
        results.append([np.array(v.tolist()) for v in y] + [np.array(v.grad.tolist()) for v in x if grad and v.grad is not None])
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


# --- three directions -----------------------------------------------------------

FILMS = [((2, 4, 6, 2), (2, 3, 2), (1, 2, 1), (1, 0, 2), (1, 1, 2), (5, 7, 6), (0, 1, 0)),
         ((1, 3, 2, 1), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (4, 5, 6), (0, 0, 0)),
         ((2, 2, 2, 2), (1, 2, 3), (2, 1, 3), (0, 0, 0), (3, 2, 1), (6, 5, 7), (1, 0, 0))]


@pytest.mark.parametrize("sizes, k, s, p, d, room, more", FILMS)
def test_films_are_convolved(torch, sizes, k, s, p, d, room, more):
    n, c, o, g = sizes
    compare(torch, lambda m, x, w, b: m.nn.functional.conv3d(x, w, b, s, p, d, g), draw(n, c, *room), draw(o, c // g, *k), draw(o))
    compare(torch, lambda m, x, w, b: m.nn.functional.conv_transpose3d(x, w, b, s, p, more, g, d),
            draw(n, c, *room), draw(c, o // g, *k), draw(o))


def test_films_by_seven_loops():
    x, w = draw(1, 2, 3, 4, 3), draw(2, 2, 2, 2, 1)
    y = F.conv3d(double(x), double(w), stride=(1, 2, 1), padding=(1, 0, 0))
    assert y.shape == (1, 2, 4, 2, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0)))
    for o, i, j, k in np.ndindex(2, 4, 2, 3):
        window = padded[0, :, i:i + 2, 2 * j:2 * j + 2, k:k + 1]
        assert y[0, o, i, j, k].item() == pytest.approx((window * w[o]).sum())
    assert gradcheck(lambda x, w: F.conv3d(x, w, padding=1, stride=2), (double(x), double(w)))
    assert gradgradcheck(lambda x, w: F.conv_transpose3d(x, w, stride=2), (double(x[:, :, :1, :2]), double(w)))


def test_a_single_film_and_none():
    x, w = double(draw(3, 4, 5, 6)), double(draw(2, 3, 2, 3, 2))
    assert F.conv3d(x, w).tolist() == F.conv3d(x.unsqueeze(0), w)[0].tolist()
    assert F.conv3d(x, w, padding="same").shape == (2, 4, 5, 6)
    assert F.conv3d(td.zeros(0, 3, 4, 5, 6), td.ones(2, 3, 2, 3, 2)).shape == (0, 2, 3, 3, 5)


def test_layers_of_films_have_the_names_of_pytorch(torch):
    for name, options in (("Conv3d", {"groups": 2, "padding": 1, "bias": False}), ("ConvTranspose3d", {"stride": 2}),
                          ("Conv3d", {"padding": 2, "padding_mode": "replicate"})):
        ours = getattr(nn, name)(4, 6, (2, 3, 1), dtype=td.float64, **options)
        theirs = getattr(torch.nn, name)(4, 6, (2, 3, 1), dtype=torch.float64, **options)
        assert repr(ours) == repr(theirs)
        theirs.load_state_dict({k: torch.tensor(v.tolist(), dtype=torch.float64) for k, v in ours.state_dict().items()})
        compare(torch, lambda m, x: (ours if m is td else theirs)(x), draw(2, 4, 5, 4, 3))


@pytest.mark.parametrize("n", (1, 2, 3))
def test_pools_and_their_inverses(torch, n):
    room, parts = (7, 6, 5)[:n], (3, 2, 4)[:n]

    def of(m, name):
        return getattr(m.nn.functional, f"{name}{n}d")
    for k, s, p, d, ceil in ((2, None, 0, 1, False), (3, 2, 1, 1, True), (2, 1, 1, 2, True)):
        compare(torch, lambda m, x: of(m, "max_pool")(x, k, s, p, d, ceil, return_indices=True), draw(2, 3, *room))
        for counted in (False, True):
            compare(torch, lambda m, x: of(m, "avg_pool")(x, k, s, p, ceil, counted), draw(2, 3, *room))
    if n > 1:
        compare(torch, lambda m, x: of(m, "avg_pool")(x, 2, divisor_override=5), draw(3, *room))
    compare(torch, lambda m, x: of(m, "adaptive_avg_pool")(x, parts), draw(2, 3, *room))
    compare(torch, lambda m, x: of(m, "adaptive_max_pool")(x, parts, return_indices=True), draw(2, 3, *room))
    for size in (None, room):
        def there_and_back(m, x):
            y, places = of(m, "max_pool")(x, 2, return_indices=True)
            return of(m, "max_unpool")(y, places, 2, output_size=size)
        compare(torch, there_and_back, draw(2, 3, *(room if size else [v - v % 2 for v in room])))


def test_films_are_pooled_by_hand():
    x = td.arange(0, 16).reshape(1, 4, 2, 2).float()
    assert F.max_pool3d(x, 2).tolist() == [[[[7]], [[15]]]]
    assert F.max_pool3d(x, (4, 1, 1), return_indices=True)[1].tolist() == [[[[12, 13], [14, 15]]]]
    assert F.avg_pool3d(x, 2).tolist() == [[[[3.5]], [[11.5]]]]
    assert F.adaptive_avg_pool3d(x, (None, 1, 1)).tolist() == [[[[1.5]], [[5.5]], [[9.5]], [[13.5]]]]
    y, places = nn.MaxPool3d(2, return_indices=True)(x)
    assert nn.MaxUnpool3d(2)(y, places).flatten().tolist() == [0] * 7 + [7] + [0] * 7 + [15]
    assert repr(nn.MaxUnpool2d(2, 1)) == "MaxUnpool2d(kernel_size=(2, 2), stride=(1, 1), padding=(0, 0))"
    assert gradcheck(lambda x: F.avg_pool3d(x, 2, 1, 1, True, False), (double(draw(1, 2, 3, 2)),))


# --- what was refused before --------------------------------------------------------

@pytest.mark.parametrize("size, mode", [((3,), 1), ((3, 2), 2), ((2, 3, 4), 3)])
def test_areas(torch, size, mode):
    compare(torch, lambda m, x: m.nn.functional.interpolate(x, size=size, mode="area"), draw(2, 3, *(7, 6, 5)[:mode]))
    compare(torch, lambda m, x: m.nn.functional.interpolate(x, scale_factor=0.6, mode="area"), draw(2, 3, *(7, 6, 5)[:mode]))
    assert F.interpolate(td.arange(0, 10).float().reshape(1, 1, 10), 4, mode="area").tolist() == [[[1, 3, 6, 8]]]


def test_margins_may_take_everything_but_what_the_other_brings():
    x = td.tensor([[[0.0, 1, 2, 3]]])
    assert F.pad(x, (-4, 2), "reflect").tolist() == [[[2, 1]]]
    assert F.pad(x, (1, -4), "reflect").tolist() == [[[1]]]
    assert F.pad(x, (-4, 2), "replicate").tolist() == [[[3, 3]]]
    assert F.pad(x, (3, -4), "replicate").tolist() == [[[0, 0, 0]]]
    for margins, mode in (((-4, 0), "reflect"), ((-4, 1), "circular"), ((-2, -2), "circular"), ((-4, 4), "reflect")):
        with pytest.raises(RuntimeError, match="pad: margins"):
            F.pad(x, margins, mode)
    assert gradcheck(lambda x: F.pad(x, (3, -4), "reflect"), (double(draw(1, 2, 4)),))


def test_whole_numbers_of_fractions(torch):
    two_minds = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15)    # of steps below one, of signs, and of bool
    draw = random.Random(5)
    for i in range(2000):
        numbers = [draw.choice([draw.randint(-300, 300), draw.uniform(-20, 20), draw.choice([True, False, .5, -.5, 0, 255, -256])])
                   for _ in range(3)]
        dtype = draw.choice(["int64", "int32", "int16", "int8", "uint8", "bool"])
        name = draw.choice(["arange", "linspace"])
        if name == "linspace":
            numbers[2] = draw.randint(0, 9)

        def of(m):
            try:
                return getattr(m, name)(*numbers, dtype=getattr(m, dtype)).tolist()
            except Exception as e:
                return type(e).__name__
        if not two_minds:
            assert of(td) == of(torch), (name, numbers, dtype)
    assert td.arange(0, 5, 1.5, dtype=td.int64).tolist() == [0, 1, 2, 3] and td.arange(0, 5.5, dtype=td.int64).tolist() == [*range(6)]
    assert td.arange(0, 3, .5, dtype=td.int64).tolist() == [0] * 6 and td.linspace(-3, 7, 4, dtype=td.uint8).tolist() == [253, 171, 89, 7]
    assert td.arange(-3, 7, 1.5, dtype=td.uint8).tolist() == [253, 254, 255, 0, 1, 2, 3]
    assert td.linspace(-249, 127, 7, dtype=td.int16).tolist() == [-249, -186, -123, -60, 1, 64, 127]
    assert td.jit(lambda x: x + td.arange(250, 260, dtype=td.uint8))(td.zeros(10)).tolist() == [*range(250, 256), 0, 1, 2, 3]
    with pytest.raises(TypeError, match="'steps' must be an integer, not bool"):
        td.linspace(0, 5, True)
    with pytest.raises(RuntimeError, match="must be finite"):
        td.arange(0.5, INF, dtype=td.int32)


def test_a_vector_as_weight():
    x, w = td.arange(0, 12).float().reshape(2, 2, 3), td.tensor([1.0, 2, 3])
    assert F.linear(x, w).tolist() == [[8, 26], [44, 62]]
    assert F.linear(x[0, 0], w).tolist() == 8
    assert gradcheck(F.linear, (double(draw(2, 3)), double(draw(3))))
    with pytest.raises(RuntimeError, match="linear: shapes do not match"):
        F.linear(x, w, td.ones(1))


def test_searching_in_what_an_order_sorts():
    line, order = td.tensor([3, 1, 2.0]), td.tensor([1, 2, 0])
    assert td.searchsorted(line, td.tensor([1.5, 2.5]), sorter=order).tolist() == [1, 2]
    assert td.searchsorted(line, 2, sorter=order, right=True, out_int32=True).dtype is td.int32
    with pytest.raises(RuntimeError, match=r"expected a sorter of shape \[3\], got \[2\]"):
        td.searchsorted(line, 2, sorter=order[:2])


def test_products_at_places_have_gradients(torch):
    x, s = draw(4, 5), draw(3, 5)
    x[1, 2] = s[0, 1] = s[2, 1] = s[1, 3] = 0
    at = numbers.integers(0, 4, (3, 5))
    for counted in (True, False):
        compare(torch, lambda m, x, s: m.scatter_reduce(x, 0, m.tensor(at.tolist()), s, "prod", include_self=counted), x, s)
    index = td.tensor([0, 0, 2])
    assert gradgradcheck(lambda x, s: td.scatter_reduce(x, 0, index, s, "prod"), (double([2.0, 3, 4]), double([0.5, 0, 7])))
    y = td.tensor([INF, 2.0]).scatter_reduce(0, td.tensor([0, 1]), td.tensor([2.0, -3]), "prod")
    assert y.tolist() == [INF, -6]
    assert td.tensor([2, 3]).scatter_reduce(0, td.tensor([0, 0]), td.tensor([5, 0]), "prod").tolist() == [0, 3]


def test_bytes_seen_as_another_type(torch):
    x = np.arange(12, dtype="float32").reshape(3, 4) - 3.5
    ours, theirs = td.tensor(x.tolist()), torch.tensor(x)
    for dtype in ("int32", "uint8", "int64", "float64", "int16", "float32"):
        y, z = (m.view(getattr(lib, dtype)) for m, lib in ((ours, td), (theirs, torch)))
        assert y.shape == tuple(z.shape) and y.tolist() == z.tolist(), dtype
    assert ours[:, 2:].view(td.int64).tolist() == theirs[:, 2:].view(torch.int64).tolist()
    y = ours.view(td.int32)
    y[0, 0] = 0
    assert ours[0, 0].item() == 0
    assert td.tensor(1.0).view(td.int32).item() == 0x3F800000
    for odd in (lambda: td.arange(8).bfloat16()[1:5].view(td.float32), lambda: td.ones(2, 3).t().view(td.float16),
                lambda: td.ones(4, 6).bfloat16().view(td.float64)):
        with pytest.raises(RuntimeError, match="cannot be viewed as"):
            odd()
    with pytest.raises(RuntimeError, match="view: bytes of uint8 cannot be viewed as bool"):
        td.ones(4, dtype=td.uint8).view(td.bool)
    for bad, dtype in ((ours.t(), td.int64), (ours[:, 1:], td.int64), (ours[:, 1:3], td.int64), (td.tensor(1.0), td.uint8),
                       (td.zeros(2, dtype=td.uint8), td.bool), (td.zeros(3), td.float64)):
        with pytest.raises(RuntimeError, match="view: .* cannot be viewed as"):
            bad.view(dtype)
    assert ours.view(2, 6).shape == ours.view((2, 6)).shape == ours.view([-1, 6]).shape == (2, 6)


def test_rank_eight_is_enough_for_integers_and_new_axes():
    x = td.arange(0, 256).reshape([2] * 8)
    assert x[None, None, None, 1, 0, 1].shape == (1, 1, 1, 2, 2, 2, 2, 2)
    assert x[None, 1, ..., 0].sum().item() == x[1, ..., 0].sum().item()
    assert x[None, td.tensor([0, 1]), 0, 0].shape == (1, 2, 2, 2, 2, 2, 2)
    y = td.zeros([2] * 8)
    y[None, ..., 1] = 3
    assert y.sum().item() == 3 * 128
    mask = td.ones(2, 2) > 0
    assert x[mask, 0].shape == x[mask][:, 0].shape and (x[mask, 0] == x[mask][:, 0]).all()


def test_covariance_of_one_number(torch):
    for options in ({}, {"correction": 0}):
        ours, theirs = (m.cov(m.tensor(3.0), **options) for m in (td, torch))
        assert ours.shape == tuple(theirs.shape) == ()
        assert str(ours.item()) == str(theirs.item())


# --- bags, grids, labels ----------------------------------------------------------------

OFFSETS = [0, 2, 2, 5, 10]


@pytest.mark.parametrize("mode", ("sum", "mean", "max"))
@pytest.mark.parametrize("padding", (None, 2, -2))
def test_embedding_bag(torch, mode, padding):
    table, at = draw(7, 3), numbers.integers(0, 7, 10)
    for last in (False, True):
        compare(torch, lambda m, w: m.nn.functional.embedding_bag(
            m.tensor(at.tolist()), w, m.tensor(OFFSETS), mode=mode, padding_idx=padding, include_last_offset=last), table)
    compare(torch, lambda m, w: m.nn.functional.embedding_bag(
        m.tensor(at.reshape(2, 5).tolist()), w, mode=mode, padding_idx=padding), table)
    y = F.embedding_bag(td.tensor([1, 2]), td.ones(3, 2), td.tensor([0, 0, 2]), mode=mode)
    assert y[0].tolist() == y[2].tolist() == [0, 0]


def test_bags_with_factors_and_as_modules(torch):
    table, at, a = draw(7, 3), numbers.integers(0, 7, 10), draw(10)
    compare(torch, lambda m, w, a: m.nn.functional.embedding_bag(
        m.tensor(at.tolist()), w, m.tensor(OFFSETS), mode="sum", per_sample_weights=a), table, a)
    assert gradcheck(lambda w, a: F.embedding_bag(td.tensor(at.tolist()), w, td.tensor(OFFSETS), mode="sum", per_sample_weights=a),
                     (double(table), double(a)))
    bag = nn.EmbeddingBag(7, 3, mode="max", padding_idx=1)
    assert bag.weight[1].tolist() == [0, 0, 0] and list(bag.state_dict()) == ["weight"]
    assert bag(td.tensor([[1, 1], [2, 3]])).tolist()[0] == [0, 0, 0]
    assert nn.EmbeddingBag.from_pretrained(td.ones(3, 2))(td.tensor([[0, 2]])).tolist() == [[1, 1]]


GRIDS = [(n, mode, padding, align) for n in (2, 3) for mode in ("bilinear", "nearest", "bicubic") if n == 2 or mode != "bicubic"
         for padding in ("zeros", "border", "reflection") for align in (False, True)]


@pytest.mark.parametrize("n, mode, padding, align", GRIDS)
def test_grid_sample(torch, n, mode, padding, align):
    x, grid = draw(2, 3, *(5, 7, 4)[:n]), 1.3 * draw(2, 3, *[4] * (n - 1), n)
    if mode == "nearest":
        compare(torch, lambda m, x: m.nn.functional.grid_sample(x, m.tensor(grid.tolist(), dtype=m.float64), mode, padding, align), x)
    else:
        compare(torch, lambda m, x, g: m.nn.functional.grid_sample(x, g, mode, padding, align), x, grid)


def test_grids_by_hand_and_at_the_edge():
    x = td.arange(0, 12).float().reshape(1, 1, 3, 4)
    same = F.affine_grid(td.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 3, 4), align_corners=False)
    assert F.grid_sample(x, same, align_corners=False).tolist() == x.tolist()
    turned = F.affine_grid(td.tensor([[[0.0, 1, 0], [1, 0, 0]]]), (1, 1, 4, 3), align_corners=True)
    assert F.grid_sample(x, turned, align_corners=True).flatten().tolist() == pytest.approx(x.transpose(2, 3).flatten().tolist())
    edge = td.tensor([[[[-1.0, 1.0]]]], requires_grad=True)
    y = F.grid_sample(x, edge, padding_mode="border", align_corners=True)
    y.sum().backward()
    assert y.item() == 8 and edge.grad.tolist() == [[[[0, 0]]]]
    x[0, 0, 0, 0] = INF     # a number that is not seen does no harm
    assert F.grid_sample(x, td.tensor([[[[1.5, 1.5]]]])).item() == 0
    smooth = double(0.3 * draw(1, 2, 2, 2))
    assert gradgradcheck(lambda x, g: F.grid_sample(x, g, "bicubic", "border"), (double(draw(1, 2, 5, 4)), smooth))


@pytest.mark.parametrize("n", (2, 3))
@pytest.mark.parametrize("align", (False, True))
@pytest.mark.filterwarnings("ignore")
def test_affine_grid(torch, n, align):
    for size in ((2, 3, 5, 7, 4)[:n + 2], (2, 3, 1, 4, 2)[:n + 2]):
        compare(torch, lambda m, theta: m.nn.functional.affine_grid(theta, size, align_corners=align), draw(2, n, n + 1))


@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
@pytest.mark.parametrize("blank", (0, 2))
def test_ctc_loss(torch, reduction, blank):
    letters = [1, 2, 3, 4] if blank == 0 else [0, 1, 3, 4]
    said = numbers.choice(letters, (4, 5))
    said[0, :3] = letters[0]
    times, sizes = (12, 9, 3, 10), (5, 3, 0, 4)
    line = np.concatenate([row[:k] for row, k in zip(said, sizes)])
    for targets in (said, line):
        compare(torch, lambda m, x: m.nn.functional.ctc_loss(
            m.nn.functional.log_softmax(x, -1), m.tensor(targets.tolist()), times, sizes, blank, reduction), draw(12, 4, 5))


def test_an_empty_batch_is_read_at_no_place_and_packed_rows_say_where_they_are():
    for n, c in (0, 2), (2, 0):
        x = td.ones(n, c, 3, 3, requires_grad=True)
        y = F.grid_sample(x, td.zeros(n, 4, 5, 2))
        y.sum().backward()
        assert y.shape == (n, c, 4, 5) and x.grad.shape == x.shape
    with pytest.raises(RuntimeError, match="with pixels"):
        F.grid_sample(td.ones(2, 2, 0, 3), td.zeros(2, 4, 5, 2))
    assert nn.utils.rnn.pack_padded_sequence(td.ones(3, 1, 1), [3]).is_cuda is False


@pytest.mark.parametrize("infinite", [False, True])
def test_ctc_loss_in_no_time_and_of_blanks(torch, infinite):
    x, line = draw(5, 3, 4), {"reduction": "none", "zero_infinity": infinite}
    some = double(x).requires_grad_()
    none, _, never = y = F.ctc_loss(some.log_softmax(2), td.tensor([[1, 2]] * 3), [0, 5, 0], [0, 2, 2], **line)
    y.sum().backward()
    assert none.item() == 0 and never.item() == (0 if infinite else INF)
    assert some.grad[:, [0, 2]].abs().max().item() == 0 < some.grad[:, 1].abs().min().item()
    for word in [1, 0], [0, 1], [0, 0], [3, 0]:         # PyTorch's gradients are not the slopes of its values there
        ours, theirs = (m.nn.functional.ctc_loss(m.tensor(x.tolist()).log_softmax(2), m.tensor([word] * 3), [5, 2, 3], [2] * 3, **line)
                        for m in (td, torch))
        assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-5)
        assert gradcheck(lambda x: F.ctc_loss(x.log_softmax(-1), td.tensor([word]), [4], [2]), (double(draw(4, 1, 4)),))


def test_ctc_by_all_paths():
    """Minus the logarithm of the sum over all paths that say the word."""
    x = double(draw(4, 1, 3)).log_softmax(-1).detach()
    for word in ([1], [1, 2], [1, 1], [], [2, 1, 2], [1, 1, 1]):
        total = 0.0
        for path in np.ndindex(3, 3, 3, 3):
            said = [c for i, c in enumerate(path) if c and (i == 0 or path[i - 1] != c)]
            if said == word:
                total += np.exp(sum(x[t, 0, c].item() for t, c in enumerate(path)))
        loss = F.ctc_loss(x, td.tensor([word or [0]]), [4], [len(word)], reduction="sum")
        assert loss.item() == (pytest.approx(-np.log(total)) if total else INF)


def test_ctc_of_what_cannot_be_said(torch):
    said, x = [[1] * 4] * 2, draw(9, 2, 3)
    compare(torch, lambda m, x: m.nn.functional.ctc_loss(
        m.nn.functional.log_softmax(x, -1), m.tensor(said), (5, 9), (4, 4), 0, "sum", True), x)
    loss = nn.CTCLoss(reduction="none")(double(x).log_softmax(-1), td.tensor(said), (5, 9), (4, 4))
    assert loss[0].item() == INF and loss[1].item() < INF
    alone = F.ctc_loss(double(x[:, 0]).log_softmax(-1), td.tensor([1, 2]), 9, 2, reduction="none")
    assert alone.shape == ()
    assert gradgradcheck(lambda x: F.ctc_loss(x.log_softmax(-1), td.tensor([[1, 1]]), [4], [2]), (double(draw(4, 1, 3)),))


BAD = [
    (lambda: F.conv3d(td.ones(1, 3, 4, 4, 4), td.ones(2, 2, 2, 2, 2)), RuntimeError, "does not go with weight"),
    (lambda: F.conv3d(td.ones(3, 4, 4), td.ones(2, 3, 2, 2, 2)), RuntimeError, "conv3d: expected an input of 5"),
    (lambda: F.conv3d(td.ones(1, 3, 1, 4, 4), td.ones(2, 3, 2, 2, 2)), RuntimeError, "room for at least one window"),
    (lambda: F.conv_transpose3d(td.ones(1, 3, 4, 4, 4), td.ones(3, 2, 2, 2, 2), output_padding=1), RuntimeError, "."),
    (lambda: F.max_pool3d(td.ones(3, 4, 4), 2), RuntimeError, "expected 4 or 5 dimensions"),
    (lambda: F.max_unpool2d(td.ones(1, 2, 2), td.ones(1, 2, 3, dtype=td.int64), 2), RuntimeError, "indices of the same shape"),
    (lambda: F.max_unpool2d(td.ones(1, 2, 2), td.zeros(1, 2, 2, dtype=td.int64), 2, output_size=(9, 9)), ValueError, "output_size"),
    (lambda: F.max_unpool1d(td.ones(1, 2), td.tensor([[0, 9]]), 2), (RuntimeError, IndexError), "9"),
    (lambda: F.embedding_bag(td.tensor([0]), td.ones(2, 2), td.tensor([0]), mode="min"), ValueError, "mode must be"),
    (lambda: F.embedding_bag(td.tensor([0]), td.ones(2, 2)), ValueError, "offsets None"),
    (lambda: F.embedding_bag(td.tensor([0, 1]), td.ones(2, 2), td.tensor([1, 2])), ValueError, r"got \[1, 2\]"),
    (lambda: F.embedding_bag(td.tensor([0, 1]), td.ones(2, 2), td.tensor([0, 3])), ValueError, "at most the 2 indices"),
    (lambda: F.embedding_bag(td.tensor([0, 1]), td.ones(2, 2), td.tensor([0, 1]), include_last_offset=True), ValueError, "exactly"),
    (lambda: F.embedding_bag(td.tensor([[0, 1]]), td.ones(2, 2), per_sample_weights=td.ones(1, 2)), ValueError, "need mode='sum'"),
    (lambda: F.embedding_bag(td.tensor([[0, 2]]), td.ones(2, 2)), IndexError, "2"),
    (lambda: F.grid_sample(td.ones(1, 1, 2, 2), td.ones(1, 2, 2, 3)), RuntimeError, r"got \[1, 1, 2, 2\]"),
    (lambda: F.grid_sample(td.ones(1, 1, 2, 2), td.ones(2, 2, 2, 2)), RuntimeError, "grid_sample: expected"),
    (lambda: F.grid_sample(td.ones(1, 1, 2, 2), td.ones(1, 2, 2, 2, dtype=td.float64)), RuntimeError, "of treadle.float64"),
    (lambda: F.grid_sample(td.ones(1, 1, 2, 2), td.ones(1, 2, 2, 2), "linear"), ValueError, "'linear'"),
    (lambda: F.grid_sample(td.ones(1, 1, 2, 2, 2), td.ones(1, 2, 2, 2, 3), "bicubic"), ValueError, "for pictures"),
    (lambda: F.affine_grid(td.ones(1, 2, 2), (1, 1, 2, 2)), ValueError, r"got \[1, 2, 2\]"),
    (lambda: F.affine_grid(td.ones(1, 2, 3), (1, 1, 0, 2)), ValueError, "affine_grid: expected"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2), td.tensor([[1]]), [4], [1]), ValueError, "from 0 to 3"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2), td.tensor([[1]]), [-1], [1]), ValueError, "from 0 to 3"),
    (lambda: F.ctc_loss(td.zeros(0, 1, 2), td.tensor([[1]]), [0], [1]), ValueError, "from 0 to 0"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2, dtype=td.float16), td.tensor([[1]]), [3], [1]), ValueError, "float32 or float64"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2, dtype=td.bfloat16), td.tensor([[1]]), [3], [1]), ValueError, "float32 or float64"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2), td.tensor([[1]]), [3], [2]), ValueError, r"got \[3\] and \[2\]"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2), td.tensor([[1]]), [3], [1], 2), ValueError, "blank below"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2), td.tensor([[1]]), [3], [1], 0, "max"), ValueError, "'max'"),
    (lambda: F.ctc_loss(td.zeros(3, 1, 2), td.tensor([[5]]), [3], [1]), IndexError, "5"),
    (lambda: td.optim.LBFGS([td.zeros(1, requires_grad=True)], line_search_fn="golden"), ValueError, "'golden'"),
    (lambda: td.optim.LBFGS([{"params": [td.zeros(1)]}, {"params": [td.zeros(1)]}]), ValueError, "one group, got 2"),
    (lambda: td.optim.Adadelta([td.zeros(1)], rho=1.0), ValueError, "rho"),
    (lambda: nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0), ValueError, "positive, got 0"),
    (lambda: nn.utils.rnn.pack_padded_sequence(td.ones(3, 2, 1), [1, 3]), RuntimeError, r"lengths must fall.*\[1, 3\]"),
    (lambda: nn.utils.rnn.pack_padded_sequence(td.ones(3, 2, 1), [4, 1]), ValueError, "from 1 to 3"),
    (lambda: nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_padded_sequence(td.ones(3, 1, 1), [3]), total_length=2),
     ValueError, "total_length 2"),
    (lambda: nn.GRU(2, 3)(nn.utils.rnn.pack_padded_sequence(td.ones(3, 1, 1), [3])), RuntimeError, "packed rows of 2 numbers"),
    (lambda: nn.LSTM(1, 3)(nn.utils.rnn.pack_padded_sequence(td.ones(3, 1, 1), [3]), (td.ones(1, 2, 3),) * 2), RuntimeError, "states"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_refused(number, no_leaks):
    call, error, message = BAD[number]
    with pytest.raises(error, match=message):
        call()


# --- optimisers, schedules, weights and sequences ---------------------------------------------

@pytest.mark.parametrize("name, options", [
    ("Adadelta", {"lr": 0.7, "rho": 0.8, "weight_decay": 0.01}), ("Adadelta", {"maximize": True}),
    ("LBFGS", {"lr": 0.5}), ("LBFGS", {"line_search_fn": "strong_wolfe"}), ("LBFGS", {"max_iter": 4, "history_size": 0}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 7})])
def test_steps_are_those_of_pytorch(torch, name, options):
    seen = []
    if name == "LBFGS" and options.get("history_size") == 0:
        options = {**options, "history_size": 1}
    for m in (td, torch):
        p = m.tensor([-1.2, 1.0], dtype=m.float64, requires_grad=True)
        q = m.tensor([[0.3]], dtype=m.float64, requires_grad=True)
        optimiser = getattr(m.optim, name)([p, q], **options)

        def closure():
            optimiser.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] * p[0]) ** 2 + (q ** 4).sum()
            loss.backward()
            return loss
        losses = [float(optimiser.step(closure)) for _ in range(6)]
        evaluations = [optimiser.state[p]["func_evals"]] if name == "LBFGS" else []
        seen.append(losses + evaluations + p.tolist() + q.tolist()[0])
    np.testing.assert_allclose(*seen, rtol=1e-7, atol=1e-12)


def test_long_steps_reach_the_bottom_and_resume():
    def fit(rounds, state=None, start=(-1.2, 1.0)):
        p = td.tensor(start, dtype=td.float64, requires_grad=True)
        optimiser = td.optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=5)
        if state is not None:
            optimiser.load_state_dict(state)

        def closure():
            optimiser.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            loss.backward()
            return loss
        for _ in range(rounds):
            optimiser.step(closure)
        return p.tolist(), copy.deepcopy(optimiser.state_dict())
    whole, _ = fit(20)
    assert whole == pytest.approx([1, 1], abs=1e-4)
    half, state = fit(3)
    state = pickle.loads(pickle.dumps(state))
    assert fit(17, state, half)[0] == whole


def test_warm_stable_decay():
    p = td.zeros(1, requires_grad=True)
    optimiser = td.optim.SGD([p], lr=2.0)
    schedule = td.optim.lr_scheduler.WSD(optimiser, 4, 3, 4, min_lr_ratio=0.5)
    rates = []
    for _ in range(14):
        rates.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    assert rates == pytest.approx([0.5, 1, 1.5, 2, 2, 2, 2, 2, 1.75, 1.5, 1.25, 1, 1, 1])
    assert td.optim.lr_scheduler.WSD(optimiser, 0, 1, 0)._part(5) == 0


def test_spectral_norm(torch):
    for name, sizes in (("Conv2d", (3, 4, 2)), ("ConvTranspose2d", (3, 4, 2)), ("Linear", (5, 3))):
        ours = nn.utils.spectral_norm(getattr(nn, name)(*sizes, dtype=td.float64), n_power_iterations=2)
        theirs = torch.nn.utils.spectral_norm(getattr(torch.nn, name)(*sizes, dtype=torch.float64), n_power_iterations=2)
        state = {k: torch.tensor(v.tolist(), dtype=torch.float64) for k, v in ours.state_dict().items()}
        assert sorted(state) == sorted(theirs.state_dict())
        theirs.load_state_dict({**theirs.state_dict(), **state})
        for training in (True, False):
            ours.train(training), theirs.train(training)
            compare(torch, lambda m, x: (ours if m is td else theirs)(x), draw(2, *((3, 5, 5) if len(sizes) == 3 else (5,))))
        np.testing.assert_allclose(ours.weight_orig.grad.tolist(), theirs.weight_orig.grad.tolist(), rtol=1e-9)
        np.testing.assert_allclose(ours.weight_u.tolist(), theirs.weight_u.tolist(), rtol=1e-9)


@pytest.mark.parametrize("kind", ("RNN", "LSTM", "GRU"))
@pytest.mark.parametrize("sides", (1, 2))
@pytest.mark.parametrize("lengths", ([5, 3, 3, 1], [3, 5, 1, 3]))
def test_packed_sequences(torch, kind, sides, lengths):
    ours, theirs = (getattr(m.nn, kind)(3, 4, 2, bidirectional=sides == 2, dtype=m.float64) for m in (td, torch))
    theirs.load_state_dict({k: torch.tensor(v.tolist(), dtype=torch.float64) for k, v in ours.state_dict().items()})
    fall = lengths == sorted(lengths, reverse=True)

    def read(m, x, h, c):
        packing = m.nn.utils.rnn
        packed = packing.pack_padded_sequence(x, lengths, enforce_sorted=fall)
        y, state = (ours if m is td else theirs)(packed, (h, c) if kind == "LSTM" else h)
        y, sizes = packing.pad_packed_sequence(y, padding_value=7.0, total_length=6)
        assert sizes.tolist() == lengths
        return m.cat([y.flatten(), *(s.flatten() for s in (state if kind == "LSTM" else [state]))]), packed.data, packed.batch_sizes
    compare(torch, read, draw(5, 4, 3), draw(2 * sides, 4, 4), draw(2 * sides, 4, 4))


def test_packed_rows_by_hand():
    packing = nn.utils.rnn
    packed = packing.pack_sequence([td.tensor([5.0]), td.tensor([1.0, 2, 3]), td.tensor([4.0])], enforce_sorted=False)
    assert packed.data.tolist() == [1, 5, 4, 2, 3] and packed.batch_sizes.tolist() == [3, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2] and packed.unsorted_indices.tolist() == [1, 0, 2]
    padded, lengths = packing.pad_packed_sequence(packed, batch_first=True)
    assert padded.tolist() == [[5, 0, 0], [1, 2, 3], [4, 0, 0]] and lengths.tolist() == [1, 3, 1]
    assert packed.to(td.float64).data.dtype is td.float64
    # alone, a sequence is read as it is within a batch
    net, x = nn.LSTM(2, 3, 2, bidirectional=True, batch_first=True), td.randn(2, 4, 2)
    y, (h, c) = net(packing.pack_padded_sequence(x, [4, 2], batch_first=True))
    y, _ = packing.pad_packed_sequence(y, batch_first=True)
    short, (h2, c2) = net(x[1:, :2])
    np.testing.assert_allclose(y[1:, :2].tolist(), short.tolist(), rtol=1e-6)
    np.testing.assert_allclose(h[:, 1:].tolist(), h2.tolist(), rtol=1e-6)
    np.testing.assert_allclose(c[:, 1:].tolist(), c2.tolist(), rtol=1e-6)


def test_nearest_places_have_a_gradient_of_zero(torch):
    for mode in ("zeros", "border", "reflection"):
        compare(torch, lambda m, x, g: m.nn.functional.grid_sample(x, g, "nearest", mode, align_corners=False),
                draw(2, 3, 4, 5), numbers.uniform(-1.3, 1.3, (2, 3, 2, 2)))
    g = td.full((1, 1, 1, 2), INF, requires_grad=True)
    F.grid_sample(td.ones(1, 1, 2, 2), g, "nearest").sum().backward()
    assert g.grad.tolist() == [[[[0, 0]]]]


def test_what_cannot_be_said_has_no_slope(torch):
    for times, sizes, targets in (([6, 6], [3, 3], [[1, 1, 1], [1, 2, 3]]), ([4, 6], [3, 2], [[1, 1, 1], [1, 2, 3]]),
                                  ([2, 3], [3, 1], [[3, 1, 2], [1, 0, 0]])):
        for zero in (False, True):
            for reduction in ("none", "mean", "sum"):
                def grad(m):
                    x = m.arange(48, dtype=m.float64).reshape(6, 2, 4).sin().requires_grad_()
                    loss = m.nn.functional.ctc_loss(x.log_softmax(-1), m.tensor(targets), m.tensor(times), m.tensor(sizes),
                                                    reduction=reduction, zero_infinity=zero)
                    loss.sum().backward()
                    return loss.tolist(), x.grad.tolist()
                for ours, theirs in zip(grad(td), grad(torch)):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    x = td.full((2, 1, 3), -INF, requires_grad=True)
    assert F.ctc_loss(x, td.tensor([[1, 1]]), td.tensor([2]), td.tensor([2])).item() == INF


def test_weights_are_computed_once_and_given_back(torch):
    for name in ("weight_norm", "spectral_norm"):
        put, remove = getattr(nn.utils, name), getattr(nn.utils, "remove_" + name)
        layer = put(nn.Linear(4, 3))
        with pytest.raises(RuntimeError, match=f"Cannot register two {name} hooks on the same parameter weight"):
            put(layer)
        with pytest.raises(KeyError, match="weight"):
            getattr(nn.utils, {"weight_norm": "spectral_norm"}.get(name, "weight_norm"))(layer)
        put(layer, "bias") if name == "weight_norm" else None
        layer.eval()
        x = td.randn(2, 4)
        y = layer(x)
        assert remove(layer) is layer and type(layer.weight) is nn.Parameter and td.equal(layer(x), y)
        assert name == "weight_norm" or [*layer.state_dict()] == [*nn.Linear(4, 3).state_dict()][::-1]
        with pytest.raises(ValueError, match=f"{name} of 'weight' is not in Linear"):
            remove(layer)
        assert put(layer) is layer and td.allclose(layer(x), y, atol=1e-5) or name == "spectral_norm"


def test_sequences_come_back(torch):
    rows = [draw(n, 2) for n in (2, 4, 1)]

    def both(m):
        rnn, x = m.nn.utils.rnn, [m.tensor(row.tolist()) for row in rows]
        found = [rnn.pad_sequence(x, side, 7.0, padding_side=end) for side in (True, False) for end in ("left", "right")]
        found += rnn.unpad_sequence(rnn.pad_sequence(x), m.tensor([2, 4, 1])) + rnn.unpack_sequence(rnn.pack_sequence(x, False))
        found += rnn.unpad_sequence(rnn.pad_sequence(x, True), m.tensor([2, 4, 1]), batch_first=True)
        return [y.tolist() for y in found]
    if hasattr(torch.nn.utils.rnn, "unpack_sequence") and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15):
        assert both(td) == both(torch)
    assert both(td)[-1] == td.tensor(rows[2].tolist()).tolist()
    with pytest.raises(ValueError, match="padding_side must be 'left' or 'right', got 'top'"):
        nn.utils.rnn.pad_sequence([td.ones(2)], padding_side="top")
