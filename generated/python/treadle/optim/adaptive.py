# SPDX-License-Identifier: MIT
# Tangled from the chapter "schedules": edit that, not this file.
# needs: layers
"""Optimisers with a rate for each parameter."""
from .. import _C, Tensor
from .optimizer import Optimizer, options_of


class Adaptive(Optimizer):
    """What the optimisers of this file have in common."""
    _least_zero = ("lr", "eps", "weight_decay", "alpha", "momentum",
                   "lr_decay", "initial_accumulator_value")
    _below_one = ("betas",)

    def _states(self, p, *names, start=0.0):
        """The counter and the named states of p; None for no name."""
        state = self._state(p)
        if not isinstance(state.get("step"), Tensor):
            state["step"] = _C.tensor(float(state.get("step", 0)))
        for name in names:
            if name and name not in state:
                state[name] = _C.full_like(p.detach(), start)
        return [state["step"], *(state.get(n) for n in names)]


class Adam(Adaptive):
    """Averages of gradients, over the root of those of squares."""
    _decoupled, _decay = False, 0

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8,
                 weight_decay=None, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False,
                 fused=None):
        if weight_decay is None:
            weight_decay = self._decay
        super().__init__(params, options_of(locals()))

    def _update(self, p, grad, group):
        states = self._states(
            p, "exp_avg_sq", "exp_avg",
            "max_exp_avg_sq" if group["amsgrad"] else None)
        beta1, beta2 = group["betas"]
        _C.adam_step_(p, grad, *states, group["lr"], beta2,
                      group["eps"], group["weight_decay"],
                      group["maximize"], beta1, self._decoupled)


class AdamW(Adam):
    """Adam with a weight decay that the root does not touch."""
    _decoupled, _decay = True, 1e-2


class RMSprop(Adaptive):
    """Gradients over the root of an average of squares."""

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8,
                 weight_decay=0, momentum=0, centered=False,
                 foreach=None, maximize=False, differentiable=False):
        super().__init__(params, options_of(locals()))

    def _update(self, p, grad, group):
        states = self._states(
            p, "square_avg", "grad_avg" if group["centered"] else None,
            "momentum_buffer" if group["momentum"] else None)
        _C.rmsprop_step_(p, grad, *states, *map(group.get, (
            "lr", "alpha", "eps", "weight_decay", "maximize",
            "momentum")))


class Adagrad(Adaptive):
    """Gradients over the root of the sum of squares."""

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0,
                 initial_accumulator_value=0, eps=1e-10, foreach=None,
                 *, maximize=False, differentiable=False):
        super().__init__(params, options_of(locals()))

    def _update(self, p, grad, group):
        states = self._states(p, "sum",
                              start=group["initial_accumulator_value"])
        _C.adagrad_step_(p, grad, *states, *map(group.get, (
            "lr", "lr_decay", "eps", "weight_decay", "maximize")))


class Adadelta(Adaptive):
    """Gradients over their root mean square, times that of steps."""
    _below_one = ("rho",)

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6,
                 weight_decay=0, foreach=None, *, maximize=False,
                 differentiable=False):
        super().__init__(params, options_of(locals()))

    def _update(self, p, grad, group):
        rho, eps = group["rho"], group["eps"]
        step, square, moved = self._states(p, "square_avg", "acc_delta")
        step.add_(1)
        g = (-grad if group["maximize"] else grad) \
            + group["weight_decay"] * p
        square.mul_(rho).addcmul_(g, g, value=1 - rho)
        d = ((moved + eps) / (square + eps)).sqrt() * g
        moved.mul_(rho).addcmul_(d, d, value=1 - rho)
        p.add_(d, alpha=-group["lr"])
