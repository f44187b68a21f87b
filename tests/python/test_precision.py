# needs: precision
# SPDX-License-Identifier: MIT
"""Sixteen bits over all operators, autocast beside PyTorch's, scaler, master weights, rounding by chance."""
import copy
import threading
import warnings

import pytest
import treadle as td
from treadle import nn
from registry_cases import OPERATORS, REFUSALS, arguments

F = nn.functional
HALVES = [td.bfloat16, td.float16]
ROUNDING = {td.bfloat16: 2.0**-8, td.float16: 2.0**-11}
UNDEFINED = {"empty_like", "view_dtype", "gated_backward_"}    # what memory held; other numbers in other bits



@pytest.fixture
def torch():
    return pytest.importorskip("torch", "2.4", reason="a current PyTorch is not installed: make deps-peers")


def tensors(x):
    if isinstance(x, td.Tensor):
        return [x]
    return [y for part in x for y in tensors(part)] if isinstance(x, (list, tuple)) else []


def each(change, x):
    """The same arguments, each float changed."""
    if isinstance(x, dict):
        return {name: each(change, y) for name, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [each(change, y) for y in x]
    return change(x) if isinstance(x, td.Tensor) and x.is_floating_point() else x


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_sixteen_bits_over_all_operators(name, half):
    """A half operand gives what float32 gives for the same numbers, rounded; or a refusal that names the type."""
    function, compared = OPERATORS[name].function, 0
    for call in OPERATORS[name].calls:
        td.manual_seed(3)
        given = arguments(OPERATORS[name], call)
        narrow, wide = each(lambda x: x.to(half), given), each(lambda x: x.to(half).float(), given)
        if name in UNDEFINED or not any(x.dtype == half for x in tensors([*narrow[0], *narrow[1].values()])):
            continue
        try:
            td.manual_seed(4)
            wanted = tensors(function(*wide[0], **wide[1]))
        except REFUSALS:
            continue
        td.manual_seed(4)
        try:
            got = tensors(function(*narrow[0], **narrow[1]))
        except REFUSALS as refusal:
            assert name.rstrip("_") in str(refusal) and str(half)[8:] in str(refusal)
            continue
        compared += 1
        for x, y in zip(got, wanted):
            assert x.shape == y.shape and (x.dtype in (y.dtype, half) or name == "bincount")
            bound = 8 * ROUNDING[half] * max(1, y.double().nan_to_num(0, 1, 1).abs().max().item() if y.numel() else 1)
            assert td.allclose(x.double(), y.double(), rtol=0, atol=bound, equal_nan=True), f"{call}: {x}, not {y}"
    assert compared or name in UNDEFINED or not any(
        x.is_floating_point() for call in OPERATORS[name].calls for x in tensors(arguments(OPERATORS[name], call)[0]))


def test_sums_do_not_stop():
    ones = td.ones(10000, dtype=td.bfloat16)
    assert ones.sum().item() == 9984                  # 10000, rounded once: not 256, where counting stops
    assert ones.sum(dtype=td.float32).item() == 10000 and ones.sum(dtype=td.float64).dtype is td.float64
    assert (ones @ ones).item() == 9984 and td.ones(3).sum(dtype=td.float32).dtype is td.float32
    assert ones.mean().item() == 1 and ones.var().item() == 0
    assert td.ones(300).sum(dtype=td.bfloat16).item() == 300 and td.ones(2).softmax(0, dtype=td.float16).tolist() == [0.5, 0.5]
    td.manual_seed(3)
    x = td.randn(9)
    td.manual_seed(3)
    assert td.equal(td.randn(9, dtype=td.bfloat16), x.bfloat16()) and td.ones(2).bfloat16().sum(dtype=td.float16).dtype is td.float16
    with pytest.raises(NotImplementedError, match="sum: not available for int8"):
        td.ones(2).sum(dtype=td.int8)


def test_types_meet_as_in_pytorch(torch):
    def types(t):
        h, b, f, d = (t.ones(2, dtype=x) for x in (t.float16, t.bfloat16, t.float32, t.float64))
        i, n = t.ones(2, dtype=t.int64), t.tensor(2.0)
        return [str(x.dtype).split(".")[-1] for x in (h + b, h + f, b * d, h + 2.5, b + 3, h + i, h + n, n + b, h > b, h / 2, b ** 2,
                                                      t.where(h > 0, h, f), t.cat([h, f]), t.stack([h, b]), h.exp(), b.sum(), h.argmax())]
    assert types(td) == types(torch)


def test_mixed_operands_of_products_are_refused():
    h, f = td.ones(2, 2).half(), td.ones(2, 2)
    for call in (lambda: h @ f, lambda: F.linear(f, h), lambda: td.bmm(h[None], f[None]),
                 lambda: F.conv2d(h[None, None], f[None, None])):
        with pytest.raises(RuntimeError, match="float16 and float32|float32 and float16"):
            call()
    with pytest.raises(RuntimeError, match="matmul: shapes do not match"):
        h @ h[:1].t()[:, :0].t()
    for small in (td.int8, td.int16):
        with pytest.raises(NotImplementedError, match=f"add: {str(small)[8:]} tensors store but do not compute"):
            td.ones(2, dtype=small) + 1
        with pytest.raises(NotImplementedError, match="not available for"):
            td.ones(2, dtype=small).sum()


def test_in_place_and_views():
    x = td.ones(2, 3, dtype=td.bfloat16)
    same, row = x, x[1]
    row += td.tensor([0.5, 1.5, 2.5])
    row.mul_(2)
    x.clamp_(max=4)
    x.cumsum_(0)
    assert x is same and x.tolist() == [[1, 1, 1], [4, 5, 5]] and row.dtype is td.bfloat16
    y = td.zeros(3, dtype=td.float16).index_add_(0, td.tensor([0, 0, 2]), td.tensor([1.0, 2.0, 3.0]).half())
    assert y.tolist() == [3, 0, 3]
    assert td.zeros(64, dtype=td.float16).normal_().float().std().item() > 0.5


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_gradients_are_those_of_float32(half):
    td.manual_seed(5)
    x, w = td.randn(6, 8).to(half), td.randn(8, 8).to(half)

    def gradients(dtype):
        a, b = (v.to(dtype).clone().requires_grad_() for v in (x, w))
        y = F.layer_norm(F.gelu(a @ b), (8,)) * td.tensor(1.5) + a.exp().cumsum(1).softmax(-1)
        (y.pow(2).sum(0) / (1 + y.abs().mean())).mean().backward()
        return a.grad, b.grad
    for ours, wide in zip(gradients(half), gradients(td.float32)):
        assert ours.dtype is half and (ours.float() - wide).abs().max() <= 24 * ROUNDING[half] * wide.abs().max()


def test_a_gradient_has_the_type_of_its_tensor():
    h, f = td.ones(3, dtype=td.float16, requires_grad=True), td.ones(3, requires_grad=True)
    (h * f * 3).sum().backward()
    assert h.grad.dtype is td.float16 and f.grad.dtype is td.float32 and h.grad.tolist() == f.grad.tolist() == [3] * 3
    x = td.full((2,), 0.5, dtype=td.bfloat16, requires_grad=True)
    g, = td.autograd.grad((x ** 3).sum(), x, create_graph=True)
    assert td.autograd.grad(g.sum(), x)[0].tolist() == [3, 3]


MODELS = {
    "mlp": (lambda n: n.Sequential(n.Linear(12, 32), n.ReLU(), n.Linear(32, 32), n.GELU(), n.Linear(32, 5)), (16, 12)),
    "cnn": (lambda n: n.Sequential(n.Conv2d(3, 8, 3, padding=1), n.BatchNorm2d(8), n.ReLU(), n.MaxPool2d(2), n.Conv2d(8, 8, 3),
                                   n.GroupNorm(2, 8), n.SiLU(), n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(8, 5)), (16, 3, 10, 10)),
    "attention": (lambda n: n.Sequential(n.TransformerEncoderLayer(12, 3, 24, dropout=0.0, batch_first=True), n.LayerNorm(12),
                                         n.Flatten(), n.Linear(84, 5)), (16, 7, 12)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_autocast_is_pytorchs(torch, name, half):
    make, shape = MODELS[name]
    torch.manual_seed(2)
    theirs, x = make(torch.nn), torch.randn(shape)
    ours, target = make(nn), torch.arange(16) % 5
    ours.load_state_dict({k: td.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    kinds = {}

    def run(t, net, x, target):
        seen = kinds.setdefault(t.__name__, [])
        for part in net:
            part.register_forward_hook(lambda m, i, o: seen.append(str(o.dtype).split(".")[-1]))
        with t.autocast("cpu", dtype=getattr(t, half)):
            y = net(x)
            loss = t.nn.functional.cross_entropy(y, target)
        loss.backward()
        assert y.dtype == getattr(t, half) and loss.dtype == t.float32
        assert all(p.grad.dtype == t.float32 for p in net.parameters())
        return [y.float().tolist(), loss.item(), *[p.grad.tolist() for p in net.parameters()]]
    wanted = run(torch, theirs, x, target)
    got = run(td, ours, td.from_numpy(x.numpy()), td.from_numpy(target.numpy()))
    assert kinds["treadle"] == kinds["torch"]
    plain = ours(td.from_numpy(x.numpy()))
    assert (plain - td.tensor(got[0])).abs().max() > 1e-5             # it did round
    largest = max(td.tensor(b).norm().item() for b in wanted[2:])     # a bias before a normalisation has none but noise
    for k, (a, b) in enumerate(zip(got, wanted)):
        a, b = td.tensor(a), td.tensor(b)
        size = max(b.norm().item(), 0.05 * largest if k > 1 else 0)
        assert (a - b).norm() <= 16 * ROUNDING[getattr(td, half)] * size, f"{k}: {a} {b}"


def test_lists_are_pytorchs(torch):
    def types(t):
        f = t.nn.functional
        x, img = t.ones(4, 4), t.ones(1, 2, 6, 6)
        lstm = t.nn.LSTMCell(4, 4)
        with t.autocast("cpu"):
            y = x @ x
            found = [y, t.mm(x, x), t.bmm(x[None], x[None]), t.addmm(x, x, x), t.baddbmm(x[None], x[None], x[None]), f.linear(x, x, x[0]),
                     f.conv2d(img, t.ones(2, 2, 3, 3)), f.conv_transpose2d(img, t.ones(2, 2, 3, 3)), t.einsum("ij,jk->ik", x, x),
                     f.scaled_dot_product_attention(x[None], x[None], x[None]), f.prelu(x, x[0]), x + y, y + y, f.softmax(y, -1),
                     f.layer_norm(y, (4,)), f.gelu(y), y.exp(), y.sum(), y.prod(), f.mse_loss(y, x), f.l1_loss(y, y), f.nll_loss(y, t.arange(4)),
                     f.cross_entropy(y, t.arange(4)), f.smooth_l1_loss(y, y), f.huber_loss(y, y), f.kl_div(y, y), t.cat([x, y]), t.stack([y, y]),
                     f.binary_cross_entropy_with_logits(y, y), f.soft_margin_loss(y, y), t.trace(y), x.double() @ x.double(),
                     f.embedding(t.arange(2), x), f.dropout(y, 0.5), y.mean(), y.var(), f.avg_pool3d(y[None, None, None], (1, 2, 2)),
                     f.batch_norm(img, x[0, :2], x[0, :2]), f.max_pool2d(img, 2), f.group_norm(f.conv2d(img, t.ones(2, 2, 3, 3)), 2)]
        return [str(x.dtype).split(".")[-1] for x in found]
    assert types(td) == types(torch)


def test_products_and_decompositions_are_in_the_lists(torch):
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15):
        pytest.skip("the lists are those of PyTorch 2.15")

    def types(t):
        f, linalg = t.nn.functional, t.linalg
        m, half = t.rand(4, 4), t.rand(4, 4).to(t.bfloat16)
        v, film = m[0], t.rand(1, 2, 6, 6, 6).to(t.bfloat16)
        square = (m @ m.mT + t.eye(4)).to(t.bfloat16)
        with t.autocast("cpu"):
            found = [t.addbmm(m, m[None], m[None]), m.addbmm(m[None], m[None]), t.mv(m, v), m.mv(v), t.addmv(v, m, v), m @ v, t.dot(v, v),
                     t.inner(m, v), t.tensordot(m, m, 1), t.outer(v, v), linalg.multi_dot([m, m])]
            found += [t.einsum(e, *(m if len(part) == 2 else v for part in e.split("->")[0].split(","))) for e in (
                "i,j->ij", "ij,ij->", "ij,ij->i", "ij,ij->ij", "ij,j->i", "ij,k->ijk", "i,ij,j->", "i,i,i->i", "i,j->", "ij,k->i")]
            found += [linalg.inv(square), linalg.cholesky(square), *linalg.eigh(square), *linalg.qr(square), *linalg.svd(square),
                      linalg.solve(square, half), linalg.svdvals(half), t.inverse(square), t.matrix_power(square, -1),
                      f.max_pool3d(film, 2), f.adaptive_max_pool3d(film, 2)]
        return [str(x.dtype).split(".")[-1] for x in found]
    assert types(td) == types(torch)
    x = td.rand(3, 4, 4, requires_grad=True)
    with td.autocast("cpu"):
        td.addbmm(x[0].detach(), x, x, beta=2).sum().backward()
    assert x.grad.dtype is td.float32


LISTED = {      # the lists that PyTorch documents for its CPU autocast, as far as we have the names
    "bfloat16": """conv1d conv2d conv3d bmm mm linalg.vecdot baddbmm addmm addbmm linear matmul conv_transpose1d conv_transpose2d conv_transpose3d
        prelu scaled_dot_product_attention multi_head_attention lstm""",
    "float32": """avg_pool3d binary_cross_entropy grid_sample prod quantile nanquantile cdist trace inverse pinverse Tensor.pinverse
        Tensor.quantile max_pool3d max_unpool1d max_unpool2d max_unpool3d adaptive_avg_pool3d mse_loss cosine_embedding_loss
        CosineEmbeddingLoss nll_loss hinge_embedding_loss poisson_nll_loss smooth_l1_loss cross_entropy l1_loss huber_loss margin_ranking_loss
        soft_margin_loss triplet_margin_loss multi_margin_loss MultiMarginLoss ctc_loss kl_div binary_cross_entropy_with_logits
        local_response_norm linalg.solve linalg.cholesky linalg.svdvals linalg.eigvalsh linalg.inv linalg.qr linalg.svd linalg.eigh
        linalg.lstsq adaptive_max_pool3d stack cat"""}


@pytest.mark.parametrize("given", ["float32", "bfloat16"])
def test_every_listed_name_gives_its_type(given):
    """Whatever comes, each name computes in its list's type; a peer of the same version says the same."""
    def types(t):
        f, kind = t.nn.functional, getattr(t, given)
        t.manual_seed(1)
        m, b, p = t.rand(4, 4) + 4 * t.eye(4), t.rand(2, 4, 4), t.rand(4, 4) * 0.9 + 0.05
        lines, films, rooms = t.rand(1, 2, 6), t.rand(1, 2, 6, 6), t.rand(1, 2, 6, 6, 6)
        square, v, sign = m @ m.mT, m[0], t.tensor([1.0, -1.0, 1.0, -1.0])
        m, b, p, lines, films, rooms, square, v, sign = (x.to(kind) for x in (m, b, p, lines, films, rooms, square, v, sign))
        w = [t.ones(2, 2, *[3] * n).to(kind) for n in (1, 2, 3)]
        at, by = t.arange(4), {"return_indices": True}
        args = {
            "conv1d": (lines, w[0]), "conv2d": (films, w[1]), "conv3d": (rooms, w[2]), "bmm": (b, b), "baddbmm": (b, b, b), "addmm": (m, m, m),
            "addbmm": (m, b, b), "conv_transpose1d": (lines, w[0]), "conv_transpose2d": (films, w[1]), "conv_transpose3d": (rooms, w[2]),
            "prelu": (m, v), "scaled_dot_product_attention": (b, b, b), "avg_pool3d": (rooms, 2), "binary_cross_entropy": (p, p),
            "grid_sample": (films, t.rand(1, 3, 3, 2).to(kind)), "quantile": (m, 0.5), "nanquantile": (m, 0.5), "Tensor.quantile": (m, 0.5),
            "max_pool3d": (rooms, 2), "max_unpool1d": (*f.max_pool1d(lines, 2, **by), 2), "max_unpool2d": (*f.max_pool2d(films, 2, **by), 2),
            "max_unpool3d": (*f.max_pool3d(rooms, 2, **by), 2), "adaptive_avg_pool3d": (rooms, 2), "adaptive_max_pool3d": (rooms, 2),
            "cosine_embedding_loss": (m, m, sign), "CosineEmbeddingLoss": (m, m, sign), "nll_loss": (m, at), "cross_entropy": (m, at),
            "margin_ranking_loss": (v, v, sign), "triplet_margin_loss": (m, m, m), "multi_margin_loss": (m, at), "MultiMarginLoss": (m, at),
            "ctc_loss": (b.transpose(0, 1).log_softmax(-1), t.tensor([[1], [2]]), t.tensor([4, 4]), t.tensor([1, 1])),
            "local_response_norm": (films, 2), "linalg.cholesky": (square,), "linalg.eigvalsh": (square,), "linalg.eigh": (square,),
            "lstm": (b,), "multi_head_attention": (b, b, b), "stack": ([m, m.float()],), "cat": ([m, m.float()],)}
        alone = "prod trace inverse pinverse Tensor.pinverse linalg.svdvals linalg.inv linalg.qr linalg.svd".split()

        def call(name):
            if name in ("lstm", "multi_head_attention"):
                return (t.nn.LSTM(4, 4) if name == "lstm" else t.nn.MultiheadAttention(4, 2))(*args[name])
            if name[0].isupper() and "." not in name:
                return getattr(t.nn, name)()(*args[name])
            home, _, last = name.rpartition(".")
            home = getattr(t, home) if home else f if hasattr(f, last) else t
            return getattr(home, last)(*args.get(name, (m,) if name in alone else (m, m)))

        def tried(name):
            try:
                return call(name)
            except RuntimeError as error:           # PyTorch's LSTM has no bfloat16 on processors without AVX-512
                if "could not create a primitive descriptor" not in str(error):
                    raise
        with t.autocast("cpu"):
            return {name: flat(tried(name)) for names in LISTED.values() for name in names.split()}

    def flat(x):
        if isinstance(x, (tuple, list)):
            return [y for part in x for y in flat(part)]
        return [str(x.dtype).split(".")[-1]] if x is not None and "float" in str(x.dtype) and x.numel() else []
    found = types(td)
    for kind, names in LISTED.items():
        for name in names.split():
            assert set(found[name]) == {kind}, name
    try:
        import torch
    except ImportError:
        return
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15):
        theirs = types(torch)
        assert {k: set(v) for k, v in theirs.items() if v} == {k: set(found[k]) for k, v in theirs.items() if v}
        assert {k for k, v in theirs.items() if not v} <= {"lstm"}


def test_gradients_come_back_through_listed_functions():
    x = td.rand(3, 4, requires_grad=True)
    with td.autocast("cpu"):
        y = td.quantile(x @ td.eye(4), 0.5) + td.cdist(x, x + 1).sum()
        with pytest.raises(RuntimeError, match="quantile: argument 'q' must be"):
            td.quantile(x, q=2.0)
        assert (x @ x.mT).dtype is td.bfloat16          # the mode is on again, also after an error
    y.backward()
    assert y.dtype is x.grad.dtype is td.float32


def test_autocast_nests_decorates_and_ends():
    x = td.ones(3, 3)

    def kind():
        return (x @ x).dtype
    with td.autocast("cpu") as block:
        assert kind() is td.bfloat16 and isinstance(block, td.amp.autocast)
        with td.autocast("cpu", dtype=td.float16):
            assert kind() is td.float16
            with td.autocast("cpu", enabled=False):
                assert kind() is td.float32
            assert kind() is td.float16
        with pytest.raises(ZeroDivisionError), td.autocast("cpu", td.float16):
            1 / 0
        assert kind() is td.bfloat16
        with pytest.raises(RuntimeError, match="matmul: shapes do not match"):
            x @ x[:2]
        assert kind() is td.bfloat16
    assert kind() is td.float32 and td.autocast("cpu")(kind)() is td.bfloat16 and kind() is td.float32

    @td.autocast("cpu")
    def steps():
        yield kind()
        yield kind()
    run = steps()
    assert [next(run), kind(), next(run)] == [td.bfloat16, td.float32, td.bfloat16]


def test_autocast_is_of_a_thread():
    seen, x = [], td.ones(2, 2)
    with td.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
        assert (x @ x).dtype is td.bfloat16 and seen == [td.float32]


def test_autocast_refuses():
    with pytest.raises(ValueError, match="expected device_type of type str, got dtype"):
        td.autocast(td.bfloat16)
    with pytest.raises(RuntimeError, match="unsupported device_type 'tpu'"):
        td.autocast("tpu")
    with pytest.warns(UserWarning, match="only float16 and bfloat16 are supported, not treadle.float64"):
        assert td.autocast("cpu", dtype=td.float64).mode is None
    with pytest.raises(TypeError, match="autocast: expected float16 or bfloat16, got float32"):
        td._C._autocast(td.float32)
    if not td.cuda.is_available():
        from treadle.cuda.amp import GradScaler, autocast
        with pytest.warns(UserWarning, match="autocast: CUDA is not available; disabled"):
            assert autocast().mode is None
        with pytest.warns(UserWarning, match="GradScaler: CUDA is not available; disabled"):
            assert not GradScaler(init_scale=4.0).is_enabled()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            autocast(False), GradScaler(enabled=False), td.autocast("cuda", td.float16, False)


def test_backward_inside_and_outside_agree():
    def gradient(inside):
        w = td.arange(16.0).reshape(4, 4).div(7).requires_grad_()
        with td.autocast("cpu"):
            loss = F.mse_loss(td.relu(w @ w) @ w, w)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        return w.grad
    assert td.equal(gradient(True), gradient(False))


def test_checkpoints_run_again_under_the_same_types():
    from treadle.utils.checkpoint import checkpoint
    w, kinds = td.randn(5, 5, requires_grad=True), []

    def layer(x):
        y = td.tanh(x @ w)
        kinds.append(y.dtype)
        return y

    def gradient(call):
        w.grad = None
        with td.autocast("cpu"):
            y = call(td.ones(5, 5))
        y.sum().backward()
        return w.grad
    again = gradient(lambda x: checkpoint(layer, x, use_reentrant=False))
    assert kinds == [td.bfloat16] * 2 and td.equal(again, gradient(layer))


@pytest.mark.parametrize("backend", ["interpreter", "c"])
def test_compiled_functions_follow(backend):
    w = td.randn(24, 24)

    def f(x):
        with td.autocast("cpu", enabled=False):
            y = x @ w
        return F.gelu(x @ w) * 2 + 1, y
    compiled, x = td.jit(f, backend=backend), td.randn(30, 24)
    for half in (None, td.bfloat16, None, td.float16, td.bfloat16):
        with td.autocast("cpu", dtype=half or td.bfloat16, enabled=half is not None):
            wanted = f(x)
            for _ in range(3):
                got = compiled(x)
                assert [y.dtype for y in got] == [half or td.float32, td.float32]
                assert td.allclose(got[1], wanted[1], rtol=1e-4, atol=1e-5)
                assert (got[0] - wanted[0]).abs().max() <= (4 * ROUNDING[half] if half else 1e-5) * wanted[0].abs().max()


def test_activations_take_half():
    def held(enabled):
        td.manual_seed(0)
        net, x = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(6)]), td.randn(2048, 64)
        before = td.memory_stats()["bytes"]
        with td.autocast("cpu", enabled=enabled):
            y = net(x)
        weights = sum(p.numel() for p in net.parameters()) * 2 if enabled else 0
        return td.memory_stats()["bytes"] - before - weights, y
    wide, narrow = held(False)[0], held(True)[0]
    assert narrow <= 0.56 * wide, (narrow, wide)


def one_step(t, bad=False):
    torch_like = t.ones(3, requires_grad=True)
    return torch_like, t.optim.SGD([torch_like], lr=0.5)


def test_scaler_is_pytorchs(torch):
    def story(t):
        w, sgd = one_step(t)
        scaler, told = t.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2), []
        for factor in (1.0, 2.0, float("inf"), 1.0, 1.0, float("nan"), 1.0):
            sgd.zero_grad()
            scaler.scale((w * w).sum() * factor).backward()
            scaler.unscale_(sgd)
            scaler.step(sgd)
            scaler.update()
            told += [w.tolist(), scaler.get_scale(), scaler.state_dict()]
        scaler.update(64.0)
        scaled = scaler.scale([t.ones(2), (t.ones((), dtype=t.bfloat16),)])
        told += [scaler.get_scale(), scaled[0].tolist(), str(scaled[0].dtype).split(".")[1], str(scaled[1][0].dtype).split(".")[1]]
        again = t.amp.GradScaler("cpu")
        again.load_state_dict(scaler.state_dict())
        for on in (True, False):
            with t.autocast("cpu", enabled=on):
                told.append(t.is_autocast_enabled("cpu"))
        return told + [again.get_scale(), again.get_growth_factor(), again.get_backoff_factor(), again.get_growth_interval()]
    assert story(td) == story(torch)


def test_scaler_refuses_as_pytorch(torch):
    def refusals(t):
        def kind(call):
            try:
                call()
            except Exception as error:
                return type(error).__name__
        w, sgd = one_step(t)
        told, scaler = [kind(lambda: t.amp.GradScaler("cpu").step(sgd)), kind(t.amp.GradScaler("cpu").update)], t.amp.GradScaler("cpu")
        scaler.scale(w.sum()).backward()
        scaler.unscale_(sgd)
        told += [kind(lambda: scaler.unscale_(sgd)), kind(lambda: scaler.step(sgd, closure=None)), kind(lambda: scaler.step(sgd)),
                 kind(lambda: scaler.step(sgd)), kind(lambda: scaler.unscale_(sgd)), kind(scaler.update)]
        h = t.ones(2, dtype=t.float16, requires_grad=True)
        scaler.scale(h.sum()).backward()
        told += [kind(lambda: scaler.unscale_(t.optim.SGD([h], lr=1))), kind(lambda: scaler.unscale_(t.optim.SGD([t.ones(1, requires_grad=True)]))),
                 kind(lambda: t.amp.GradScaler("cpu", growth_factor=1.0)), kind(lambda: scaler.load_state_dict({})),
                 kind(lambda: scaler.scale(3))]
        off = t.amp.GradScaler("cpu", enabled=False)
        return told + [off.scale(3), off.get_scale(), off.state_dict(), off.is_enabled(), kind(lambda: off.step(sgd)), kind(off.update)]
    assert refusals(td) == refusals(torch)


def test_small_gradients_survive():
    w = td.ones(4, dtype=td.float16, requires_grad=True)
    (w * 1e-4).mean().mul(1e-4).backward()
    assert w.grad.tolist() == [0] * 4
    w.grad, scaler = None, td.amp.GradScaler("cpu")
    masters = td.amp.MasterWeights(td.optim.SGD([w], lr=1e8))
    scaler.scale((w * 1e-4).mean().float().mul(1e-4)).backward()
    scaler.step(masters)
    assert w.grad.dtype is td.float32 and td.allclose(w.float(), td.full((4,), 0.75), atol=2e-3)


def test_a_master_obeys_what_is_done_to_the_gradient_of_its_weight():
    net = nn.Linear(3, 2).to(td.bfloat16)
    masters = td.amp.MasterWeights(td.optim.SGD(net.parameters(), lr=1.0))
    schedule = td.optim.lr_scheduler.StepLR(masters, 1, gamma=0.5)

    def backward():
        net(td.ones(4, 3, dtype=td.bfloat16)).sum().backward()
    backward()
    before = [m.clone() for _, m in masters.pairs]
    assert nn.utils.clip_grad_norm_(net.parameters(), 1e-3).item() == pytest.approx(128**.5, rel=1e-6)
    masters.step()
    moved = td.cat([(m - b).flatten() for (_, m), b in zip(masters.pairs, before)])
    assert moved.norm().item() == pytest.approx(1e-3, rel=1e-4)
    schedule.step()
    assert masters.param_groups[0]["lr"] == 0.5 and schedule.get_last_lr() == [0.5]

    for zero in (net.zero_grad, masters.zero_grad, lambda: masters.zero_grad(set_to_none=False)):
        backward()
        before = [m.clone() for _, m in masters.pairs]
        zero()
        masters.step()
        assert all(td.equal(m, b) for (_, m), b in zip(masters.pairs, before))
        backward()
        assert net.bias.grad.tolist() == [4, 4]
        backward()
        assert masters.pairs[1][1].grad.tolist() == [8, 8]
        masters.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    with pytest.raises(RuntimeError, match="the gradient is float64"):
        net.bias.grad = td.ones(2, dtype=td.float64)


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_master_weights_train_as_float32(half):
    td.manual_seed(7)
    x = td.randn(64, 6)
    y = td.sin(x.sum(1, keepdim=True))
    start = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))

    def last(net, optimizer, dtype):
        for _ in range(60):
            optimizer.zero_grad()
            for part in (slice(32), slice(32, 64)):             # accumulated in float32
                (F.mse_loss(net(x[part].to(dtype)).float(), y[part]) / 2).backward()
            optimizer.step()
        return F.mse_loss(net(x.to(dtype)).float(), y).item()
    wide, narrow, plain = (copy.deepcopy(start).to(d) for d in (td.float32, half, half))
    adam = lambda net: td.optim.Adam(net.parameters(), lr=3e-4)
    wanted = last(wide, adam(wide), td.float32)
    masters = td.amp.MasterWeights(adam(narrow))
    assert abs(last(narrow, masters, half) - wanted) < 0.01 * wanted
    assert all(p.dtype is half for p in narrow.parameters()) and masters.pairs[0][1].dtype is td.float32
    if half is td.bfloat16:
        assert last(plain, adam(plain), half) > 1.05 * wanted   # most updates are lost

    again = copy.deepcopy(start).to(half)
    other = td.amp.MasterWeights(adam(again))
    other.load_state_dict(copy.deepcopy(masters.state_dict()))
    for p, q in zip(again.parameters(), narrow.parameters()):
        assert td.equal(p, q)
    for net, optimizer in ((again, other), (narrow, masters)):
        optimizer.zero_grad()
        net(x.to(half)).sum().backward()
        optimizer.step()
    assert td.equal(again[0].weight, narrow[0].weight)
    with pytest.raises(ValueError, match="expected an optimizer that has made no step"):
        td.amp.MasterWeights(masters.optimizer)


def test_rounding_by_chance():
    td.manual_seed(11)
    for half, bound in ((td.bfloat16, 2.0**-8), (td.float16, 2.0**-11)):
        x = td.tensor([1.001, -1.001, 3.1, 0.1, -1e-6, 3e-8, 1000.3, 0.0, -0.0])
        many = td.amp.stochastic_round(x.expand(20000, -1), half).double()
        below = many.min(0)[0], many.max(0)[0]
        for k, v in enumerate(x.double().tolist()):
            low, high = (side[k].item() for side in below)
            assert low <= v <= high and high - low <= max(2 * bound * abs(v), 2.0**-24)
            assert abs(many[:, k].mean().item() - v) <= 5 * (high - low) / 2 / 20000**0.5
    exact = td.tensor([1.0, -0.5, 65504.0, float("inf"), float("-inf"), 2.0**-24])
    assert td.equal(td.amp.stochastic_round(exact, td.float16).float(), exact)
    assert td.amp.stochastic_round(td.tensor([float("nan")])).isnan().all()
    assert td.amp.stochastic_round(td.tensor([-0.0])).signbit().all()
    again = [td.amp.stochastic_round(td.rand(50, 3).t(), generator=td.Generator().manual_seed(3)) for _ in range(2)]
    td.manual_seed(11)
    assert again[0].shape == (3, 50) and again[0].dtype is td.bfloat16
    with pytest.raises(TypeError, match="expected float32 to float16 or bfloat16, got treadle.float64 to treadle.bfloat16"):
        td.amp.stochastic_round(td.ones(1, dtype=td.float64))
    with pytest.raises(TypeError, match="to treadle.int8"):
        td.amp.stochastic_round(td.ones(1), td.int8)


@pytest.mark.parametrize("half", [td.float16, td.bfloat16])
def test_the_variance_of_many_halves_is_finite(half):
    x = td.ones(70000)
    x[::2] = -1
    y = x.to(half).requires_grad_()
    assert td.var(y).item() == td.std(y).item() == 1 and td.var(y).dtype is half
    both = td.var_mean(y)
    assert [b.item() for b in both] == [1, 0] and both[1].dtype is half
    td.std(y[:8]).backward()
    assert y.grad.dtype is half and y.grad[0].item() != 0
