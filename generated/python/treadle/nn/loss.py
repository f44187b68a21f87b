# SPDX-License-Identifier: MIT
# Tangled from the chapter "losses": edit that, not this file.
# needs: layers
"""Losses as modules."""
from inspect import signature
from . import functional as F
from .module import Module


def _loss(name, function, tensors, keyword_only=False):
    own = list(signature(function).parameters.values())[tensors:]
    names = [p.name for p in own]
    kept = [n for n in names if n not in ("size_average", "reduce")]
    defaults = {p.name: p.default for p in own}

    def __init__(self, *options, **named):
        Module.__init__(self)
        given = {**defaults, **dict(zip(names, options)), **named}
        if len(options) > (0 if keyword_only else len(names)) \
                or given.keys() != defaults.keys():
            raise TypeError(f"{name}: expected the options {names}")
        given["reduction"] = F._reduction(
            given["reduction"], given.get("size_average"),
            given.get("reduce"))
        for n in kept:
            if n in ("weight", "pos_weight"):
                self.register_buffer(n, given[n])
            else:
                setattr(self, n, given[n])

    def forward(self, *tensors):
        return function(*tensors, **{n: getattr(self, n) for n in kept})
    return type(name, (Module,), {
        "__init__": __init__, "forward": forward,
        "__module__": __name__,
        "__doc__": f"See functional.{function.__name__}."})


_classes = {
    "MSELoss": (F.mse_loss, 2), "L1Loss": (F.l1_loss, 2),
    "SmoothL1Loss": (F.smooth_l1_loss, 2),
    "HuberLoss": (F.huber_loss, 2), "NLLLoss": (F.nll_loss, 2),
    "CrossEntropyLoss": (F.cross_entropy, 2),
    "BCELoss": (F.binary_cross_entropy, 2),
    "BCEWithLogitsLoss": (F.binary_cross_entropy_with_logits, 2),
    "KLDivLoss": (F.kl_div, 2),
    "SoftMarginLoss": (F.soft_margin_loss, 2),
    "HingeEmbeddingLoss": (F.hinge_embedding_loss, 2),
    "MarginRankingLoss": (F.margin_ranking_loss, 3),
    "CosineEmbeddingLoss": (F.cosine_embedding_loss, 3),
    "TripletMarginLoss": (F.triplet_margin_loss, 3),
    "GaussianNLLLoss": (F.gaussian_nll_loss, 3, True),
    "PoissonNLLLoss": (F.poisson_nll_loss, 2),
    "MultiMarginLoss": (F.multi_margin_loss, 2)}
globals().update((name, _loss(name, *row))
                 for name, row in _classes.items())
__all__ = [*_classes]
