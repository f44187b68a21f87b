# SPDX-License-Identifier: MIT
# Tangled from the chapter "pictures": edit that, not this file.
# needs: layers
"""Borders, windows and sizes of pictures."""
from math import floor as _floor
from .. import _C
from .._C import pad, pixel_shuffle, pixel_unshuffle
from .._forms import _spread


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Windows of [N, C, H, W] as columns [N, C * kernel, places]."""
    return _C.im2col(input, *(_spread(v, 2) for v in (
        kernel_size, dilation, padding, stride)))


def fold(input, output_size, kernel_size, dilation=1, padding=0,
         stride=1):
    """Columns added up where unfold takes them from."""
    return _C.col2im(input, *(_spread(v, 2) for v in (
        output_size, kernel_size, dilation, padding, stride)))


def interpolate(input, size=None, scale_factor=None, mode="nearest",
                align_corners=None, recompute_scale_factor=None,
                antialias=False):
    """[N, C, ...] resized to a size or by a factor."""
    n = input.ndim - 2
    if antialias:
        raise NotImplementedError("interpolate: antialias is not "
                                  "available")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: expected either size or "
                         "scale_factor")
    if align_corners is not None and mode[:4] in ("near", "area"):
        raise ValueError("interpolate: align_corners does not go with "
                         f"mode {mode!r}")
    given = _spread(size if scale_factor is None else scale_factor, n)
    if len(given) != n:
        raise ValueError(f"interpolate: {len(given)} sizes or factors "
                         f"for {n} dimensions")
    scales = () if scale_factor is None or recompute_scale_factor \
        else map(float, given)
    if scale_factor is not None:
        given = [_floor(a * b) for a, b in zip(input.shape[2:], given)]
    if mode == "area":
        return getattr(_C, f"adaptive_avg_pool{n}d")(input, given)
    return _C.interpolate(input, given, mode, bool(align_corners),
                          *scales)


upsample = interpolate
