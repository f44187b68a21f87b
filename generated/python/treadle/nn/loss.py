# SPDX-License-Identifier: MIT
# Tangled from the chapter "containers": edit that, not this file.
# needs: layers
"""Losses as modules."""
from ._losses import _reduction
from .activation import Activation, Given, layers


class _Loss(Activation):
    _printed = ""

    def _ready(self):
        given = self.__dict__
        self.reduction = _reduction(self.reduction, *(
            given.get(name) for name in ("size_average", "reduce")))
        for name in self._given:
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, given.pop(name))
            elif name in ("size_average", "reduce"):
                given[name] = None


layers(globals(), "MSELoss=mse_loss l1_loss smooth_l1_loss huber_loss "
       "NLLLoss=nll_loss CrossEntropyLoss=cross_entropy "
       "BCELoss=binary_cross_entropy KLDivLoss=kl_div "
       "BCEWithLogitsLoss=binary_cross_entropy_with_logits "
       "soft_margin_loss hinge_embedding_loss multi_margin_loss "
       "PoissonNLLLoss=poisson_nll_loss", _Loss, 2)
layers(globals(), "margin_ranking_loss cosine_embedding_loss "
       "triplet_margin_loss", _Loss, 3)
layers(globals(), "GaussianNLLLoss=gaussian_nll_loss", _Loss, 3,
       kind=Given.KEYWORD_ONLY)
