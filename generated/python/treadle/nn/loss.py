# SPDX-License-Identifier: MIT
# Tangled from the chapter "containers": edit that, not this file.
# needs: layers
"""Losses as modules."""
from . import functional as F
from .activation import Activation, layers
from .module import Module


class _Loss(Activation):
    extra_repr = Module.extra_repr

    def __init__(self, *options, **named):
        super().__init__(*options, **named)
        given = self.__dict__
        self.reduction = F._reduction(self.reduction, *(
            given.get(name) for name in ("size_average", "reduce")))
        for name in self._defaults:
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, given.pop(name))
            elif name in ("size_average", "reduce"):
                given[name] = None


__all__ = [
    *layers(globals(), {
        "MSELoss": F.mse_loss, "L1Loss": F.l1_loss,
        "SmoothL1Loss": F.smooth_l1_loss, "HuberLoss": F.huber_loss,
        "NLLLoss": F.nll_loss, "CrossEntropyLoss": F.cross_entropy,
        "BCELoss": F.binary_cross_entropy,
        "BCEWithLogitsLoss": F.binary_cross_entropy_with_logits,
        "KLDivLoss": F.kl_div, "SoftMarginLoss": F.soft_margin_loss,
        "HingeEmbeddingLoss": F.hinge_embedding_loss,
        "PoissonNLLLoss": F.poisson_nll_loss,
        "MultiMarginLoss": F.multi_margin_loss}, _Loss, 2),
    *layers(globals(), {
        "MarginRankingLoss": F.margin_ranking_loss,
        "CosineEmbeddingLoss": F.cosine_embedding_loss,
        "TripletMarginLoss": F.triplet_margin_loss}, _Loss, 3),
    *layers(globals(), {"GaussianNLLLoss": F.gaussian_nll_loss}, _Loss,
            3, _positional=0)]
