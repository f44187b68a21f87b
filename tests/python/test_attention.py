# needs: attention layers
"""Attention and what is built on it, against NumPy, PyTorch and differences."""
import copy
import math

import numpy as np
import pytest
import treadle as td
from treadle import nn
from treadle.autograd import gradcheck, gradgradcheck

F = nn.functional
INF = float("inf")


def array(*shape, start=0.0):
    """Numbers that a formula gives, the same in every library."""
    n = int(np.prod(shape))
    return (0.8 * np.sin(start + 1.7 * np.arange(n))).reshape(shape)


def tensor(a, grad=False):
    return td.from_numpy(np.array(a)).requires_grad_(grad)


def close(ours, theirs, tolerance=1e-12):
    np.testing.assert_allclose(ours.detach().numpy(), theirs, tolerance, 1e-13)


def weights(q, k, mask=None, scale=None):
    """The weights in NumPy; a row without keys is zero."""
    s = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(-1, keepdims=True))
        return np.nan_to_num(e / e.sum(-1, keepdims=True))


def masks():
    yield None
    m = array(4, 5, start=2) > 0.1
    m[1] = False
    yield m
    yield m[:1]
    yield array(2, 1, 4, 5, start=3) > 0
    f = array(4, 5, start=4)
    f[2] = -np.inf
    f[0, 1:] = -np.inf
    yield f
    yield array(5, start=5)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12),
                                              ("float32", 2e-5)])
def test_attention_is_its_formula(dtype, tolerance):
    q, k, v = (array(2, 3, n, d, start=n + d).astype(dtype)
               for n, d in ((4, 6), (5, 6), (5, 7)))
    for mask in masks():
        given = mask if mask is None or mask.dtype == bool \
            else mask.astype(dtype)
        for scale in (None, 0.7):
            want = weights(q, k, mask, scale)
            ours = [None if m is None else tensor(m) for m in (given,)]
            close(td.attention_weights(tensor(q), tensor(k), *ours,
                                       scale=scale), want, tolerance)
            got = F.scaled_dot_product_attention(
                tensor(q), tensor(k), tensor(v), *ours, scale=scale)
            np.testing.assert_allclose(got.numpy(), want @ v, tolerance,
                                       tolerance)
            turned = [tensor(np.ascontiguousarray(a.swapaxes(-1, -2)))
                      .transpose(-1, -2) for a in (q, k, v)]
            np.testing.assert_allclose(
                F.scaled_dot_product_attention(*turned, *ours, scale=scale)
                .numpy(), want @ v, tolerance, tolerance)


def test_causal_attention_has_its_corner_at_the_top_left():
    for rows, columns in ((4, 4), (3, 5), (5, 3)):
        q, k = array(rows, 2), array(columns, 2, start=1)
        close(td.attention_weights(tensor(q), tensor(k), is_causal=True),
              weights(q, k, np.tri(rows, columns, dtype=bool)))


def test_no_keys_and_no_questions():
    z = td.zeros
    sdpa = F.scaled_dot_product_attention
    assert (sdpa(z(2, 3), z(0, 3), z(0, 4)) == z(2, 4)).all().item()
    assert sdpa(z(0, 3), z(2, 3), z(2, 4)).shape == (0, 4)
    assert sdpa(z(0, 2, 3), z(0, 4, 3), z(0, 4, 3)).shape == (0, 2, 3)


def test_a_row_without_keys_is_zero_and_so_are_its_gradients():
    for mask in (tensor(np.array([[True, False], [False, False]])),
                 tensor(np.array([[0.5, -INF], [-INF, -INF]]))):
        q, k, v = (tensor(array(2, 3, start=s), True) for s in range(3))
        out = F.scaled_dot_product_attention(q, k, v, mask)
        assert (out[1] == 0).all().item() and (out[0] != 0).any().item()
        (out * out).sum().backward()
        assert (q.grad[1] == 0).all().item()
        for x in (q, k, v):
            assert x.grad.isfinite().all().item()
    net = nn.MultiheadAttention(4, 2)
    x = td.randn(3, 2, 4, requires_grad=True)
    padding = td.tensor([[False] * 3, [True] * 3])
    out, w = net(x, x, x, key_padding_mask=padding)
    assert (w[1] == 0).all().item() and out.isfinite().all().item()
    out.sum().backward()
    assert x.grad.isfinite().all().item()
    assert net.in_proj_weight.grad.isfinite().all().item()


def test_grouped_heads_share_keys():
    q, k, v = array(2, 4, 3, 2), array(2, 2, 5, 2, start=1), \
        array(2, 2, 5, 3, start=2)
    want = weights(q, np.repeat(k, 2, 1)) @ np.repeat(v, 2, 1)
    close(F.scaled_dot_product_attention(
        tensor(q), tensor(k), tensor(v), enable_gqa=True), want)
    with pytest.raises(RuntimeError, match="multiple of the heads"):
        F.scaled_dot_product_attention(
            tensor(q), tensor(k[:, [0, 0, 0]]), tensor(v), enable_gqa=True)


def test_dropout_strikes_weights():
    td.manual_seed(3)
    q, k, v = td.randn(50, 4), td.randn(60, 4), td.ones(60, 1)
    w = td.attention_weights(q, k, None, 0.25)
    kept = w != 0
    assert 0.7 < kept.float().mean().item() < 0.8
    full = td.attention_weights(q, k)
    np.testing.assert_allclose(w[kept].numpy(), (full / 0.75)[kept].numpy(),
                               1e-5)
    close(F.scaled_dot_product_attention(q, k, v, dropout_p=1.0),
          np.zeros((50, 1)))


def test_derivatives():
    q, k, v, m = (tensor(array(*s, start=i), True) for i, s in enumerate(
        ((2, 3, 2), (2, 4, 2), (2, 4, 1), (3, 4))))
    hard = array(3, 4, start=9) > 0
    hard[1] = False
    for f in (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
              lambda q, k, v, m: F.scaled_dot_product_attention(
                  q, k, v, tensor(hard)),
              lambda q, k, v, m: F.scaled_dot_product_attention(
                  q, k, v, is_causal=True, scale=0.4)):
        assert gradcheck(f, (q, k, v, m)) and gradgradcheck(f, (q, k, v, m))
    for interleaved in (True, False):
        def f(x):
            return F.rotary_embedding(x, interleaved=interleaved)
        x = tensor(array(2, 3, 4), True)
        assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 3e-5), pytest.param(
    "float16", 2e-2, marks=pytest.mark.skipif(not hasattr(td, "autocast"), reason="halves compute from precision on"))])
@pytest.mark.parametrize("batch, questions, keys, d, e", [
    ((), 33, 65, 5, 7), ((2, 3), 40, 40, 8, 8), ((2,), 100, 31, 33, 33), ((1, 2), 57, 130, 16, 16), ((1, 2), 64, 128, 1, 4), ((2,), 70, 0, 4, 4)])
def test_blocks_are_the_formula(dtype, tolerance, batch, questions, keys, d, e):
    """More questions than a block has: results and gradients beside the whole matrix in double precision."""
    real = getattr(td, dtype)
    shapes = (questions, d), (keys, d), (keys, e), (questions, e)
    q, k, v, g = (tensor(array(*batch, *s, start=i)).to(real) for i, s in enumerate(shapes))
    sees = array(questions, keys, start=4) > -0.3
    sees[3] = sees[:, 7:9] = False
    added = np.where(sees, array(questions, keys, start=5), -INF)
    each = array(*batch[:1], *[1] * (len(batch) - 1), 1, keys, start=6) > 0
    for mask, causal in ((None, False), (None, True), (sees, False), (sees[5], False), (sees[:, :1], False),
                         (each, False), (added, False)):
        mask = mask if mask is None or mask.dtype == bool else tensor(mask).to(real)
        mask = tensor(mask) if isinstance(mask, np.ndarray) else mask
        wide = mask if mask is None or mask.dtype is td.bool else mask.double()
        ours = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        whole = [x.double().detach().clone().requires_grad_() for x in (q, k, v)]
        got = F.scaled_dot_product_attention(*ours, mask, is_causal=causal, scale=0.4)
        want = td.attention_weights(*whole[:2], wide, is_causal=causal, scale=0.4) @ whole[2]
        got.backward(g)
        want.backward(g.double())
        for a, b in [(got, want)] + [(a.grad, b.grad) for a, b in zip(ours, whole)]:
            np.testing.assert_allclose(a.double().detach().numpy(), b.detach().numpy(), tolerance, 4 * tolerance)
            assert a.dtype is real


def test_blocks_have_derivatives_of_every_order_and_other_batches_the_formula():
    q, k, v = (tensor(array(2, n, d, start=n), True) for n, d in ((34, 2), (33, 2), (33, 1)))

    def looks(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 30:]
    v = tensor(array(2, 33, 2, start=4), True)
    assert gradcheck(looks, (q, k, v)) and gradgradcheck(looks, (q[:1], k[:1], v[:1]))
    some = array(34, 33, start=1) > 0
    assert gradcheck(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, tensor(some))[:, 30:], (q, k, v))
    bias = tensor(array(34, 33, start=2), True)
    F.scaled_dot_product_attention(q, k, v, bias).sum().backward()
    assert bias.grad.any().item()
    close(F.scaled_dot_product_attention(q[0], k, v), weights(q[0].detach().numpy(), k.detach().numpy()) @ v.detach().numpy())
    few = array(4, 40, 2), array(2, 35, 2, start=1), array(2, 35, 3, start=2)
    close(F.scaled_dot_product_attention(*map(tensor, few), enable_gqa=True),
          weights(few[0], np.repeat(few[1], 2, 0)) @ np.repeat(few[2], 2, 0))
    with pytest.raises(RuntimeError, match="dropout"):
        td.attend(q, k, q, 0.5, True)


def test_the_weights_of_many_keys_sum_to_one():
    """A chain of 20,000 additions of the same number would be wrong by 0.0002."""
    k = td.full((20000, 1), math.log(0.7))
    k[0] = 0
    ones = td.ones(20000, 1)
    y = F.scaled_dot_product_attention(td.ones(40, 1), k, ones, scale=1.0)
    assert (y - 1).abs().max().item() < 2e-5


def test_heads_that_were_cut_from_rows_are_not_copied_and_join_by_a_view():
    rows = array(2, 40, 3, 4, 6, start=5)                  # batch, places, (q, k, v), heads, width
    def look(leaf, whole):
        heads = [leaf[:, :, i].transpose(1, 2) for i in range(3)]
        y = F.scaled_dot_product_attention(*(h.contiguous() if whole else h for h in heads), scale=0.3)
        return y, td.autograd.grad((y * y).sum(), leaf)[0]
    (y, g), (want, slope) = (look(tensor(rows, True), whole) for whole in (False, True))
    assert y.transpose(1, 2).is_contiguous() and want.is_contiguous()
    assert td.equal(y, want) and td.equal(g, slope)


def test_blocks_keep_no_matrix_and_have_the_same_bits_compiled_and_on_any_threads():
    q, k, v = (tensor(array(3, 200, 8, start=s).astype("float32")) for s in range(3))

    def step(q, k, v):
        x = [a.detach().requires_grad_() for a in (q, k, v)]
        y = F.scaled_dot_product_attention(*x, is_causal=True)
        return y.detach(), *td.autograd.grad((y * y).sum(), x)
    before = td.memory_stats()["bytes"]
    out = F.scaled_dot_product_attention(q.requires_grad_(), k, v)
    assert td.memory_stats()["bytes"] - before == out.numel() * 4
    compiled, threads, answers = td.jit(step), td.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            td.set_num_threads(n)
            answers += [f(q.detach(), k, v) for f in (step, compiled)]
    finally:
        td.set_num_threads(threads)
    for other in answers[1:]:
        assert all(td.equal(a, b) for a, b in zip(answers[0], other))


def turned(x, at, base=1e4, interleaved=True):
    """A rotation in NumPy, by complex numbers."""
    n = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved \
        else (x[..., :n], x[..., n:])
    z = (a + 1j * b) * np.exp(1j * at[..., None] * base ** (-np.arange(n) / n))
    out = [z.real, z.imag]
    return np.stack(out, -1).reshape(x.shape) if interleaved \
        else np.concatenate(out, -1)


def test_rotary_embedding_turns_pairs():
    x = array(2, 3, 5, 8)
    for interleaved in (True, False):
        close(F.rotary_embedding(tensor(x), interleaved=interleaved),
              turned(x, np.arange(5.0), 1e4, interleaved))
        at = np.array([100000, 3, 7, 0, 12])
        close(F.rotary_embedding(tensor(x), tensor(at), base=500.0,
                                 interleaved=interleaved),
              turned(x, at * 1.0, 500.0, interleaved))
        close(F.rotary_embedding(tensor(x.astype("float32")), tensor(at)),
              turned(x, at * 1.0), 1e-5)
    each = array(2, 1, 5, start=2) * 10
    close(F.rotary_embedding(tensor(x), tensor(each)), turned(x, each))
    line = F.rotary_embedding(td.tensor([[0.6, 0.8]] * 9))
    dots = line @ line.T
    for shift in (1, 3):
        np.testing.assert_allclose(dots.diagonal(shift).numpy(),
                                   math.cos(shift), 1e-6)
    for bad in (td.ones(3, 3), td.ones(4), td.ones(*[1] * 7, 2)):
        with pytest.raises(RuntimeError, match="rotary_embedding: "):
            F.rotary_embedding(bad)
    with pytest.raises(RuntimeError, match="int64"):
        F.rotary_embedding(td.ones(2, 2, dtype=td.int64))
    assert F.rotary_embedding(td.ones(0, 4)).shape == (0, 4)
    assert F.rotary_embedding(td.ones(3, 0)).shape == (3, 0)


@pytest.mark.parametrize("args, named, words", [
    ([(4,), (4, 4), (4, 4)], {}, r"query \[\.\.\., L, d\]"),
    ([(3, 4), (5, 3), (5, 4)], {}, r"\[3, 4\] and \[5, 3\]"),
    ([(3, 4), (5, 4), (6, 4)], {}, "do not match"),
    ([(3, 4), (5, 4), (5, 4), (3, 5)], {"is_causal": True}, "exclude"),
    ([(3, 4), (5, 4), (5, 4), (4, 5)], {}, "broadcast"),
    ([(3, 4), (5, 4), (5, 4), ()], {}, "attn_mask"),
])
def test_what_does_not_fit_is_named(args, named, words):
    with pytest.raises(RuntimeError,
                       match="scaled_dot_product_attention: .*" + words):
        F.scaled_dot_product_attention(*(td.zeros(s) for s in args), **named)


def test_bad_kinds():
    z = td.zeros
    sdpa = F.scaled_dot_product_attention
    with pytest.raises(RuntimeError, match="attn_mask must be bool or f"):
        sdpa(z(3, 4), z(5, 4), z(5, 4), z(3, 5, dtype=td.float64))
    with pytest.raises(RuntimeError, match="int64"):
        sdpa(*[z(3, 4, dtype=td.int64)] * 3)
    with pytest.raises(ValueError, match="between 0 and 1"):
        sdpa(*[z(3, 4)] * 3, dropout_p=1.5)


# what PyTorch 1.13 answers: sums of outputs and gradients times cos(index)
GOLDEN = {
    "attention none": [-5.88772045, -3.40615562, -2.28556111, -0.97220155, -1.7605912],
    "attention bool": [-3.43015447, 0.14405358, -0.55811388, -1.5524741, -0.28586224],
    "attention float": [-1.79861943, -2.34961639, -0.76735327, -2.40676993, -1.16169319],
    "transformer False": [-1.13996666, 0.00216449, 0.07290411],
    "transformer True": [-17.00075034, -0.01038636, -0.60065008],
}
PADDING = np.array([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 0, 0, 0]], bool)


def filled(net):
    with td.no_grad():
        for k, p in enumerate(net.double().parameters()):
            p.copy_(tensor(array(*p.shape, start=k)))
    return net


def weigh(y):
    return (y * td.cos(td.arange(y.numel(), dtype=td.float64))
            .reshape(y.shape)).sum()


def compare(key, outputs, inputs):
    got = [weigh(y) for y in outputs]
    sum(got[1:], got[0]).backward()
    got += [weigh(x.grad) for x in inputs]
    np.testing.assert_allclose([y.item() for y in got], GOLDEN[key], 1e-5)


@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_multihead_attention_answers_as_pytorch(kind):
    mask = array(4, 5, start=3) > 0.3
    mask[:, 1] = False
    mask = {"none": None, "bool": mask, "float": array(4, 5, start=4)}[kind]
    net = filled(nn.MultiheadAttention(6, 2))
    x = [tensor(array(n, 3, 6, start=s), True)
         for n, s in ((4, 5), (5, 6), (5, 7))]
    compare(f"attention {kind}", net(
        *x, key_padding_mask=None if kind == "none" else tensor(PADDING),
        attn_mask=None if mask is None else tensor(mask)), x)


@pytest.mark.parametrize("first", [False, True])
def test_transformers_answer_as_pytorch(first):
    net = filled(nn.Transformer(6, 2, 2, 2, 8, dropout=0.0, norm_first=first,
                                activation="gelu"))
    x = [tensor(array(n, 3, 6, start=s), True) for n, s in ((5, 1), (4, 2))]
    padding = tensor(PADDING)
    compare(f"transformer {first}", [net(
        *x, tgt_mask=net.generate_square_subsequent_mask(4).double(),
        src_key_padding_mask=padding, memory_key_padding_mask=padding)], x)


def test_layouts_of_multihead_attention():
    net = filled(nn.MultiheadAttention(6, 3))
    x, y = tensor(array(4, 2, 6)), tensor(array(5, 2, 6, start=1))
    out, w = net(x, y, y)
    assert out.shape == (4, 2, 6) and w.shape == (2, 4, 5)
    net.batch_first = True
    turned, w2 = net(*(z.transpose(0, 1) for z in (x, y, y)))
    close(turned.transpose(0, 1), out.detach().numpy())
    close(w2, w.detach().numpy())
    alone, w3 = net(x[:, 0], y[:, 0], y[:, 0])
    close(alone, out[:, 0].detach().numpy())
    assert w3.shape == (4, 5)
    heads = net(x[:, 0], y[:, 0], y[:, 0], average_attn_weights=False)[1]
    assert heads.shape == (3, 4, 5)
    close(heads.mean(0), w3.detach().numpy())
    none = net(x[:, 0], y[:, 0], y[:, 0], need_weights=False)
    close(none[0], alone.detach().numpy())
    assert none[1] is None
    padded = net(x[:, 0], y[:, 0], y[:, 0],
                 key_padding_mask=td.tensor([False] * 4 + [True]))[1]
    assert (padded[:, 4] == 0).all().item()
    each = td.zeros(6, 4, 5, dtype=td.bool)
    each[3:, :, 0] = True                   # the second example's heads
    w = net(*(z.transpose(0, 1) for z in (x, y, y)), attn_mask=each)[1]
    assert (w[1, :, 0] == 0).all().item() and (w[0] > 0).all().item()


def test_one_product_and_three_agree():
    net = filled(nn.MultiheadAttention(6, 2))
    x = tensor(array(4, 2, 6))
    close(net(x, x, x)[0], net(x, x.clone(), x)[0].detach().numpy())


def test_first_values_and_names():
    net = nn.MultiheadAttention(64, 4)
    assert [n for n, _ in net.named_parameters()] == [
        "in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    bound = math.sqrt(6 / 256)
    assert 0.95 * bound < net.in_proj_weight.abs().max().item() <= bound
    assert (net.in_proj_bias == 0).all().item()
    assert (net.out_proj.bias == 0).all().item()
    assert list(nn.MultiheadAttention(4, 2, bias=False).state_dict()) == [
        "in_proj_weight", "out_proj.weight"]
    layer = nn.TransformerDecoderLayer(4, 2)
    assert layer.linear1.weight.shape == (2048, 4)
    assert [n for n, _ in layer.named_children()] == [
        "self_attn", "multihead_attn", "linear1", "dropout", "linear2",
        "norm1", "norm2", "norm3", "dropout1", "dropout2", "dropout3"]
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 3,
                                  nn.LayerNorm(4))
    assert len(stack.layers) == 3
    assert td.equal(stack.layers[0].linear1.weight,
                    stack.layers[2].linear1.weight)
    assert "layers.2.self_attn.out_proj.bias" in stack.state_dict()
    assert len({id(p) for p in stack.parameters()}) == 3 * 12 + 2


def test_bad_heads_masks_and_layers():
    for make in (lambda: nn.MultiheadAttention(5, 2),
                 lambda: nn.MultiheadAttention(4, 0),
                 lambda: nn.PositionalEncoding(5)):
        with pytest.raises(ValueError):
            make()
    with pytest.raises(RuntimeError, match="activation"):
        nn.TransformerEncoderLayer(4, 2, activation="sine")
    net, x = nn.MultiheadAttention(4, 2), td.zeros(3, 2, 4)
    for named, words in (
            ({"attn_mask": td.zeros(3, 4)}, r"attn_mask .*\[3, 3\]"),
            ({"attn_mask": td.zeros(2, 3, 3)}, r"\[4, 3, 3\]"),
            ({"key_padding_mask": td.zeros(3, 2)}, r"key_padding.*\[2, 3\]"),
            ({"is_causal": True}, "attn_mask")):
        with pytest.raises(RuntimeError, match=words):
            net(x, x, x, **named)
    for bad in ((x, x, x[0]), (x[:, :, :3],) * 3, (x[0, 0],) * 3):
        with pytest.raises(RuntimeError, match="expected query"):
            net(*bad)


def test_positions():
    code = nn.PositionalEncoding(6, max_len=50)
    t, i = np.arange(50.0)[:, None], np.arange(3)
    want = np.zeros((50, 6))
    want[:, ::2] = np.sin(t / 10000 ** (2 * i / 6))
    want[:, 1::2] = np.cos(t / 10000 ** (2 * i / 6))
    x = td.zeros(7, 2, 6)
    np.testing.assert_allclose(code(x, offset=3)[:, 1].numpy(), want[3:10],
                               1e-5, 1e-6)
    np.testing.assert_allclose(code(td.zeros(7, 6)).numpy(), want[:7],
                               1e-5, 1e-6)
    assert not code.state_dict() and not list(code.parameters())
    with pytest.raises(ValueError, match="max_len"):
        code(x, offset=44)
    first = nn.PositionalEncoding(6, 50, batch_first=True)
    np.testing.assert_allclose(first(td.zeros(2, 7, 6))[1].numpy(), want[:7],
                               1e-5, 1e-6)
    learnt = nn.LearnedPositionalEncoding(6, 9)
    learnt(td.zeros(4, 2, 6)).sum().backward()
    assert (learnt.weight.grad[:4] == 2).all().item()
    assert (learnt.weight.grad[4:] == 0).all().item()


def test_swiglu():
    net = filled(nn.SwiGLU(3, 5))
    x = array(2, 3)
    g, u, d = (p.detach().numpy() for p in net.parameters())
    a = x @ g.T
    close(net(tensor(x)), (a / (1 + np.exp(-a)) * (x @ u.T)) @ d.T)


def test_dropout_only_in_training_and_copies_are_apart():
    net = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5)
    x = td.randn(3, 2, 4)
    assert not td.equal(net(x), net(x))
    net.eval()
    assert td.equal(net(x), net(x))
    twin = copy.deepcopy(net)
    with td.no_grad():
        twin.linear1.weight.zero_()
    assert (net.linear1.weight != 0).any().item()


class Writer(nn.Module):
    """A small GPT: rotary positions, causal attention, SwiGLU."""

    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Parameter(td.randn(words, width) * 0.3)
        self.look = nn.Linear(width, 3 * width)
        self.norms = nn.Sequential(nn.RMSNorm(width), nn.RMSNorm(width))
        self.think = nn.SwiGLU(width, 2 * width)

    def forward(self, text):
        x = F.embedding(text, self.words)
        n, t, e = x.shape
        q, k, v = (y.reshape(n, t, 2, e // 2).transpose(1, 2)
                   for y in self.look(self.norms[0](x)).chunk(3, -1))
        o = F.scaled_dot_product_attention(
            F.rotary_embedding(q), F.rotary_embedding(k), v, is_causal=True)
        x = x + o.transpose(1, 2).reshape(n, t, e)
        x = x + self.think(self.norms[1](x))
        return x @ self.words.T


def test_a_small_gpt_learns_to_copy():
    """A text of three words that comes again: the rest is known."""
    td.manual_seed(0)
    net = Writer(8, 16)
    opt = td.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    for _ in range(200):
        text = td.randint(0, 8, (32, 4)).repeat(1, 2)
        opt.zero_grad()
        scores = net(text[:, :-1])[:, 3:]
        loss = F.cross_entropy(scores.reshape(-1, 8),
                               text[:, 4:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    assert loss.item() < 1.0                # who guesses has 2.08
    a = net(text)
    changed = text.clone()
    changed[:, 5:] = 0
    b = net(changed)
    np.testing.assert_allclose(a[:, :5].detach().numpy(),
                               b[:, :5].detach().numpy(), 1e-4, 1e-5)


def test_a_compiled_step_equals_an_eager_one():
    td.manual_seed(2)
    net = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    x = td.randn(3, 2, 4)
    fast = td.jit(lambda x: net(x))
    for _ in range(2):
        np.testing.assert_allclose(fast(x).detach().numpy(),
                                   net(x).detach().numpy(), 1e-4, 1e-5)


def test_causal_hints_need_a_mask():
    x, mask = td.randn(3, 1, 4), nn.Transformer.generate_square_subsequent_mask(3)
    layer = nn.TransformerEncoderLayer(4, 2, 5, 0.0)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    assert td.equal(encoder(x, mask, is_causal=True), encoder(x, mask))
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 5, 0.0), 1)
    assert td.equal(decoder(x, x, mask, tgt_is_causal=True), decoder(x, x, mask))
    for refused in (lambda: layer(x, is_causal=True), lambda: encoder(x, is_causal=True),
                    lambda: decoder(x, x, tgt_is_causal=True), lambda: decoder(x, x, memory_is_causal=True)):
        with pytest.raises(RuntimeError, match="is_causal"):
            refused()
    with pytest.raises(TypeError):
        nn.TransformerEncoder(layer, 1, nrom=None)
