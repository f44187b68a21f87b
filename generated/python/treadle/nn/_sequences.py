# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Batches of sequences of unequal length."""
from collections import namedtuple
from itertools import groupby
from .. import _C
from .._tensor import as_tensor
from . import functional


def pad_sequence(sequences, batch_first=False, padding_value=0.0,
                 padding_side="right"):
    """One tensor [longest, batch, ...] of tensors [length, ...]."""
    sequences = list(sequences)
    longest = max(map(len, sequences))
    if padding_side not in ("left", "right"):
        raise ValueError("pad_sequence: padding_side must be 'left' or "
                         f"'right', got {padding_side!r}")
    step = 1 if padding_side == "right" else -1
    return _C.stack([functional.pad(
        s, (0, 0) * (s.ndim - 1) + (0, longest - len(s))[::step],
        value=padding_value) for s in sequences], int(not batch_first))


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The tensors [length, ...] of one that is padded on the right."""
    x = padded_sequences
    x = x if batch_first else x.transpose(0, 1)
    return [row[:n] for row, n in zip(x, as_tensor(lengths).tolist(),
                              strict=True)]


def unpack_sequence(packed_sequences):
    """The tensors of a PackedSequence."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


def pack_padded_sequence(input, lengths, batch_first=False,
                         enforce_sorted=True):
    """[T, N, ...] without its padding, for N lengths."""
    x = input.transpose(0, 1) if batch_first else input
    sizes = [int(n) for n in as_tensor(lengths).tolist()]
    if len(sizes) != x.shape[1] or not sizes \
            or not all(0 < n <= len(x) for n in sizes):
        raise ValueError(
            f"pack_padded_sequence: expected {x.shape[1]} lengths from "
            f"1 to {len(x)}, got {sizes}")
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    if enforce_sorted and sizes != [sizes[i] for i in order]:
        raise RuntimeError(
            "pack_padded_sequence: lengths must fall, unless "
            f"enforce_sorted is False; got {sizes}")
    alive = [sum(n > t for n in sizes) for t in range(max(sizes))]
    data = x.flatten(0, 1).index_select(0, _rows(alive, order, x))
    places = (None, None) if enforce_sorted else (_C.tensor(
        list(v), device=x.device) for v in (order, _inverse(order)))
    return PackedSequence(data, _C.tensor(alive), *places)


def _inverse(order):
    return sorted(range(len(order)), key=order.__getitem__)


def _rows(alive, order, x):
    return _C.tensor([t * len(order) + i for t, n in enumerate(alive)
                      for i in order[:n]], device=x.device)


def pack_sequence(sequences, enforce_sorted=True):
    """Tensors [length, ...] as one PackedSequence."""
    sequences = list(sequences)
    return pack_padded_sequence(pad_sequence(sequences), [
        len(s) for s in sequences], False, enforce_sorted)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0,
                        total_length=None):
    """The padded tensor of a PackedSequence, and the lengths."""
    data, alive = sequence.data, sequence.batch_sizes.tolist()
    n, t = alive[0], total_length or len(alive)
    if t < len(alive):
        raise ValueError(f"pad_packed_sequence: total_length {t} is "
                         f"less than the longest, {len(alive)}")
    order = range(n) if sequence.sorted_indices is None \
        else sequence.sorted_indices.tolist()
    x = data.new_full((t * n, *data.shape[1:]), padding_value)
    x = x.index_copy(0, _rows(alive, order, x), data)
    x = x.unflatten(0, (t, n))
    sizes = [sum(m > k for m in alive) for k in _inverse(order)]
    return x.transpose(0, 1) if batch_first else x, _C.tensor(sizes)


class PackedSequence(namedtuple(
        "PackedSequence",
        "data batch_sizes sorted_indices unsorted_indices",
        defaults=(None, None))):
    """Rows of sequences, time by time; see pack_padded_sequence."""
    __slots__ = ()
    is_cuda = property(lambda self: self.data.is_cuda)

    def to(self, *args, **named):
        """With the data in another dtype or on another device."""
        return self._replace(data=self.data.to(*args, **named))

    def _through(self, net, hx):
        alive, pair = self.batch_sizes.tolist(), net.mode == "LSTM"
        sides, data = 1 + net.bidirectional, self.data
        shape = (net.num_layers * sides, alive[0], net.hidden_size)
        hx = [data.new_zeros(shape)] * (1 + pair) if hx is None \
            else list(hx) if pair else [hx]
        # strangers: refuse states that do not fit the packed rows
        if data.ndim != 2 or data.shape[1] != net.input_size \
                or any(tuple(h.shape) != shape for h in hx):
            raise RuntimeError(
                f"{type(net).__name__}: expected packed rows of "
                f"{net.input_size} numbers and states {list(shape)}, got "
                f"{list(data.shape)} and {[list(h.shape) for h in hx]}")
        if self.sorted_indices is not None:
            hx = [h.index_select(1, self.sorted_indices) for h in hx]
        op, last = getattr(_C, net.mode.lower()), []
        for i, weights in enumerate(net.all_weights):
            if i and i % sides == 0:
                data = functional.dropout(_C.cat(outs, -1), net.dropout,
                                          net.training)
            outs = outs if i % sides else []
            y, state = _stretches(op, data, alive, [
                h[i:i + 1] for h in hx], weights, net.bias, i % sides)
            outs.append(y)
            last.append(state)
        last = [_C.cat(h, 0) for h in zip(*last)]
        if self.unsorted_indices is not None:
            last = [h.index_select(1, self.unsorted_indices)
                    for h in last]
        return self._replace(data=_C.cat(outs, -1)), \
            tuple(last) if pair else last[0]


def _stretches(op, data, alive, state, weights, bias, back):
    pieces, at = [], 0
    for n, times in groupby(alive):
        t = len(list(times))
        pieces.append((data[at:at + t * n].unflatten(0, (t, n)), n))
        at += t * n
    outs = []
    for x, n in pieces[::-1] if back else pieces:
        own = [h[:, :n] for h in state]
        y, *new = op(x.flip(0) if back else x,
                     own if len(own) > 1 else own[0], weights,
                     bias, 1, 0.0, False, False, False)
        outs.append((y.flip(0) if back else y).flatten(0, 1))
        state = [_C.cat([h, old[:, n:]], 1)
                 for h, old in zip(new, state)]
    return _C.cat(outs[::-1] if back else outs), state
