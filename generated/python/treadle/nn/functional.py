# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Layers and losses as functions."""
from .. import _C
from .._C import (cosine_similarity, normalize, one_hot,
                  rotary_embedding, scaled_dot_product_attention)
from .._forms import embedding
from ._curves import *
from ._arranging import *
from .._convolution import *
from ._normalising import *
from ._pooling import *
from ._losses import *


def linear(input, weight, bias=None):
    """input [..., in] times weight [out, in], or [in], plus bias."""
    if weight.ndim == 1 and bias is None:
        return _C.matmul(input, weight)
    return _C.linear(input, weight, bias)


def softmax(input, dim=-1, dtype=None):
    """Exponentials along dim, divided by their sum."""
    return _C.softmax(input, dim, dtype=dtype)


def log_softmax(input, dim=-1, dtype=None):
    """The logarithm of softmax, without its rounding."""
    return _C.log_softmax(input, dim, dtype=dtype)
