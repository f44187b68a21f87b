# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Optimizer, the base of every optimiser, and SGD."""
from collections import defaultdict
from .. import _C
from .._guards import assume, assumed
from .._C import Tensor
from .._grad_mode import enable_grad, no_grad
from ..nn.module import options_of, zero_grads

required = type("required", (), {})()


class Optimizer:
    """Groups of parameters with options, and a state for each.

    A subclass calls super().__init__(params, defaults) and defines
    step(), or _update(p, grad, group), which step() calls for each
    parameter with a gradient.  self.state[p] is a dict of its own.
    """
    _least_zero = _below_one = ()

    def __init__(self, params, defaults):
        self.defaults, self.param_groups = defaults, []
        self.state = defaultdict(dict)
        if defaults.get("differentiable"):
            raise NotImplementedError(f"{type(self).__name__}: "
                                      "differentiable must be False")
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
    def add_param_group(self, param_group):
        """Add a dict with "params" and options of its own."""
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need an order, and a set "
                            "has none; use a list")
        params = [params] if isinstance(params, Tensor) else list(params)
        known = {id(p) for p in self._every()}
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("an optimizer can only optimize Tensors, "
                                f"not {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(p) in known:
                raise ValueError("a parameter appears in two groups")
            known.add(id(p))
        group = {**self.defaults, **param_group, "params": params}
        missing = [k for k, v in group.items() if v is required]
        if missing:
            raise ValueError(f"a group has no value for {missing}")
        self.check(group)
        self.param_groups.append(group)

    def _every(self):
        return [p for g in self.param_groups for p in g["params"]]

    def check(self, group):
        """Raise ValueError for options that make no sense."""
        for name, value in group.items():
            several = value if isinstance(value, tuple) else (value,)
            below = name in self._below_one
            if (below or name in self._least_zero) and not all(
                    v >= 0 and not (below and v >= 1) for v in several):
                raise ValueError(
                    f"{type(self).__name__}: {name} must be "
                    f"{'numbers' if below else 'a number'} >= 0"
                    f"{' and < 1' * below}, got {value}")

    def _options(self, groups=None):
        return [{k: v for k, v in group.items() if k != "params"}
                for group in groups or self.param_groups]

    def zero_grad(self, set_to_none=True):
        """Forget the gradients, or set them to zero."""
        zero_grads(self._every(), set_to_none)
    def state_dict(self):
        """Options and states, parameters replaced by numbers."""
        number = {id(p): i for i, p in enumerate(self._every())}
        return {"state": {number.get(id(p), p): dict(s)
                          for p, s in self.state.items()},
                "param_groups": [
                    {**group, "params": [number[id(p)]
                                         for p in group["params"]]}
                    for group in self.param_groups]}

    def load_state_dict(self, state):
        """Take options and states from what state_dict returned."""
        theirs = state["param_groups"]
        sizes, given = ([len(g["params"]) for g in groups]
                        for groups in (self.param_groups, theirs))
        if given != sizes:
            raise ValueError("load_state_dict: expected groups of "
                             f"{sizes} parameters, got {given}")
        every = self._every()
        for mine, options in zip(self.param_groups, self._options(theirs)):
            mine.update(options)
        self.state = defaultdict(dict)
        for i, values in state["state"].items():
            p = every[i] if isinstance(i, int) else i
            self.state[p] = {k: _like(p, k, v) for k, v in values.items()}

    def __repr__(self):
        lines = [f"    {k}: {group[k]}" if k else f"Parameter Group {i}"
                 for i, group in enumerate(self._options())
                 for k in ("", *sorted(group))]
        return "\n".join([type(self).__name__ + " (", *lines, ")"])

    # layers: step of an optimiser
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
                grad = p.grad
                if grad is not None:
                    self._update(p, grad, group)
        return loss

    def _update(self, p, grad, group):
        raise NotImplementedError(
            f"{type(self).__name__} does not define step")

    def _state(self, p):
        if p in self.state or assumed.get() is None:
            return self.state[p]
        assume(object)
        return {}

# layers: class SGD


def _like(p, name, value):
    if not isinstance(value, Tensor):
        return value
    moves = name != "step" and value.is_floating_point()
    return value.detach().to(dtype=p.dtype, device=p.device).clone() \
        if moves else value.clone()


class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""
    _least_zero = ("lr", "momentum", "weight_decay")

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0,
                 weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None, differentiable=False, fused=None):
        super().__init__(params, options_of(locals()))

    def check(self, group):
        super().check(group)
        if group["nesterov"] and not (
                group["momentum"] > 0 and group["dampening"] == 0):
            raise ValueError("SGD: nesterov needs momentum > 0 and "
                             "dampening = 0")

    # layers: one step of a parameter
    def _update(self, p, grad, group):
        buffer, first = None, False
        if group["momentum"]:
            state = self._state(p)
            first = state.get("momentum_buffer") is None
            if first:
                state["momentum_buffer"] = _C.zeros_like(p.detach())
            buffer = state["momentum_buffer"]
        _C.sgd_step_(p, grad, buffer, *map(group.get, (
            "lr", "momentum", "dampening", "weight_decay", "nesterov",
            "maximize")), first)
