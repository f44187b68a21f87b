# needs: models
# SPDX-License-Identifier: MIT
"""Models of known forms beside PyTorch and transformers, and a cache beside recomputation.

`make deps-peers` puts transformers into .peers; then
    PYTHONPATH=build/python .peers/bin/python -m pytest tests/python/test_models.py
"""
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import treadle as td
from treadle import models, nn

EXAMPLES = Path(__file__).resolve().parents[2] / "generated/examples"
F = nn.functional


def peer(name):
    try:
        return __import__(name)
    except ImportError as error:
        pytest.skip(f"{name} cannot be imported ({error}); make deps-peers installs it for .peers/bin/python")


@pytest.fixture
def torch():
    return peer("torch")


@pytest.fixture
def transformers():
    peer("torch")
    return peer("transformers")


def close(ours, theirs, tolerance=2e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), tolerance, tolerance)


def state_of(net, torch):
    return {name: torch.tensor(x.numpy()) for name, x in net.state_dict().items()}


def test_an_mlp_is_a_chain():
    net = models.MLP(5, 7, 3, activation=nn.Tanh)
    x = td.randn(4, 5)
    want = F.linear(F.linear(x, net[0].weight, net[0].bias).tanh(), net[2].weight, net[2].bias)
    close(net(x), want)
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with pytest.raises(ValueError, match=r"MLP: expected the sizes .*\(5,\)"):
        models.MLP(5)


def test_a_cnn_answers_as_its_formula_in_torch(torch):
    T, net = torch.nn.functional, models.CNN(7, (3, 5), 11)
    w, x = state_of(net, torch), torch.rand(2, 784)
    y = x.view(2, 1, 28, 28)
    for name in ("conv1", "conv2"):
        y = T.max_pool2d(T.relu(T.conv2d(y, w[name + ".weight"], w[name + ".bias"], padding=1)), 2)
    y = T.linear(T.relu(T.linear(y.flatten(1), w["fc1.weight"], w["fc1.bias"])), w["fc2.weight"], w["fc2.bias"])
    ours = td.from_numpy(x.numpy())
    close(net(ours), y)
    close(net(ours.view(2, 1, 28, 28)), y)
    with pytest.raises(RuntimeError):           # not one image of four
        net(td.zeros(4, 1, 14, 14))


@pytest.mark.parametrize("projection", [False, True])
def test_resnet20_answers_as_its_formula_in_torch(torch, projection):
    T, net = torch.nn.functional, models.resnet20(7, projection)
    td.manual_seed(1)
    net(td.randn(4, 3, 32, 32))                 # running statistics that are not the first
    w, x = state_of(net, torch), torch.randn(2, 3, 32, 32)

    def conv(x, name, norm, stride=1):
        y = T.conv2d(x, w[name + ".weight"], stride=stride, padding=w[name + ".weight"].shape[-1] // 2)
        return T.batch_norm(y, *(w[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")))

    y = T.relu(conv(x, "conv1", "bn1"))
    for name, stride in [(f"layer{i}.{j}", 2 if i > 1 and j == 0 else 1) for i in (1, 2, 3) for j in (0, 1, 2)]:
        z = conv(T.relu(conv(y, name + ".conv1", name + ".bn1", stride)), name + ".conv2", name + ".bn2")
        if stride == 2:
            n = y.shape[1] // 2
            y = conv(y, name + ".downsample.0", name + ".downsample.1", 2) if projection \
                else T.pad(y[:, :, ::2, ::2], (0, 0, 0, 0, n, n))
        y = T.relu(y + z)
    y = T.linear(y.mean((2, 3)), w["fc.weight"], w["fc.bias"])
    close(net.eval()(td.from_numpy(x.numpy())), y, 1e-4)
    if not projection:                          # He et al., table 6: 0.27 million
        assert sum(p.numel() for p in models.resnet20().parameters()) == 269722
        assert sum(name.endswith("weight") and x.ndim > 1 for name, x in w.items()) == 20


def test_a_forecaster_answers_as_pytorch(torch):
    net = models.Forecaster(2, 5, num_layers=2, horizon=3)
    theirs, fc = torch.nn.LSTM(2, 5, 2, batch_first=True), torch.nn.Linear(5, 3)
    w = state_of(net, torch)
    theirs.load_state_dict({n[5:]: x for n, x in w.items() if n.startswith("lstm.")})
    fc.load_state_dict({n[3:]: x for n, x in w.items() if n.startswith("fc.")})
    x = torch.randn(4, 7, 2)
    close(net(td.from_numpy(x.numpy())), fc(theirs(x)[0][:, -1]))


OLD = {"n_inner": 31}
NEW = {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False, "tied": False}
MIXED = {"positions": "rotary", "activation": "gelu"}


def gpt(**options):
    """A small GPT whose weights are large enough to matter."""
    td.manual_seed(3)
    net = models.GPT(models.GPTConfig(**{"vocab_size": 29, "n_positions": 17, "n_embd": 24, "n_layer": 3, "n_head": 3,
                                         **options})).eval()
    with td.no_grad():
        for p in net.parameters():
            p.normal_(0, 0.3)
    return net


@pytest.mark.parametrize("options", [OLD, NEW, MIXED])
@pytest.mark.parametrize("pieces", [(17,), (1,) * 17, (5, 1, 1, 1, 4, 5), (3, 14)])
def test_reading_in_pieces_is_reading_at_once(options, pieces):
    net, ids = gpt(**options), td.randint(0, 29, (4, 17))
    cache, parts, start = {}, [], 0
    with td.no_grad():
        for n in pieces:
            parts.append(net(ids[:, start:start + n], cache))
            start += n
        close(td.cat(parts, 1), net(ids))
    assert sorted(cache) == [0, 1, 2] and cache[1][0].shape == (4, 3, 17, 8)


@pytest.mark.parametrize("options", [OLD, NEW])
def test_a_cache_writes_what_recomputation_writes(options):
    net, ids = gpt(**options), td.randint(0, 29, (5, 4))
    for how in ({}, {"temperature": 0.7, "top_k": 6}, {"temperature": 0}):
        with_cache, without = (net.generate(ids, 14, use_cache=kept, generator=td.Generator().manual_seed(11), **how)
                               for kept in (True, False))
        assert with_cache.shape == (5, 18) and td.equal(with_cache, without) and td.equal(with_cache[:, :4], ids)
    again = net.generate(ids, 13, generator=td.Generator().manual_seed(11))
    assert td.equal(again, net.generate(ids, 13, generator=td.Generator().manual_seed(11)))
    assert len({tuple(row) for row in again.tolist()}) == 5


def test_greedy_is_temperature_zero_and_top_one():
    net, ids = gpt(), td.randint(0, 29, (2, 3))
    best = net.generate(ids, 6, temperature=0)
    with pytest.raises(ValueError, match="expected max_new_tokens and temperature >= 0 and top_k > 0, got -1"):
        net.generate(ids, -1)
    assert td.equal(best, net.generate(ids, 6, top_k=1)) and td.equal(net.generate(ids, 0), ids)
    said = ids
    with td.no_grad():
        for _ in range(6):
            said = td.cat([said, net(said)[:, -1:].argmax(-1)], 1)
    assert td.equal(best, said)


def test_top_k_and_temperature_leave_the_likely():
    net = gpt()
    with td.no_grad():
        order = net(td.tensor([[7]]))[0, -1].argsort(descending=True).tolist()
    ids = td.full((400, 1), 7, dtype=td.int64)
    drawn = net.generate(ids, 1, top_k=3, temperature=3.0, generator=td.Generator().manual_seed(1))
    assert set(drawn[:, 1].tolist()) == set(order[:3])
    cold = net.generate(ids, 1, temperature=1e-3)
    assert set(cold[:, 1].tolist()) == {order[0]}
    assert len(set(net.generate(ids, 1, top_k=1000)[:, 1].tolist())) > 3


def test_a_cache_is_copied_like_a_dictionary():
    net, ids = gpt(**NEW), td.randint(0, 29, (2, 9))
    with td.no_grad():
        cache = {}
        net(ids[:, :5], cache)
        other = dict(cache)
        close(net(ids[:, 5:], cache), net(ids)[:, 5:])
        close(net(ids[:, 5:], other), net(ids)[:, 5:])


def test_gradients_pass_through_a_cache():
    net, ids = gpt(**NEW).double(), td.randint(0, 29, (2, 9))
    net(ids).square().sum().backward()
    want = [p.grad for p in net.parameters()]
    net.zero_grad()
    cache = {}
    (net(ids[:, :4], cache).square().sum() + net(ids[:, 4:], cache).square().sum()).backward()
    for p, g in zip(net.parameters(), want):
        close(p.grad, g, 1e-10)


def test_what_a_gpt_refuses():
    net, ids = gpt(), td.randint(0, 29, (2, 17))
    with pytest.raises(ValueError, match="GPT: places 0 to 17, but there are positions for 17"):
        net(td.zeros(1, 18, dtype=td.int64))
    cache = {}
    with td.no_grad():
        net(ids[:, :16], cache)
        for _ in range(2):
            with pytest.raises(ValueError, match="places 16 to 17"):
                net(ids[:, :2], cache)
        close(net(ids[:, 16:], cache), net(ids)[:, 16:])        # a refusal keeps nothing
    with pytest.raises(ValueError, match="places 17 to 17"):
        net.generate(ids, 2)
    assert net.generate(ids, 1).shape == (2, 18)                # the last sign is not read
    with pytest.raises(ValueError, match=r"\[N, T\], got shape \[3\]"):
        net(td.zeros(3, dtype=td.int64))
    for bad in ({"temperature": -1}, {"top_k": 0}):
        with pytest.raises(ValueError, match="temperature >= 0 and top_k > 0"):
            net.generate(ids[:, :3], 1, **bad)
    for bad, words in (({"positions": "sine"}, r"positions must be one of \['learned', 'rotary'\], got 'sine'"),
                       ({"norm": "batch"}, "norm must be"), ({"activation": "relu"}, "activation must be"),
                       ({"n_head": 0}, "got 24 and 0"),
                       ({"n_head": 5}, "n_embd must be divisible by n_head, got 24 and 5")):
        with pytest.raises(ValueError, match=words):
            gpt(**bad)


def test_a_gpt_learns_and_dropout_acts_in_training_only():
    td.manual_seed(0)
    net = models.GPT(models.GPTConfig(5, 16, 16, 2, 2, dropout=0.1, **{k: NEW[k] for k in ("positions", "norm", "activation")}))
    ids = td.tensor([[(i * 3 + j) % 5 for i in range(17)] for j in range(5)])
    opt = td.optim.AdamW(net.parameters(), 1e-2)
    first = None
    for _ in range(80):
        opt.zero_grad()
        loss = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        opt.step()
        first = first or loss.item()
    assert first > 1.4 and loss.item() < 0.2
    a, b = (net(ids[:, :-1]) for _ in range(2))
    assert not td.equal(a, b)
    net.eval()
    assert td.equal(net(ids[:, :-1]), net(ids[:, :-1]))
    assert net.generate(ids[:1, :3], 9, temperature=0).tolist() == [ids[0, :12].tolist()]


def test_the_gpt_of_a_page_is_this_one(tmp_path, monkeypatch):
    """examples/gpt.py, whose text stands in the chapter on attention."""
    text = tmp_path / "text"
    text.write_text("".join(chr(97 + i * i % 23) for i in range(101000)))
    monkeypatch.setattr(sys, "argv", ["gpt.py", str(text), "10"])
    page = {}
    exec((EXAMPLES / "gpt.py").read_text(encoding="utf-8").split("\nprint(f")[0], page)
    net = models.GPT(models.GPTConfig(len(page["letters"]), 64, 96, 3, 4, positions="rotary", norm="rms", activation="gelu",
                                      bias=False, eps=None))
    ours = {"wte.weight": page["table"]}
    for i, w in enumerate(page["layers"]):
        for name, part in zip(("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"), ("ask", "mix", "up", "down")):
            ours[f"h.{i}.{name}.weight"] = w[part]
    missing = net.load_state_dict(ours, strict=False).missing_keys
    assert all(name.split(".")[-2].startswith("ln_") for name in missing)
    ids = page["data"][:150].view(3, 50)
    close(net(ids), page["gpt"](ids))


# Weights of others

def saved(transformers, folder, kind, config, **options):
    peer("torch").manual_seed(5)
    theirs = kind(config, **options).eval()
    theirs.save_pretrained(folder)
    return theirs


SIZES = {"vocab_size": 67, "n_positions": 40, "n_embd": 24, "n_layer": 3, "n_head": 4, "initializer_range": 0.3,
         "bos_token_id": 0, "eos_token_id": 0}


@pytest.mark.parametrize("options", [{}, {"tie_word_embeddings": False, "n_inner": 50}, {"activation_function": "gelu",
                                                                                         "layer_norm_epsilon": 1e-3}])
def test_a_gpt2_of_transformers_answers_here(transformers, torch, tmp_path, options):
    theirs = saved(transformers, tmp_path, transformers.GPT2LMHeadModel, transformers.GPT2Config(**{**SIZES, **options}))
    ours, ids = models.GPT.from_pretrained(tmp_path).eval(), torch.randint(0, 67, (3, 40))
    with torch.no_grad():
        want = theirs(ids).logits
        said = theirs.generate(ids[:, :7], max_new_tokens=20, do_sample=False, pad_token_id=0)
    here = td.tensor(ids.tolist())
    assert want.abs().max() > 3                 # nothing is near zero by accident
    close(ours(here), want, 1e-4)
    cache = {}
    with td.no_grad():
        close(td.cat([ours(here[:, :9], cache), ours(here[:, 9:], cache)], 1), want, 1e-4)
    want = said.tolist()
    for row, line in zip(ours.generate(here[:, :7], 20, temperature=0).tolist(), want):
        end = line.index(0, 7) if 0 in line[7:] else 27             # theirs stops at the end of a text
        assert row[:end] == line[:end]


def test_a_gpt2_without_prefix_and_with_its_masks(transformers, torch, tmp_path):
    theirs = saved(transformers, tmp_path, transformers.GPT2Model, transformers.GPT2Config(**SIZES))
    path = tmp_path / "model.safetensors"
    found = dict(td.load_file(path))
    assert "h.0.attn.c_attn.weight" in found
    found = {n: x.clone() for n, x in found.items()}
    found["h.0.attn.bias"], found["h.0.attn.masked_bias"] = td.ones(1, 1, 40, 40).tril(), td.tensor(-1e4)
    found["lm_head.weight"] = found["wte.weight"].clone()
    td.save_file(found, path)                   # as the file of 2019 has it
    ids = torch.randint(0, 67, (2, 11))
    with torch.no_grad():
        want = theirs(ids).last_hidden_state @ theirs.wte.weight.T
    close(models.GPT.from_pretrained(tmp_path).eval()(td.tensor(ids.tolist())), want, 1e-4)
    del found["h.1.ln_2.bias"]
    td.save_file(found, path)
    with pytest.raises(RuntimeError, match="missing keys: h.1.ln_2.bias"):
        models.GPT.from_pretrained(tmp_path)


def test_a_bert_of_transformers_answers_here(transformers, torch, tmp_path):
    config = transformers.BertConfig(vocab_size=67, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, type_vocab_size=3,
                                     intermediate_size=40, max_position_embeddings=30, initializer_range=0.3)
    theirs = saved(transformers, tmp_path, transformers.BertModel, config)
    ours, ids = models.BERT.from_pretrained(str(tmp_path)).eval(), torch.randint(0, 67, (3, 30))
    kinds, mask = torch.randint(0, 3, (3, 30)), torch.ones(3, 30, dtype=torch.long)
    mask[1, 11:], mask[2, 29] = 0, 0
    with torch.no_grad():
        for given in ((ids,), (ids[:, :5],), (ids, mask), (ids, mask, kinds), (ids, None, kinds)):
            want = theirs(*given)
            got = ours(*(None if x is None else td.tensor(x.tolist()) for x in given))
            for x, y in zip(got, (want.last_hidden_state, want.pooler_output)):
                close(x, y, 1e-4)
    with pytest.raises(ValueError, match="BERT: places 0 to 30, but there are positions for 30"):
        ours(td.zeros(1, 31, dtype=td.int64))
    old = {("bert." + n).replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x.clone()
           for n, x in td.load_file(tmp_path / "model.safetensors").items()}
    old.update({"cls.predictions.bias": td.zeros(67), "bert.embeddings.position_ids": td.arange(30)[None].clone()})
    td.save_file(old, tmp_path / "model.safetensors")       # names of 2018
    close(models.BERT.from_pretrained(tmp_path).eval()(td.tensor(ids.tolist()))[1], theirs(ids).pooler_output, 1e-4)


@pytest.mark.parametrize("cls, told, words", [
    ("GPT", {"model_type": "gpt_neo"}, r"model_type must be one of \['gpt2'\], got 'gpt_neo'"),
    ("GPT", {"model_type": "gpt2", "activation_function": "relu"}, "activation must be one of .*got 'relu'"),
    ("GPT", {"model_type": "gpt2", "scale_attn_weights": False}, "scale_attn_weights must be"),
    ("BERT", {"model_type": "bert", "hidden_act": "relu"}, r"hidden_act must be one of \['gelu'\]"),
    ("BERT", {"model_type": "bert", "is_decoder": True}, "is_decoder must"),
    ("BERT", {"model_type": "bert", "position_embedding_type": "relative_key"}, "position_embedding_type must")])
def test_what_we_cannot_do_is_refused_by_name(tmp_path, cls, told, words):
    (tmp_path / "config.json").write_text(json.dumps({"n_embd": 8, "n_head": 2, "n_layer": 1, "vocab_size": 5, **told}))
    with pytest.raises(ValueError, match=words):
        getattr(models, cls).from_pretrained(tmp_path)
    os.remove(tmp_path / "config.json")
    with pytest.raises(FileNotFoundError):
        getattr(models, cls).from_pretrained(tmp_path)


# Attention with other widths and further keys

@pytest.mark.parametrize("masks", ["none", "bool", "float"])
@pytest.mark.parametrize("options", [{"kdim": 5, "vdim": 7}, {"vdim": 3, "bias": False}, {"add_bias_kv": True},
                                     {"add_zero_attn": True, "batch_first": True},
                                     {"kdim": 5, "add_bias_kv": True, "add_zero_attn": True}])
def test_attention_with_other_widths_answers_as_pytorch(torch, options, masks):
    ours, theirs = (lib.nn.MultiheadAttention(6, 2, **options).double() for lib in (td, torch))
    w = theirs.state_dict()
    assert sorted(w) == sorted(ours.state_dict())
    assert {n for n, p in theirs._parameters.items() if p is None} <= {n for n, p in ours._parameters.items() if p is None}
    ours.load_state_dict({n: td.from_numpy(x.numpy().copy()) + 0.1 for n, x in w.items()})
    theirs.load_state_dict({n: x + 0.1 for n, x in w.items()})
    shapes = [(4, 3, 6), (5, 3, options.get("kdim", 6)), (5, 3, options.get("vdim", 6))]
    x = [torch.randn(*(s[1::-1] + s[2:] if options.get("batch_first") else s), dtype=torch.float64) for s in shapes]
    given = {}
    if masks != "none":
        given["attn_mask"] = torch.zeros(4, 5, dtype=torch.bool)
        given["attn_mask"][1, :2] = True
        given["key_padding_mask"] = torch.zeros(3, 5, dtype=torch.bool)
        given["key_padding_mask"][2, 3:] = True
        if masks == "float":
            given["attn_mask"] = torch.randn(4, 5, dtype=torch.float64)
    here = [td.from_numpy(y.numpy().copy()).requires_grad_() for y in x]
    named = {n: td.from_numpy(m.numpy().copy()) for n, m in given.items()}
    want, weights = theirs(*(y.requires_grad_() for y in x), **given)
    got, ours_weights = ours(*here, **named)
    close(got, want, 1e-10)
    close(ours_weights, weights, 1e-10)
    close(ours(*here, need_weights=False, **named)[0], want, 1e-10)
    want.square().sum().backward()
    got.square().sum().backward()
    for a, b in zip([*here, *(p for _, p in sorted(ours.named_parameters()))],
                    [*x, *(p for _, p in sorted(theirs.named_parameters()))]):
        close(a.grad, b.grad, 1e-9)


def test_first_values_of_further_keys():
    net = nn.MultiheadAttention(64, 4, kdim=32, vdim=16, add_bias_kv=True)
    assert net.in_proj_weight is None and net.k_proj_weight.shape == (64, 32) and net.bias_v.shape == (1, 1, 64)
    assert abs(net.q_proj_weight.abs().max().item() - (6 / 128) ** 0.5) < 0.01
    assert net.bias_k.std().item() > 0.05 and (net.kdim, net.vdim) == (32, 16)
    assert nn.MultiheadAttention(64, 4, kdim=64, vdim=64).q_proj_weight is None


@pytest.mark.parametrize("first, shapes, words", [
    (False, [(4, 3, 6), (5, 3, 4), (5, 3, 7)], r"widths \[6, 5, 7\].*got \[\[4, 3, 6\], \[5, 3, 4\], \[5, 3, 7\]\]"),
    (False, [(4, 3, 6), (5, 3, 5), (6, 3, 7)], "as many values as keys"), (False, [(4, 3, 6), (5, 1, 5), (5, 1, 7)], "one number"),
    (True, [(3, 4, 6), (1, 5, 5), (1, 5, 7)], "one number"), (False, [(4, 6), (5, 5), (6, 7)], "as many values"),
    (False, [(6,), (5,), (7,)], "2 or 3"), (False, [(4, 3, 6), (5, 5), (5, 7)], "expected query")])
def test_shapes_that_do_not_go_together(first, shapes, words):
    net = nn.MultiheadAttention(6, 2, kdim=5, vdim=7, batch_first=first)
    with pytest.raises(RuntimeError, match="MultiheadAttention: .*" + words):
        net(*(td.zeros(s) for s in shapes))
