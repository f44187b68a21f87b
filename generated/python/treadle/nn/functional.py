# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Layers and losses as functions."""
from .. import _C
from .._C import (cosine_similarity, linear, normalize, one_hot,
                  rotary_embedding, scaled_dot_product_attention)
from .._indexing import embedding
from ._curves import *
from ._arranging import *
from .._convolution import *
from ._normalising import *
from ._pooling import *


def softmax(input, dim=-1, dtype=None):
    """Exponentials along dim, divided by their sum."""
    return _C.softmax(input if dtype is None else input.to(dtype), dim)


def log_softmax(input, dim=-1, dtype=None):
    """The logarithm of softmax, without its rounding."""
    return _C.log_softmax(
        input if dtype is None else input.to(dtype), dim)


def mse_loss(input, target, reduction="mean"):
    """The mean (or "sum", or "none") of squared differences."""
    return _C.mse_loss(input, target, reduction=reduction)


def cross_entropy(input, target, weight=None, ignore_index=-100,
                  reduction="mean", label_smoothing=0.0):
    """The loss of a classifier.

    input: scores [N, C]; target: classes [N], int64.
    """
    return _C.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index,
        reduction=reduction, label_smoothing=float(label_smoothing))
