# SPDX-License-Identifier: MIT
# Tangled from the chapter "precision": edit that, not this file.
"""Functions of several operators under autocast."""
import sys
from functools import wraps
from . import _C, linalg, nn
from .func import _map


def _cast(function, low=False):
    @wraps(function)
    def cast(*args, **named):
        half = _C._autocast(None)
        to = half if low else _C.float32

        def give(x):
            return x.to(to) if half and getattr(x, "dtype", None) in (
                _C.float32, _C.float16, _C.bfloat16) else x
        try:
            args, named = _map(give, (args, named))
            return function(*args, **named)
        finally:
            _C._autocast(half)
    return cast


# precision: cast what is in the lists
_LISTED = """lstm vecdot bilinear cdist cosine_embedding_loss ctc_loss
    grid_sample local_response_norm lstsq max_unpool1d max_unpool2d
    max_unpool3d multi_margin_loss nanquantile pinverse
    poisson_nll_loss quantile triplet_margin_loss""".split()
for _home in (sys.modules[__package__], _C, _C.Tensor, linalg,
              nn.functional):
    for _name in _LISTED:
        if callable(vars(_home).get(_name)):
            setattr(_home, _name, _cast(vars(_home)[_name],
                                        _name in _LISTED[:2]))
for _layer in vars(nn).values():
    _old = getattr(_layer, "_function", None)
    if getattr(_old, "__name__", None) in _LISTED:
        _layer._function = staticmethod(_cast(_old))
