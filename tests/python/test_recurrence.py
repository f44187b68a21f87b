# needs: recurrence layers
"""Cells, sequences and their modules, against NumPy, PyTorch and differences."""
import itertools
import warnings

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import gradcheck, gradgradcheck

BLOCKS = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


def array(*shape, start=0.0):
    """Numbers that a formula gives, the same in every library."""
    n = int(np.prod(shape))
    return (0.8 * np.sin(start + 1.7 * np.arange(n))).reshape(shape)


def tensor(a, grad=False):
    return td.from_numpy(np.array(a, dtype="float64")).requires_grad_(grad)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(name, x, state, w_ih, w_hh, b_ih=0.0, b_hh=0.0):
    """One step in NumPy, from the formulas of the papers."""
    h = state[0]
    a, u = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if name == "rnn_tanh":
        return [np.tanh(a + u)]
    if name == "rnn_relu":
        return [np.maximum(a + u, 0)]
    if name == "lstm":
        i, f, g, o = np.split(a + u, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]
    (ar, az, an), (ur, uz, un) = np.split(a, 3, -1), np.split(u, 3, -1)
    r, z = sigmoid(ar + ur), sigmoid(az + uz)
    return [(1 - z) * np.tanh(an + r * un) + z * h]


def unrolled(name, x, first, weights, per, sides):
    """The whole sequence, [T, N, n], in NumPy."""
    last = []
    for k in range(0, len(weights) // per, sides):
        read = []
        for side in range(sides):
            w = weights[(k + side) * per:(k + side + 1) * per]
            state, out = [s[k + side] for s in first], []
            for row in x[::-1] if side else x:
                state = step(name, row, state, *w)
                out.append(state[0])
            read.append(np.stack(out[::-1] if side else out))
            last.append(state)
        x = np.concatenate(read, -1)
    return [x, *(np.stack(s) for s in zip(*last))]


def shapes(name, n, m, layers, sides, bias):
    rows = BLOCKS[name] * m
    for layer in range(layers):
        for _ in range(sides):
            yield rows, m * sides if layer else n
            yield rows, m
            if bias:
                yield rows,
                yield rows,


@pytest.mark.parametrize("name", BLOCKS)
def test_a_cell_is_its_formula(name):
    for bias in (0, 2):
        rows = BLOCKS[name] * 3
        w = [array(rows, 2, start=1), array(rows, 3, start=2),
             array(rows, start=3), array(rows, start=4)][:2 + bias]
        x, state = array(5, 2), [array(5, 3, start=5), array(5, 3, start=6)]
        pair = name == "lstm"
        hx = [tensor(s) for s in state]
        got = getattr(td, name + "_cell")(
            tensor(x), hx if pair else hx[0], *map(tensor, w))
        assert isinstance(got, tuple) == pair
        for ours, theirs in zip(got if pair else [got],
                                step(name, x, state, *w)):
            np.testing.assert_allclose(ours.numpy(), theirs, 1e-12, 1e-13)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_sequence_is_its_steps(name):
    for layers, sides, bias, turned, batch, steps in itertools.product(
            (1, 3), (1, 2), (0, 1), (0, 1), (3, 0), (1, 4)):
        x = array(steps, batch, 2)
        w = [array(*s, start=k) for k, s in enumerate(
            shapes(name, 2, 5, layers, sides, bias))]
        first = [array(layers * sides, batch, 5, start=7 + k)
                 for k in range(2 if name == "lstm" else 1)]
        hx = [tensor(s) for s in first]
        got = getattr(td, name)(
            tensor(x.swapaxes(0, 1) if turned else x),
            hx if name == "lstm" else hx[0], [tensor(a) for a in w],
            bool(bias), layers, 0.0, True, sides == 2, bool(turned))
        want = unrolled(name, x, first, w, 2 + 2 * bias, sides)
        want[0] = want[0].swapaxes(0, 1) if turned else want[0]
        assert len(got) == len(want)
        for ours, theirs in zip(got, want):
            np.testing.assert_allclose(ours.numpy(), theirs, 1e-11, 1e-12)


@pytest.mark.parametrize("name", BLOCKS)
def test_derivatives(name):
    w = [tensor(array(*s, start=k), True)
         for k, s in enumerate(shapes(name, 2, 2, 1, 1, True))]
    x = tensor(array(2, 2, start=9), True)
    h = [tensor(array(2, 2, start=10 + k), True)
         for k in range(2 if name == "lstm" else 1)]

    def cell(x, *rest):
        hx = rest[:len(h)]
        return getattr(td, name + "_cell")(
            x, hx if name == "lstm" else hx[0], *rest[len(h):])
    assert gradcheck(cell, (x, *h, *w)) and gradgradcheck(cell, (x, *h, *w))

    def sequence(x, *w):
        first = [s.detach().reshape(2, 1, 2) for s in h]
        return getattr(td, name)(
            x.reshape(2, 1, 2), first if name == "lstm" else first[0], w,
            False, 1, 0.0, False, True, False)
    both = [tensor(array(*s, start=2 * k), True)
            for k, s in enumerate(shapes(name, 2, 2, 1, 2, False))]
    assert gradcheck(sequence, (x, *both))
    assert gradgradcheck(sequence, (x, *both[:1], *(
        b.detach() for b in both[1:])))


# what PyTorch 1.13 answers for two layers in both directions: the sums of
# outputs and last states, and of the gradient of the input, of cos(index)
GOLDEN = {
    "RNN": ([-3.5875734, -1.58521166, 6.32993455],
            [2.53716535, 2.15006779, -2.532851]),
    "LSTM": ([-0.92152189, 0.1063168, -0.03347874, -5.67046696],
            [-0.88640297, -0.84044045, -2.92747532, -0.24080768]),
    "GRU": ([-1.26867307, 0.20447269, -2.90685817],
            [-1.3272689, -4.80327132, 0.73783287]),
}


def filled(net):
    with td.no_grad():
        for k, p in enumerate(net.double().parameters()):
            p.copy_(tensor(array(*p.shape, start=k)))
    return net


@pytest.mark.parametrize("kind", GOLDEN)
def test_modules_answer_as_pytorch(kind):
    for turned, want in zip((False, True), GOLDEN[kind]):
        net = filled(getattr(nn, kind)(3, 4, 2, bidirectional=True,
                                       batch_first=turned))
        x = tensor(array(5, 2, 3), True)
        out, last = net(x)
        last = last if kind == "LSTM" else (last,)
        weigh = [(y * td.cos(td.arange(y.numel(), dtype=td.float64))
                  .reshape(y.shape)).sum() for y in (out, *last)]
        sum(weigh[1:], weigh[0]).backward()
        weigh.append((x.grad * td.cos(td.arange(30.0, dtype=td.float64))
                      .reshape(5, 2, 3)).sum())
        np.testing.assert_allclose([w.item() for w in weigh], want, 1e-6)


def test_names_shapes_and_first_values():
    net = nn.LSTM(3, 4, 2, bidirectional=True)
    ends = ["l0", "l0_reverse", "l1", "l1_reverse"]
    assert list(net.state_dict()) == [
        f"{w}_{e}" for e in ends
        for w in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    assert net.weight_ih_l1_reverse.shape == (16, 8)
    assert [len(w) for w in net.all_weights] == [4] * 4
    assert list(nn.GRUCell(3, 4, bias=False).state_dict()) == [
        "weight_ih", "weight_hh"]
    for p in nn.GRU(50, 25).parameters():
        assert 0.15 < p.abs().max().item() <= 0.2
    assert repr(nn.LSTM(3, 4, 2, dropout=0.5)) \
        == "LSTM(3, 4, num_layers=2, dropout=0.5)"
    assert repr(nn.RNNCell(3, 4, nonlinearity="relu")) \
        == "RNNCell(3, 4, nonlinearity=relu)"
    assert isinstance(net, nn.RNNBase) and net.mode == "LSTM"
    net.flatten_parameters()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_sequence_alone_and_continued(kind):
    net = filled(getattr(nn, kind)(3, 4, 2))
    x = tensor(array(6, 3))
    whole, end = net(x)
    batch, _ = net(x.unsqueeze(1))
    assert whole.shape == (6, 4)
    np.testing.assert_allclose(whole.detach().numpy(),
                               batch.squeeze(1).detach().numpy(), 1e-12)
    first, state = net(x[:2])
    second, last = net(x[2:], state)
    np.testing.assert_allclose(td.cat([first, second]).detach().numpy(),
                               whole.detach().numpy(), 1e-12)
    for a, b in zip(*((s if kind == "LSTM" else [s]) for s in (end, last))):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(),
                                   1e-12)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_cells_step_as_sequences_do(kind):
    net, cell = filled(getattr(nn, kind)(3, 4)), getattr(
        nn, kind + "Cell")(3, 4).double()
    cell.load_state_dict({k[:-3]: v for k, v in net.state_dict().items()})
    x, state, seen = tensor(array(5, 2, 3)), None, []
    for row in x:
        state = cell(row, state)
        seen.append(state[0] if kind == "LSTM" else state)
    np.testing.assert_allclose(td.stack(seen).detach().numpy(),
                               net(x)[0].detach().numpy(), 1e-12)
    alone = cell(x[0, 0])
    assert (alone[0] if kind == "LSTM" else alone).shape == (4,)


def gradients(net, x, passes, hold=lambda kept: kept):
    """Of all weights, the input, and the states, after so many passes over one graph."""
    net.zero_grad()
    x = x.detach().requires_grad_()
    with td.autograd.graph.saved_tensors_hooks(hold, lambda kept: kept):
        y, last = net(x)
    loss = sum((r * td.arange(r.numel(), dtype=r.dtype).reshape(r.shape).cos()).sum()
               for r in (y, *(last if isinstance(last, tuple) else (last,))))
    for n in range(passes):
        for p in (x, *net.parameters()):
            p.grad = None
        loss.backward(retain_graph=n + 1 < passes)
    return [x.grad, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("options", [{}, {"bias": False, "bidirectional": True}, {"num_layers": 2, "batch_first": True}])
def test_gates_are_written_over_only_where_nobody_looks_again(kind, options):
    td.manual_seed(5)
    net, x = getattr(nn, kind)(3, 5, **options), td.randn(4, 17, 3)
    once = gradients(net, x, 1)
    assert all(map(td.equal, once, gradients(net, x, 3)))
    held, before = [], []

    def hold(kept):
        held.append(kept)
        before.append(kept.clone())
        return kept
    assert all(map(td.equal, once, gradients(net, x, 1, hold)))
    assert len(held) > 4 and all(map(td.equal, held, before))
    threads = td.get_num_threads()
    try:
        for n in (1, 2, 3):
            td.set_num_threads(n)
            assert all(map(td.equal, once, gradients(net, x, 1)))
    finally:
        td.set_num_threads(threads)


def test_a_step_back_refuses_gaps():
    z = td.zeros
    gates, dh, w, h = z(2, 1, 8, dtype=td.int32), z(1, 2), z(6, 2), z(2, 1, 2)
    td._C.gated_backward_(gates, dh, None, w, dh, None, h, h, False)
    with pytest.raises(RuntimeError, match="without gaps"):
        td._C.gated_backward_(z(2, 1, 16, dtype=td.int32)[..., ::2], dh, None, w, dh, None, h, h, False)
    with pytest.raises(RuntimeError, match="do not fit"):
        td._C.gated_backward_(gates, dh, dh, w, dh, None, h, h, False)


def test_dropout_between_layers_only_in_training():
    net = nn.GRU(3, 8, 2, dropout=0.5)
    x = td.randn(4, 2, 3)
    assert not td.equal(net(x)[0], net(x)[0])
    net.eval()
    assert td.equal(net(x)[0], net(x)[0])
    net.dropout = 1.0
    net.train()
    y = net(x)[0]
    net.eval()
    assert not td.equal(net(x)[0], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="between layers"):
            nn.GRU(3, 4, dropout=0.1)


def test_a_long_sequence_goes_backward_in_time_linear_in_its_length():
    x = td.randn(3000, 1, 4, requires_grad=True)
    net = nn.LSTM(4, 8)
    net(x)[0].sum().backward()
    assert x.grad.isfinite().all().item()
    assert (x.grad != 0).any(-1).all().item()


def test_parts_add_into_one_gradient():
    """x[t] in a loop: the same as one cut, with the graph or without."""
    a = array(4, 3)
    for create in (False, True):
        x = tensor(a, True)
        parts = [x[0], x[2], x[2], x[:, 1], x[1:3]]
        loss = sum((p * p * (k + 1)).sum() for k, p in enumerate(parts))
        loss.backward(create_graph=create)
        want = np.zeros((4, 3))
        want[0] += 2 * a[0]
        want[2] += 4 * a[2] + 6 * a[2]
        want[:, 1] += 8 * a[:, 1]
        want[1:3] += 10 * a[1:3]
        np.testing.assert_allclose(x.grad.detach().numpy(), want, 1e-14)
    held = []
    x = tensor(a, True)
    y = x * 1
    y.register_hook(lambda g: held.append(g.clone()))
    (y[0].sum() + y[1].sum() * 2 + y.sum()).backward()
    want = np.ones((4, 3))
    want[0] += 1
    want[1] += 2
    assert (held[0].numpy() == want).all()
    seed = td.ones(3, dtype=td.float64)
    x = tensor(a, True)
    z = x * 1
    td.autograd.backward([z, z[0]], [td.ones(4, 3, dtype=td.float64), seed])
    assert (seed.numpy() == 1).all() and x.grad[0, 0].item() == 2


W = [(16, 3), (16, 4), (16,), (16,)]
X, H = (5, 2, 3), (1, 2, 4)
ARGS = (True, 1, 0.0, False, False, False)


@pytest.mark.parametrize("x, h, c, w, args, words", [
    ((5, 3), H, H, W, ARGS, r"input has shape \[5, 3\], expected \[-1, -1, -1\] \(-1: any\)"),
    ((0, 2, 3), H, H, W, ARGS, "at least one step"),
    ((5, 2, 4), H, H, W, ARGS, "w_ih"),
    (X, (2, 2, 4), H, W, ARGS, "hx"),
    (X, H, (1, 3, 4), W, ARGS, "cx"),
    (X, H, None, W, ARGS, "two tensors"),
    (X, H, H, W[:3], ARGS, "3 tensors, expected 4"),
    (X, H, H, [], ARGS, "0 tensors"),
    (X, H, H, [(16, 3), (16, 4), (15,), (16,)], ARGS, "b_ih"),
    (X, H, H, [(16, 3), (12, 4), (16,), (16,)], ARGS, "w_hh"),
    (X, H, H, [(16, 3), (16,), (16,), (16,)], ARGS, "w_hh"),
    (X, H, H, W, (True, 10 ** 12, 0.0, False, False, False), "layers"),
    (X, H, H, W, (True, 0, 0.0, False, False, False), "layers"),
    (X, H, H, W, (True, 1, 0.0, False, True, False), "directions"),
    (X, H, H, W, (False, 1, 0.0, False, False, False), "expected 2"),
])
def test_what_does_not_fit_is_named(x, h, c, w, args, words):
    zeros = [td.zeros(s) for s in (h, c) if s is not None]
    with pytest.raises(RuntimeError, match="lstm: .*" + words):
        td.lstm(td.zeros(x), zeros, [td.zeros(s) for s in w], *args)


def test_bad_input_of_cells_and_modules():
    z = td.zeros
    for x, h, w in ((z(2, 3), z(3, 4), W), (z(3), z(4), W),
                    (z(2, 2), z(2, 4), W), (z(2, 3), z(2, 4), W[::-1])):
        with pytest.raises(RuntimeError, match="lstm_cell: "):
            td.lstm_cell(x, [h, h], *(z(s) for s in w))
    with pytest.raises(RuntimeError, match="gru_cell: .*int64"):
        td.gru_cell(z(2, 3, dtype=td.int64), z(2, 4), z(12, 3), z(12, 4))
    with pytest.raises(RuntimeError, match="float"):
        nn.GRU(3, 4)(z(5, 2, 3, dtype=td.float64))
    for make in (lambda: nn.RNN(3, 4, nonlinearity="sin"),
                 lambda: nn.RNNCell(3, 4, nonlinearity="sin"),
                 lambda: nn.GRU(3, 0), lambda: nn.GRU(3, 4, 0),
                 lambda: nn.GRU(3, 4, 2, dropout=1.5),
                 lambda: nn.GRU(3, 4, 2, dropout=True)):
        with pytest.raises(ValueError):
            make()
    with pytest.raises(NotImplementedError, match="proj_size"):
        nn.LSTM(3, 4, proj_size=2)
    with pytest.raises(TypeError, match="packed"):
        nn.LSTM(3, 4)([td.zeros(3)])
    with pytest.raises(RuntimeError):
        nn.LSTM(3, 4)(z(5, 2, 3, 1))
    with pytest.raises(RuntimeError):
        nn.GRU(3, 4)(z(5, 3), z(1, 1, 4))


def test_a_nan_stays_in_its_row_and_its_future():
    x = td.zeros(4, 2, 3)
    x[1, 0, 0] = float("nan")
    y = nn.GRU(3, 4)(x)[0].isnan()
    assert not y[0].any().item() and y[1:, 0].all().item()
    assert not y[:, 1].any().item()


def test_an_lstm_learns_to_remember():
    """The sign of the first of twelve numbers, noise behind it."""
    td.manual_seed(2)
    net, out = nn.LSTM(1, 12), nn.Linear(12, 1)
    with td.no_grad():
        net.bias_ih_l0[12:24] = 2.0
    weights = [*net.parameters(), *out.parameters()]
    opt, losses = td.optim.SGD(weights, lr=0.1, momentum=0.9), []
    for _ in range(400):
        x = td.randn(12, 32, 1)
        target = (x[0] > 0).float()
        opt.zero_grad()
        loss = ((out(net(x)[1][0][0]) - target) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert sum(losses[-20:]) / 20 < 0.12        # who does not remember has 0.25


def test_a_compiled_training_step_equals_an_eager_one():
    losses = []
    for wrap in (lambda f: f, td.jit):
        td.manual_seed(0)
        net, out = nn.GRU(3, 4), nn.Linear(4, 1)
        x, y = td.randn(3, 2, 3), td.randn(3, 2, 1)
        opt = td.optim.SGD([*net.parameters(), *out.parameters()], lr=0.1)

        def step(x, y):
            opt.zero_grad()
            loss = nn.functional.mse_loss(out(net(x)[0]), y)
            loss.backward()
            opt.step()
            return loss
        step = wrap(step)
        losses.append([step(x, y).item() for _ in range(4)])
    np.testing.assert_allclose(*losses, 1e-5)
    assert losses[0][3] < losses[0][0]
