# SPDX-License-Identifier: MIT
# Tangled from the chapter "models": edit that, not this file.
"""Networks of known forms: MLP, CNN, ResNet, LSTM, GPT, BERT."""
import json
import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from . import _C
from ._grad_mode import no_grad
from ._tensor import _choose
from .safetensors import load_file
from .nn import (BatchNorm2d, Conv2d, Dropout, Embedding, GELU,
                 LayerNorm, Linear, LSTM, Module, ModuleList, ReLU,
                 RMSNorm, Sequential, SwiGLU, TransformerEncoder,
                 TransformerEncoderLayer, functional as F, init)


# models: class MLP
class MLP(Sequential):
    """[..., sizes[0]] to [..., sizes[-1]], an activation between."""

    def __init__(self, *sizes, activation=ReLU):
        if len(sizes) < 2:
            raise ValueError("MLP: expected the sizes of an input and "
                             f"an output at least, got {sizes}")
        layers = []
        for i, size in enumerate(zip(sizes, sizes[1:])):
            layers += [activation()] * (i > 0) + [Linear(*size)]
        super().__init__(*layers)
# models: class CNN


class CNN(Module):
    """[N, 1, 28, 28], or [N, 784], to scores [N, classes]."""

    def __init__(self, classes=10, channels=(32, 64), hidden=128):
        super().__init__()
        first, second = channels
        self.conv1 = Conv2d(1, first, 3, padding=1)
        self.conv2 = Conv2d(first, second, 3, padding=1)
        self.fc1 = Linear(second * 49, hidden)
        self.fc2 = Linear(hidden, classes)

    def forward(self, x):
        x = x.reshape(len(x), 1, 28, 28)
        for conv in (self.conv1, self.conv2):
            x = F.max_pool2d(F.relu(conv(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))
# models: class ResNet


class _Block(Module):
    def __init__(self, inside, outside, stride, projection):
        super().__init__()
        def conv(n, size, stride=1):
            return Conv2d(n, outside, size, stride, size // 2,
                          bias=False)
        self.conv1 = conv(inside, 3, stride)
        self.bn1 = BatchNorm2d(outside)
        self.conv2 = conv(outside, 3)
        self.bn2 = BatchNorm2d(outside)
        self.stride, self.more = stride, outside - inside
        self.downsample = Sequential(
            conv(inside, 1, stride), BatchNorm2d(outside)
        ) if projection and (stride > 1 or self.more) else None

    # models: answer of a block
    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        # models: follow the shapes of the block
        if self.downsample is not None:
            x = self.downsample(x)
        elif self.stride > 1 or self.more:
            half = self.more // 2
            x = F.pad(x[:, :, ::self.stride, ::self.stride],
                      (0, 0, 0, 0, half, self.more - half))
        return F.relu(x + y)


class ResNet(Module):
    """[N, 3, H, W] to scores: three stages of `blocks` blocks."""

    def __init__(self, blocks=3, num_classes=10, width=16,
                 projection=False):
        super().__init__()
        self.conv1 = Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = BatchNorm2d(width)
        n = width
        for i in (1, 2, 3):
            layer = Sequential()
            for stride in (min(i, 2), *[1] * (blocks - 1)):
                m, n = n, width << i - 1
                layer.append(_Block(m, n, stride, projection))
            setattr(self, f"layer{i}", layer)
        self.fc = Linear(n, num_classes)
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out",
                                     nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def resnet20(num_classes=10, projection=False):
    """The ResNet of 20 layers for images of 32 by 32."""
    return ResNet(3, num_classes, projection=projection)
# models: class Forecaster


class Forecaster(Module):
    """Series [N, T, input_size] to the next values [N, horizon]."""

    def __init__(self, input_size=1, hidden_size=64, num_layers=1,
                 horizon=1, dropout=0.0):
        super().__init__()
        self.lstm = LSTM(input_size, hidden_size, num_layers,
                         batch_first=True, dropout=dropout)
        self.fc = Linear(hidden_size, horizon)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])
# models: functions that check what a model is given


def _places(what, ids, start, most):
    if ids.ndim != 2:
        raise ValueError(f"{what}: expected numbers of signs [N, T], "
                         f"got shape {list(ids.shape)}")
    end = start + ids.shape[1]
    if end > most:
        raise ValueError(f"{what}: places {start} to {end - 1}, but "
                         f"there are positions for {most}")
    return end
# models: functions that read what others saved


def _load(cls, kind, folder, renamed, only, state):
    """A model of what transformers has saved in a folder."""
    folder = Path(folder)
    told = json.loads((folder / "config.json").read_text("utf-8"))
    for name, value in only.items():
        _choose(f"{folder}: {name}", told.get(name, value), [value])
    config = kind(**{
        f.name: told[name] for f in fields(kind)
        if (name := renamed.get(f.name, f.name)) in told})
    model = cls(config)
    model.load_state_dict(state(
        load_file(folder / "model.safetensors"), config))
    return model


_BERT = {r"^(bert\.)?(embeddings\.)?": "", "gamma$": "weight",
         "beta$": "bias", r"\.layer\.": ".layers.",
         r"attention\.self\.": "", r"(pooler)\.dense": r"\1",
         r"attention\.output\.dense": "self_attn.out_proj",
         r"attention\.output\.LayerNorm": "norm1",
         r"intermediate\.dense": "linear1", r"output\.dense": "linear2",
         r"output\.LayerNorm": "norm2"}
# models: class GPTConfig


@dataclass
class GPTConfig:
    """What a GPT is built from; by default GPT-2, without dropout."""
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int = None             # 4 n_embd, or 8/3 for "swiglu"
    positions: str = "learned"      # or "rotary"
    norm: str = "layer"             # or "rms"
    activation: str = "gelu_new"    # or "gelu", "swiglu"
    bias: bool = True
    tied: bool = True
    dropout: float = 0.0
    eps: float = 1e-5
    base: float = 10000.0           # of the rotation
# models: function draw


def _draw(model, parts):
    """Small normal weights; those added to a shortcut smaller still."""
    for name, p in model.named_parameters():
        last = name.endswith(("c_proj.weight", "down.weight"))
        if p.ndim > 1:
            init.normal_(p, 0.0, 0.02 / math.sqrt(parts if last else 1))
        elif name.endswith("bias"):
            init.zeros_(p)
# models: classes of the GPT


class _Layer(Module):
    def __init__(self, c, norm):
        super().__init__()
        self.ln_1, self.ln_2 = norm(), norm()
        self.attn, self.dropout = _Attention(c), Dropout(c.dropout)
        # models: choose how a place thinks
        form = _choose("GPT: activation", c.activation, {
            "gelu": "none", "gelu_new": "tanh", "swiglu": None})
        e = c.n_embd
        m = c.n_inner or (12 if form else 8) * e // 3
        self.mlp = Sequential({
            "c_fc": Linear(e, m, c.bias), "act": GELU(form),
            "c_proj": Linear(m, e, c.bias)}) if form else SwiGLU(e, m, c.bias)

    # models: look, then think
    def forward(self, x, cache, layer):
        x = x + self.dropout(self.attn(self.ln_1(x), cache, layer))
        return x + self.dropout(self.mlp(self.ln_2(x)))


class _Attention(Module):
    def __init__(self, c):
        super().__init__()
        if c.n_head < 1 or c.n_embd % c.n_head:
            raise ValueError("GPT: n_embd must be divisible by n_head, "
                             f"got {c.n_embd} and {c.n_head}")
        self.heads, self.p, self.base = c.n_head, c.dropout, c.base
        self.rotary = _choose("GPT: positions", c.positions,
                              {"learned": False, "rotary": True})
        self.c_attn = Linear(c.n_embd, 3 * c.n_embd, c.bias)
        self.c_proj = Linear(c.n_embd, c.n_embd, c.bias)

    # models: look back from each place
    def forward(self, x, cache, layer):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for y in self.c_attn(x).chunk(3, -1))
        p = self.p if self.training else 0.0
        # kv-cache: exercise kv-cache
        places, start = q.shape[2], 0
        if cache and layer in cache:
            start = cache[layer][0].shape[2]
        if self.rotary:
            at = _C.arange(start, start + places, dtype=_C.float64,
                           device=q.device)
            q, k = (F.rotary_embedding(y, at, base=self.base) for y in (q, k))
        if start:
            k, v = (_C.cat(two, 2) for two in zip(cache[layer], (k, v)))
        if cache is not None:
            cache[layer] = k, v
        mask = None
        if start and places > 1:
            mask = _C.ones(places, start + places, dtype=_C.bool,
                           device=q.device).tril(start)
        seen = F.scaled_dot_product_attention(q, k, v, mask, p, start == 0)
        return self.c_proj(seen.transpose(1, 2).flatten(2))


class GPT(Module):
    """Numbers of signs [N, T] to scores of the next [N, T, vocab]."""

    def __init__(self, config):
        super().__init__()
        self.config = c = config
        norm = _choose("GPT: norm", c.norm, {
            "layer": lambda: LayerNorm(c.n_embd, c.eps, bias=c.bias),
            "rms": lambda: RMSNorm(c.n_embd, c.eps)})
        self.wte = Embedding(c.vocab_size, c.n_embd)
        if c.positions == "learned":
            self.wpe = Embedding(c.n_positions, c.n_embd)
        self.dropout = Dropout(c.dropout)
        self.h = ModuleList(_Layer(c, norm) for _ in range(c.n_layer))
        self.ln_f = norm()
        if not c.tied:
            self.lm_head = Linear(c.n_embd, c.vocab_size, bias=False)
        _draw(self, 2 * c.n_layer)

    # models: methods of the GPT
    def forward(self, ids, cache=None):
        """cache: a dict, empty at first, that keeps what was read."""
        # models: score the next sign at each place
        start = cache[0][0].shape[2] if cache else 0
        end = _places("GPT", ids, start, self.config.n_positions)
        x = self.wte(ids)
        if self.config.positions == "learned":
            x = x + self.wpe.weight[start:end]
        x = self.dropout(x)
        for i, layer in enumerate(self.h):
            x = layer(x, cache, i)
        return F.linear(self.ln_f(x), (
            self.wte if self.config.tied else self.lm_head).weight)

    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None,
                 generator=None, use_cache=True):
        """ids [N, T], continued to [N, T + max_new_tokens].

        temperature=0 takes the likeliest; call eval() first.
        """
        if max_new_tokens < 0 or temperature < 0 \
                or top_k is not None and top_k < 1:
            raise ValueError("GPT.generate: expected max_new_tokens and "
                             "temperature >= 0 and top_k > 0, got "
                             f"{max_new_tokens}, {temperature} and {top_k}")
        # models: write sign after sign
        cache, new = {} if use_cache else None, ids
        with no_grad():
            for _ in range(max_new_tokens):
                scores = self(new if use_cache else ids, cache)[:, -1]
                # models: choose the next of each row
                if temperature == 0:
                    new = scores.argmax(-1, keepdim=True)
                else:
                    if top_k is not None:
                        least = _C.topk(scores, min(top_k, scores.shape[-1]))[0]
                        scores = scores.masked_fill(scores < least[:, -1:], -math.inf)
                    new = _C.multinomial(F.softmax(scores / temperature, -1), 1,
                                         generator=generator)
                ids = _C.cat([ids, new], 1)
        return ids

    @classmethod
    def from_pretrained(cls, folder):
        """What transformers' GPT2LMHeadModel.save_pretrained wrote.

        Its resid_pdrop is the dropout of all parts.
        """
        # models: names and shapes of GPT-2
        def state(found, config):
            ours, left = {}, (".attn.bias", ".masked_bias") \
                + ("lm_head.weight",) * config.tied
            for name, x in found.items():
                name = name.removeprefix("transformer.")
                if not name.endswith(left):
                    ours[name] = x.T if name.endswith((
                        "c_attn.weight", "c_fc.weight", "c_proj.weight")) else x
            return ours
        return _load(cls, GPTConfig, folder, {
            "eps": "layer_norm_epsilon", "dropout": "resid_pdrop",
            "tied": "tie_word_embeddings",
            "activation": "activation_function"}, {
            "model_type": "gpt2", "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False}, state)

# models: classes of BERT


@dataclass
class BERTConfig:
    """What a BERT is built from; names and defaults are its own."""
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.1


class BERT(Module):
    """Signs [N, T] to vectors [N, T, E] and, for each text, [N, E]."""

    def __init__(self, config):
        super().__init__()
        self.config = c = config
        e = c.hidden_size
        self.word_embeddings = Embedding(c.vocab_size, e)
        self.position_embeddings = Embedding(
            c.max_position_embeddings, e)
        self.token_type_embeddings = Embedding(c.type_vocab_size, e)
        self.LayerNorm = LayerNorm(e, c.layer_norm_eps)
        self.dropout = Dropout(c.hidden_dropout_prob)
        self.encoder = TransformerEncoder(TransformerEncoderLayer(
            e, c.num_attention_heads, c.intermediate_size,
            c.hidden_dropout_prob, "gelu", c.layer_norm_eps,
            batch_first=True), c.num_hidden_layers)
        self.pooler = Linear(e, e)
        _draw(self, 1)

    # models: methods of BERT
    def forward(self, input_ids, attention_mask=None,
                token_type_ids=None):
        """attention_mask [N, T]: 1 for signs, 0 for padding."""
        # models: answer with vectors
        end = _places("BERT", input_ids, 0,
                      self.config.max_position_embeddings)
        kinds = self.token_type_embeddings
        x = self.word_embeddings(input_ids) \
            + self.position_embeddings.weight[:end] \
            + (kinds.weight[0] if token_type_ids is None
               else kinds(token_type_ids))
        x = self.encoder(
            self.dropout(self.LayerNorm(x)), src_key_padding_mask=None
            if attention_mask is None else attention_mask == 0)
        return x, _C.tanh(self.pooler(x[:, 0]))

    @classmethod
    def from_pretrained(cls, folder):
        """What transformers' BertModel.save_pretrained wrote.

        Its hidden_dropout_prob is the dropout of all parts.
        """
        # models: names and shapes of BERT
        def state(found, config):
            ours = {}
            for name, x in found.items():
                for old, new in _BERT.items():
                    name = re.sub(old, new, name)
                if not name.startswith(("cls.", "position_ids")):
                    ours[name] = x
            for name in [n for n in ours if ".query." in n]:
                layer, kind = name.split(".query.")
                ours[f"{layer}.self_attn.in_proj_{kind}"] = _C.cat([
                    ours.pop(name.replace("query", part))
                    for part in ("query", "key", "value")])
            return ours
        return _load(cls, BERTConfig, folder, {}, {
            "model_type": "bert", "hidden_act": "gelu",
            "is_decoder": False,
            "position_embedding_type": "absolute"}, state)
