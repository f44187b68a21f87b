# SPDX-License-Identifier: MIT
# Tangled from the chapter "containers": edit that, not this file.
# needs: layers
"""Losses as functions."""
import math as _math
import warnings as _warnings
from .. import _C
from .._forms import broadcast_tensors as _broadcast


def _reduction(reduction, size_average=None, reduce=None):
    if size_average is None and reduce is None:
        return reduction
    if isinstance(size_average, str):
        return size_average
    return "none" if reduce is False else \
        "sum" if size_average is False else "mean"


def _pair(input, target):
    if input.shape == target.shape:
        return input, target
    _warnings.warn(f"a target of shape {tuple(target.shape)} is "
                   f"broadcast with an input of {tuple(input.shape)}",
                   UserWarning, stacklevel=3)
    return _broadcast(input, target)


_forms = {name: getattr(_C, name).__text_signature__[1:-1] for name in (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "cross_entropy", "nll_loss", "binary_cross_entropy", "kl_div",
    "soft_margin_loss")}
_forms.update({
    "binary_cross_entropy_with_logits":
    "input, target, weight=None, reduction='mean', pos_weight=None",
    "hinge_embedding_loss":
    "input, target, margin=1.0, reduction='mean'",
    "margin_ranking_loss":
    "input1, input2, target, margin=0, reduction='mean'"})
_function = """def {name}({parameters}):
    reduction = _reduction(reduction{old})
{more}    return _C.{name}({given})
"""
_more = {
    "kl_div": """    if reduction == "batchmean":
        return kl_div(input, target, None, None, "sum", log_target) \\
            / input.shape[0]
""", **dict.fromkeys(
        ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
        "    input, target = _pair(input, target)\n")}
for _name, _form in _forms.items():
    _given = [p.split("=")[0] for p in _form.split(", ")]
    _old = _name != "huber_loss"
    if _old:
        _form = _form.replace("reduction=", "reduce=None, reduction=")
        _at = "ignore_index" if "ignore_index" in _given else "reduce"
        _form = _form.replace(_at + "=", f"size_average=None, {_at}=")
    exec(_function.format(
        name=_name, parameters=_form, more=_more.get(_name, ""),
        old=", size_average, reduce" if _old else "",
        given=", ".join(f"{w}={w}" for w in _given)))
    globals()[_name].__doc__ = getattr(_C, _name).__doc__


def _reduced(loss, *how):
    reduction = _reduction(*how)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction {reduction!r} is not mean, sum or "
                         "none")
    return loss if reduction == "none" else getattr(loss, reduction)()


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return _C.vector_norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_embedding_loss(input1, input2, target, margin=0,
                          size_average=None, reduce=None,
                          reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where -1."""
    c = _C.cosine_similarity(input1, input2, -1)
    loss = _C.where(target == 1, 1 - c, 0.0) \
        + _C.where(target == -1, _C.clamp(c - margin, 0), 0.0)
    return _reduced(loss, reduction, size_average, reduce)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2,
                        eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean"):
    """max(0, margin + |anchor - positive| - |anchor - negative|)."""
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = _C.minimum(
            far, pairwise_distance(positive, negative, p, eps))
    near = pairwise_distance(anchor, positive, p, eps)
    return _reduced(_C.clamp(margin + near - far, 0), reduction,
                    size_average, reduce)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6,
                      reduction="mean"):
    """Surprise at target under a normal law of mean input."""
    if var.dim() < input.dim() and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    if (var < 0).any():
        raise ValueError("gaussian_nll_loss: var has negative entries")
    var = var + (_C.clamp(var, eps) - var).detach()
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduced(loss + 0.5 * _math.log(2 * _math.pi) if full
                    else loss, reduction)


def poisson_nll_loss(input, target, log_input=True, full=False,
                     size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    """Surprise at a count under the rate input, or exp(input)."""
    loss = input.exp() - target * input if log_input \
        else input - target * (input + eps).log()
    if full:
        t = _C.where(target > 1, target, 1.0)
        loss = loss + _C.where(target > 1, t * t.log() - t
                               + 0.5 * (2 * _math.pi * t).log(), 0.0)
    return _reduced(loss, reduction, size_average, reduce)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None,
                      size_average=None, reduce=None, reduction="mean"):
    """Mean over classes of max(0, margin - input[target] + input)^p."""
    at = target.unsqueeze(-1)
    miss = _C.clamp(margin - input.gather(-1, at) + input, 0) ** p
    if weight is not None:
        miss = miss * weight[target].unsqueeze(-1)
    miss = miss.scatter(-1, at, 0.0)
    return _reduced(miss.mean(-1), reduction, size_average, reduce)
