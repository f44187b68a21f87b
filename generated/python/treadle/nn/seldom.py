# SPDX-License-Identifier: MIT
# Tangled from the chapter "seldom": edit that, not this file.
# needs: layers
"""Functions and modules that few programs call."""
from itertools import product
from .. import _C, nn, optim
from .._forms import meshgrid
from .._tensor import as_tensor
from ..optim.lbfgs import LBFGS
from . import functional as F
from ._losses import _reduced
from .activation import layers
from .containers import Embedding
from .loss import _Loss


# seldom: bags of rows
def embedding_bag(input, weight, offsets=None, max_norm=None,
                  norm_type=2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """The sum, mean or maximum of several rows of weight for each bag.

    input: [B, n], a bag in each row, or [n] with offsets [B] at which
    bags begin; per_sample_weights: factors of the shape of input, for
    mode "sum".  An empty bag is 0.
    """
    given = per_sample_weights
    # seldom: refuse bags that cannot be read
    if mode not in ("sum", "mean", "max"):
        raise ValueError("embedding_bag: mode must be 'sum', 'mean' or "
                         f"'max', got {mode!r}")
    if weight.ndim != 2 or input.ndim not in (1, 2) \
            or (offsets is None) != (input.ndim == 2):
        raise ValueError(
            "embedding_bag: expected a weight [rows, width] and an input "
            "[bags, n] without offsets or [n] with offsets; got "
            f"{list(weight.shape)}, {list(input.shape)} and offsets "
            f"{None if offsets is None else list(offsets.shape)}")
    if given is not None and (mode != "sum" or given.shape != input.shape):
        raise ValueError(
            "embedding_bag: per_sample_weights need mode='sum' and the "
            f"shape of input, got mode={mode!r}, {list(given.shape)} and "
            f"{list(input.shape)}")
    if offsets is not None:
        at = offsets.tolist()
        if at[:1] != [0] or at != sorted(at) or at[-1] > len(input) or (
                include_last_offset and at[-1] != len(input)):
            raise ValueError(
                "embedding_bag: offsets must begin with 0 and rise to at "
                f"most the {len(input)} indices (exactly, with "
                f"include_last_offset), got {at}")
    if input.ndim == 2:
        n, bags = len(input), _C.arange(0, len(input)) \
            .repeat_interleave(input.shape[1])
    else:
        n = len(offsets) - include_last_offset
        bags = _C.searchsorted(offsets[:n], _C.arange(0, len(input)),
                               right=True) - 1
    x = input.flatten()
    kept = slice(None) if padding_idx is None \
        else x != padding_idx % len(weight)
    bags = bags.to(x.device)[kept]
    rows = F.embedding(x[kept], weight, None, max_norm, norm_type,
                       scale_grad_by_freq, sparse)
    if given is not None:
        rows = rows * given.flatten()[kept].unsqueeze(1)
    zero = rows.new_zeros((n, weight.shape[1]))
    return zero.scatter_reduce(
        0, bags.unsqueeze(1).expand(rows.shape), rows,
        "amax" if mode == "max" else mode, include_self=False)
# seldom: reading at the places of a grid


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros",
                align_corners=None):
    """input [N, C, (D,) H, W] read at grid [N, ..., (x, y(, z))].

    mode: bilinear, nearest, bicubic (of pictures); padding_mode, what
    is seen outside of [-1, 1]: zeros, border, reflection.
    """
    n = input.ndim - 2
    # seldom: refuse grids that do not fit
    if n not in (2, 3) or grid.ndim != n + 2 or grid.shape[-1] != n \
            or len(grid) != len(input) or 0 in input.shape[2:] \
            or grid.dtype != input.dtype:
        raise RuntimeError(
            "grid_sample: expected an input [N, C, H, W] or [N, C, D, H, "
            "W] with pixels and a grid [N, ..., 2] or [N, ..., 3] of its "
            "dtype, "
            f"got {list(input.shape)} of {input.dtype} and "
            f"{list(grid.shape)} of {grid.dtype}")
    if mode not in ("bilinear", "nearest", "bicubic") or \
            padding_mode not in ("zeros", "border", "reflection") or \
            mode == "bicubic" and n == 3:
        raise ValueError(
            "grid_sample: expected mode 'bilinear', 'nearest' or (for "
            "pictures) 'bicubic' and padding_mode 'zeros', 'border' or "
            f"'reflection', got {mode!r} and {padding_mode!r}")
    flat, sizes = input.flatten(2), input.shape[2:]
    axes = [_taps(grid[..., n - 1 - d].flatten(1), size, mode,
                  padding_mode, bool(align_corners))
            for d, size in enumerate(sizes)]
    y = 0
    for corner in product(*axes):
        at, weight, inside = corner[0]
        for (i, w, here), size in zip(corner[1:], sizes[1:]):
            at, weight = at * size + i, weight * w
            inside = inside & here
        seen = flat.gather(2, at.unsqueeze(1).expand(
            -1, flat.shape[1], -1))
        y = y + _C.where(inside.unsqueeze(1), seen, 0) \
            * weight.unsqueeze(1)
    return y.reshape([*input.shape[:2], *grid.shape[1:-1]])


def _inside(p, size, mode, align):
    if mode == "reflection":
        low, span = (0, size - 1) if align else (-0.5, size)
        turned = (p - low).abs() % (2 * span or 1)
        p = span - (span - turned).abs() + low
    if mode != "zeros":
        edge = p.detach().clamp(0, size - 1)
        p = _C.where((p > 0) & (p < size - 1), p, edge)
    return p


def _cubic(t, near):
    return ((1.25 * t - 2.25) * t * t + 1) if near \
        else ((-0.75 * t + 3.75) * t - 6) * t + 3


def _taps(g, size, mode, padding_mode, align):
    p = (g + 1) / 2 * (size - 1) if align else ((g + 1) * size - 1) / 2
    if mode != "bicubic":
        p = _inside(p, size, padding_mode, align)
    below = p.round() if mode == "nearest" else p.floor()
    below = below.detach()
    part = p - below
    weights = [_C.where(part.isnan() | True, 1.0, part)] \
        if mode == "nearest" else \
        [1 - part, part] if mode == "bilinear" else \
        [_cubic(part + 1, False), _cubic(part, True),
         _cubic(1 - part, True), _cubic(2 - part, False)]
    taps = []
    for k, weight in enumerate(weights):
        at = below + k - (mode == "bicubic")
        if mode == "bicubic":
            at = _inside(at, size, padding_mode, align)
        here = at.clamp(0, size - 1)
        taps.append((here.to(_C.int64), weight, here == at))
    return taps


def affine_grid(theta, size, align_corners=None):
    """The grid [N, ..., n] of theta [N, n, n + 1] and size [N, C, ...].
    """
    n, (batch, _, *sizes) = len(size) - 2, size
    if n not in (2, 3) or list(theta.shape) != [batch, n, n + 1] \
            or min(sizes) < 1 or not theta.is_floating_point():
        raise ValueError(
            "affine_grid: expected theta [N, 2, 3] and a size [N, C, "
            "H, W], or [N, 3, 4] and [N, C, D, H, W], got "
            f"{list(theta.shape)} of {theta.dtype} and {list(size)}")
    lines = [_C.linspace(-1, 1, m, dtype=theta.dtype) * (
        1 if align_corners and m > 1 else (m - 1) / m) for m in sizes]
    places = meshgrid(*lines, indexing="ij")[::-1]
    base = _C.stack([*places, _C.ones_like(places[0])], -1)
    base = base.flatten(0, -2)
    return (base.to(theta.device) @ theta.transpose(1, 2)).reshape(
        [batch, *sizes, n])
# seldom: labels without times


_LOW = -1e30        # in place of -inf, which has no differences


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0,
             reduction="mean", zero_infinity=False):
    """-log of the probability that log_probs say targets.

    log_probs: [T, N, C] or [T, C]; targets: [N, S], or all labels one
    after the other; lengths: N numbers of times and of labels.
    """
    alone = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if alone else log_probs
    times, sizes = ([int(k) for k in as_tensor(v).reshape(-1).tolist()]
                    for v in (input_lengths, target_lengths))
    # seldom: refuse labels that do not fit
    if x.ndim != 3 or x.dtype not in (_C.float32, _C.float64) \
            or not 0 <= blank < x.shape[2]:
        raise ValueError(
            "ctc_loss: expected log_probs [T, N, C] of float32 or float64 "
            f"and a blank below C, got {list(log_probs.shape)} of "
            f"{log_probs.dtype} and {blank}")
    n, room = x.shape[1], list(targets.shape)
    fits = room == [sum(sizes)] or targets.ndim == 2 and \
        room[0] == n and max(sizes, default=0) <= room[1]
    if x.numel() < 1 or len(times) != n or len(sizes) != n or not fits \
            or not all(0 <= t <= len(x) for t in times) or min(sizes) < 0:
        raise ValueError(
            f"ctc_loss: expected {n} input_lengths from 0 to {len(x)} and "
            f"{n} target_lengths that fit targets {room}, got {times} and "
            f"{sizes}")
    rows = [row.tolist() for row in (
        targets if targets.ndim == 2 else targets.split(sizes))]
    # seldom: lay blanks around the labels
    def made(values):
        return _C.tensor(values, device=x.device)
    wide = 2 * max(sizes) + 1
    table = [[row[s // 2] if s % 2 and s // 2 < k else blank
              for s in range(wide)] for row, k in zip(rows, sizes)]
    labels, lengths = made(table), made(sizes)
    skip = made([[s > 1 and row[s] != row[s - 2] for s in range(wide)]
                 for row in table])
    begin = made([[s < 1 + (k > 0 < t) for s in range(wide)]
                  for k, t in zip(sizes, times)])
    final = made([[2 * k + 1, 2 * k] for k in sizes])
    ends = made([[t] for t in times])
    seen = x.gather(2, labels.expand(len(x), -1, -1)).clamp(min=_LOW)
    a = _C.where(begin, _C.where(ends > 0, seen[0], 0.0), _LOW)
    for t in range(1, max(times)):
        on, skipped = (_C.constant_pad_nd(a, (k, -k), _LOW)
                       for k in (1, 2))
        ways = _C.logaddexp(a, on).logaddexp(
            _C.where(skip, skipped, _LOW))
        a = _C.where(t < ends, ways + seen[t], a)
    a = _C.constant_pad_nd(a, (1, 0), _LOW)
    loss = -_C.logaddexp(*a.gather(1, final).unbind(1))
    bad = loss > -_LOW / 10
    loss = loss.masked_fill(bad, 0.0 if zero_infinity else float("inf"))
    if not zero_infinity and bad.any():
        score = x.clamp(min=_LOW).sum(2).t()
        lost = bad.unsqueeze(1) & (made([*range(len(x))]) < ends)
        loss = loss + _C.where(lost, score - score.detach(),
                               1.0).sqrt().sum(1) * 0
    if reduction == "mean":
        loss = loss / lengths.clamp(min=1)
    return _reduced(loss.squeeze(0) if alone else loss, reduction)


# seldom: modules seldom called
class EmbeddingBag(Embedding):
    """Sums, means or maxima of rows; see functional.embedding_bag."""
    _printed = Embedding._printed + " mode="

    def __init__(self, num_embeddings, embedding_dim, max_norm=None,
                 norm_type=2.0, scale_grad_by_freq=False, mode="mean",
                 sparse=False, _weight=None, include_last_offset=False,
                 padding_idx=None, device=None, dtype=None):
        super().__init__(num_embeddings, embedding_dim, padding_idx,
                         max_norm, norm_type, scale_grad_by_freq,
                         sparse, _weight, device, dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input, offsets=None, per_sample_weights=None):
        return embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset,
            self.padding_idx)


for _f in affine_grid, ctc_loss, embedding_bag, grid_sample:
    setattr(F, _f.__name__, _f)
layers(globals(), "CTCLoss=ctc_loss", _Loss, 4)
nn.EmbeddingBag, nn.CTCLoss, optim.LBFGS = EmbeddingBag, CTCLoss, LBFGS
