# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Optimisers."""
from . import _C
from ._assumed import assume
from ._C import Tensor
from ._grad_mode import enable_grad, no_grad


class Optimizer:
    """Groups of parameters with options, and a state for each."""

    def __init__(self, params, defaults):
        self.defaults, self.state, self.param_groups = defaults, {}, []
        if isinstance(params, Tensor):
            raise TypeError("params must be an iterable of Tensors or "
                            "dicts, not a Tensor")
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got no parameters")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # layers: methods of an optimiser
    def add_param_group(self, group):
        """Add a dict with "params" and options of its own."""
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("an optimizer can only optimize Tensors, "
                                f"not {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(p) in known:
                raise ValueError("a parameter appears in two groups")
            known.add(id(p))
        group = {**self.defaults, **group, "params": params}
        self.check(group)
        self.param_groups.append(group)

    def check(self, group):
        """Raise ValueError for options that make no sense."""

    def _options(self):
        return [{k: v for k, v in group.items() if k != "params"}
                for group in self.param_groups]

    def zero_grad(self, set_to_none=True):
        """Forget the gradients, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad.detach().zero_()
    def state_dict(self):
        """Options and states, parameters replaced by numbers."""
        number, groups = {}, []
        for group in self.param_groups:
            for p in group["params"]:
                number[id(p)] = len(number)
            groups.append({**group, "params": [number[id(p)]
                                               for p in group["params"]]})
        return {"state": {number[id(p)]: dict(s)
                          for p, s in self.state.items()},
                "param_groups": groups}

    def load_state_dict(self, state):
        """Take options and states from what state_dict returned."""
        theirs = state["param_groups"]
        sizes = [len(g["params"]) for g in self.param_groups]
        if [len(g["params"]) for g in theirs] != sizes:
            raise ValueError("load_state_dict: expected groups of "
                             f"{sizes} parameters, got "
                             f"{[len(g['params']) for g in theirs]}")
        every = [p for g in self.param_groups for p in g["params"]]
        for mine, group in zip(self.param_groups, theirs):
            mine.update((k, v) for k, v in group.items() if k != "params")
        self.state = {every[i]: {
            k: v.clone() if isinstance(v, Tensor) else v
            for k, v in s.items()} for i, s in state["state"].items()}

# layers: class SGD

class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    def __init__(self, params, lr=1e-3, momentum=0.0, dampening=0.0,
                 weight_decay=0.0, nesterov=False, *, maximize=False):
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening,
            "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize})

    def check(self, group):
        for name in ("lr", "momentum", "weight_decay"):
            if not group[name] >= 0:
                raise ValueError(f"SGD: {name} must be a number "
                                 f">= 0, got {group[name]}")
        if group["nesterov"] and not (
                group["momentum"] > 0 and group["dampening"] == 0):
            raise ValueError("SGD: nesterov needs momentum > 0 and "
                             "dampening = 0")

    @no_grad
    def step(self, closure=None):
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        assume(self._options)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, group)
        return loss

    # layers: one step of a parameter
    def _update(self, p, group):
        buffer, first = None, False
        if group["momentum"]:
            state = self.state.setdefault(p, {})
            first = state.get("momentum_buffer") is None
            if first:
                state["momentum_buffer"] = _C.zeros_like(p.detach())
            buffer = state["momentum_buffer"]
        _C.sgd_step_(p, p.grad, buffer, group["lr"], group["momentum"],
                     group["dampening"], group["weight_decay"],
                     group["nesterov"], group["maximize"], first)
