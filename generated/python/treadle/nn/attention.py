# SPDX-License-Identifier: MIT
# Tangled from the chapter "attention": edit that, not this file.
# needs: layers containers
"""Attention, transformers, and codes for positions."""
import copy
import math
from .. import _C
from . import functional as F, init
from .containers import ModuleList
from .layers import Linear
from .module import Module, Parameter
from .normalisation import LayerNorm
from .pooling import Dropout


class MultiheadAttention(Module):
    """Attention with several heads; True in a mask means masked out."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True,
                 add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None):
        # attention: refuse heads that cannot be
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError("MultiheadAttention: embed_dim must be divisible "
                             f"by num_heads, got {embed_dim} and {num_heads}")
        head_dim = embed_dim // num_heads
        kdim, vdim = kdim or embed_dim, vdim or embed_dim
        self._begin(locals())
        # attention: make the weights of several heads
        e, same = embed_dim, kdim == vdim == embed_dim
        one = add_bias_kv and (1, 1, e)
        self._add_parameters(locals(), {
            "in_proj_weight": same and (3 * e, e),
            **{f"{name}_proj_weight": not same and (e, n) for name, n in
               zip("qkv", (e, kdim, vdim))},
            "in_proj_bias": bias and (3 * e,), "bias_k": one, "bias_v": one})
        self.out_proj = Linear(e, e, bias, device, dtype)
        for p in self._matrices():
            init.xavier_uniform_(p)
        if bias:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if add_bias_kv:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    # attention: look with several heads
    def forward(self, query, key, value, key_padding_mask=None,
                need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        """[L, N, E] and twice [S, N, E], or with batch_first [N, ...].

        Returns [L, N, E] and the weights [N, L, S], or None.  attn_mask:
        [L, S] or [N * heads, L, S]; key_padding_mask: [N, S].
        """
        if is_causal and attn_mask is None:
            raise RuntimeError("MultiheadAttention: is_causal is a hint "
                               "about attn_mask, which is missing")
        alone = query.ndim == 2
        def turn(x):
            return x.unsqueeze(0) if alone else \
                x if self.batch_first else x.transpose(0, 1)
        q, k, v = self._project(query, key, value, turn)
        mask = self._mask(attn_mask, key_padding_mask if
                          key_padding_mask is None or not alone
                          else key_padding_mask.unsqueeze(0), q, k)
        # attention: append keys that every question sees
        places = k.shape[2]
        if self.bias_k is not None:
            k, v = (_C.cat((x, b.view(1, x.shape[1], 1, -1).expand(
                x.shape[0], -1, -1, -1)), 2)
                    for x, b in ((k, self.bias_k), (v, self.bias_v)))
        if self.add_zero_attn:
            k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
        if mask is not None and k.shape[2] > places:
            mask = F.pad(mask, (0, k.shape[2] - places))
        p = float(self.dropout) if self.training else 0.0
        weights = None
        if need_weights:
            weights = _C.attention_weights(q, k, mask, p)
            out = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights.squeeze(0) if alone else weights
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, p)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        return out.squeeze(0) if alone else turn(out), weights

    def _matrices(self):
        """One for questions, keys and values, or three."""
        return [p for name, p in self._parameters.items()
                if "proj_weight" in name and p is not None]

    def _project(self, query, key, value, turn):
        """Questions, keys and values, each [N, heads, L, d]."""
        # attention: refuse shapes that do not go together
        given = [list(x.shape) for x in (query, key, value)]
        at = 0 if self.batch_first else 1
        widths = [self.embed_dim, self.kdim, self.vdim]
        if {len(s) for s in given} not in ({2}, {3}) \
                or [s[-1] for s in given] != widths \
                or given[1][:-1] != given[2][:-1] \
                or query.ndim == 3 and given[0][at] != given[1][at]:
            raise RuntimeError(
                "MultiheadAttention: expected query, key and value of 2 or 3 "
                f"dimensions with widths {widths}, examples of one number, and "
                f"as many values as keys, got {given}")
        w, b = self._matrices(), self.in_proj_bias
        if len(w) == 1 and query is key and key is value:
            three = F.linear(turn(query), *w, b).chunk(3, -1)
        else:
            w = w if len(w) == 3 else w[0].chunk(3)
            biases = (None,) * 3 if b is None else b.chunk(3)
            three = [F.linear(turn(x), *wb) for x, *wb in
                     zip((query, key, value), w, biases)]
        return [x.unflatten(-1, (self.num_heads, self.head_dim))
                .transpose(1, 2) for x in three]

    def _mask(self, attention, padding, q, k):
        n, heads, rows, _ = q.shape
        columns = k.shape[2]
        masks = []
        for name, mask, *shapes in (
                ("attn_mask", attention, [rows, columns],
                 [n * heads, rows, columns]),
                ("key_padding_mask", padding, [n, columns])):
            if mask is None:
                continue
            if list(mask.shape) not in shapes:
                raise RuntimeError(
                    f"MultiheadAttention: {name} must be of shape "
                    + " or ".join(map(str, shapes))
                    + f", got {list(mask.shape)}")
            masks.append(mask[:, None, None] if mask is padding else
                         mask.unflatten(0, (n, heads)) if mask.ndim == 3
                         else mask)
        return sum(mask.to(q.dtype).masked_fill(mask, -math.inf)
                   if mask.dtype is _C.bool else mask
                   for mask in masks) if masks else None


class _Layer(Module):
    _crosses = False                # does it look at a second text?

    def __init__(self, d_model, nhead, dim_feedforward=2048,
                 dropout=0.1, activation="relu", layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True,
                 device=None, dtype=None):
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        activation = {"relu": F.relu, "gelu": F.gelu}.get(
            activation, activation)
        if not callable(activation):
            raise RuntimeError("activation must be 'relu', 'gelu' or a "
                               f"function, got {activation!r}")
        looks = ["self_attn", "multihead_attn"][:1 + self._crosses]
        for name in looks:
            setattr(self, name, MultiheadAttention(
                d_model, nhead, dropout, batch_first=batch_first,
                **made))
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm_first = norm_first
        parts = range(1, len(looks) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(
                d_model, layer_norm_eps, **made))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = activation

    def _through(self, x, *parts):
        """x + part(x) for each part, normalised before or after."""
        for i, part in enumerate((*parts, self._think), 1):
            norm = getattr(self, f"norm{i}")
            dropped = getattr(self, f"dropout{i}")
            x = x + dropped(part(norm(x))) if self.norm_first \
                else norm(x + dropped(part(x)))
        return x

    def _think(self, x):
        return self.linear2(self.dropout(self.activation(
            self.linear1(x))))


def _look(attention, x, memory, mask, padding, causal):
    return attention(x, memory, memory, padding, False, mask,
                     is_causal=bool(causal))[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention and a network of two layers."""

    def forward(self, src, src_mask=None, src_key_padding_mask=None,
                is_causal=False):
        """src: [S, N, E], or with batch_first [N, S, E], or [S, E]."""
        return self._through(src, lambda x: _look(
            self.self_attn, x, x, src_mask, src_key_padding_mask,
            is_causal))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to memory, a network of two layers."""
    _crosses = True

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        """tgt: [T, N, E] and memory: [S, N, E]; see the encoder's."""
        return self._through(tgt, lambda x: _look(
            self.self_attn, x, x, tgt_mask, tgt_key_padding_mask,
            tgt_is_causal), lambda x: _look(
            self.multihead_attn, x, memory, memory_mask,
            memory_key_padding_mask, memory_is_causal))


class _Stack(Module):
    def __init__(self, layer, num_layers, norm=None,
                 enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(layer)
                                 for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt, *others, **masks):
        """tgt and all that a layer takes beside it, as it takes it."""
        for layer in self.layers:
            tgt = layer(tgt, *others, **masks)
        return tgt if self.norm is None else self.norm(tgt)


class TransformerEncoder(_Stack):
    """num_layers copies of an encoder's layer, and a norm."""

    def forward(self, src, mask=None, src_key_padding_mask=None,
                is_causal=None):
        return super().forward(src, mask, src_key_padding_mask,
                               is_causal)


class TransformerDecoder(_Stack):
    """num_layers copies of a decoder's layer, and a norm."""


class Transformer(Module):
    """An encoder and a decoder; embeddings and output are yours."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6,
                 num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation="relu", custom_encoder=None,
                 custom_decoder=None, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True,
                 device=None, dtype=None):
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        def stack(kind, layer, n):
            return kind(layer(
                d_model, nhead, dim_feedforward, dropout, activation,
                layer_norm_eps, batch_first, norm_first, **made), n,
                LayerNorm(d_model, layer_norm_eps, **made))
        self.encoder = custom_encoder or stack(
            TransformerEncoder, TransformerEncoderLayer,
            num_encoder_layers)
        self.decoder = custom_decoder or stack(
            TransformerDecoder, TransformerDecoderLayer,
            num_decoder_layers)
        self.d_model, self.nhead = d_model, nhead
        self.batch_first = batch_first
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """[sz, sz]: -inf above the diagonal, 0 elsewhere."""
        return _C.triu(_C.full((sz, sz), -math.inf, dtype=dtype,
                               device=device), 1)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None,
                memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None,
                src_is_causal=None, tgt_is_causal=None,
                memory_is_causal=False):
        """src: [S, N, E], tgt: [T, N, E]; returns [T, N, E]."""
        memory = self.encoder(src, src_mask, src_key_padding_mask,
                              src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask,
                            tgt_key_padding_mask,
                            memory_key_padding_mask, tgt_is_causal,
                            memory_is_causal)


class PositionalEncoding(Module):
    """x + sines and cosines of the position, and dropout.

    x: [T, N, d] or [T, d], or with batch_first [N, T, d].
    """

    def __init__(self, d_model, max_len=5000, dropout=0.0,
                 batch_first=False):
        self._begin(locals())
        self.dropout = Dropout(dropout)
        self._make(max_len, d_model)

    def _make(self, max_len, d_model):
        if d_model % 2:
            raise ValueError("PositionalEncoding: d_model must be even,"
                             f" got {d_model}")
        t = _C.arange(0, max_len, dtype=_C.float64).unsqueeze(1)
        rate = _C.exp(_C.arange(0, d_model, 2, dtype=_C.float64)
                      * (-math.log(1e4) / d_model))
        angle = t * rate
        both = _C.stack([angle.sin(), angle.cos()], 2)
        self.register_buffer("weight", both.flatten(1).to(_C.float32),
                             persistent=False)

    def forward(self, x, offset=0):
        n = x.shape[1 if self.batch_first and x.ndim == 3 else 0]
        if offset + n > self.max_len:
            raise ValueError(
                f"{type(self).__name__}: positions {offset} to "
                f"{offset + n - 1}, but max_len is {self.max_len}")
        code = self.weight[offset:offset + n]
        if x.ndim == 3 and not self.batch_first:
            code = code.unsqueeze(1)
        return self.dropout(x + code)


class LearnedPositionalEncoding(PositionalEncoding):
    """x + a vector for each position that is learnt, and dropout."""

    def _make(self, max_len, d_model):
        self.weight = Parameter(_C.empty((max_len, d_model)))
        init.normal_(self.weight, 0.0, 0.02)


class SwiGLU(Module):
    """down(silu(gate(x)) * up(x)), the network of Llama's layers."""

    def __init__(self, in_features, hidden_features, bias=False,
                 device=None, dtype=None):
        super().__init__()
        made = bias, device, dtype
        self.gate = Linear(in_features, hidden_features, *made)
        self.up = Linear(in_features, hidden_features, *made)
        self.down = Linear(hidden_features, in_features, *made)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


__all__ = ["MultiheadAttention", "TransformerEncoderLayer",
           "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerDecoder", "Transformer", "PositionalEncoding",
           "LearnedPositionalEncoding", "SwiGLU"]
