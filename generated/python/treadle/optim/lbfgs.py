# SPDX-License-Identifier: MIT
# Tangled from the chapter "seldom": edit that, not this file.
# needs: layers
"""Steps from the curvature that the last steps have shown."""
from math import sqrt
from .. import _C
from .._grad_mode import enable_grad, no_grad
from ..nn.utils import parameters_to_vector
from .optimizer import Optimizer, options_of


class LBFGS(Optimizer):
    """Limited-memory BFGS, with a line search if one is named."""
    _least_zero = ("lr", "max_iter", "tolerance_grad",
                   "tolerance_change", "history_size")

    def __init__(self, params, lr=1, max_iter=20, max_eval=None,
                 tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None):
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError("LBFGS: line_search_fn must be None or "
                             f"'strong_wolfe', got {line_search_fn!r}")
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, options_of(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS: all parameters must be in one "
                             f"group, got {len(self.param_groups)}")
        self._params = self._every()

    def _ask(self, closure, state):
        state["func_evals"] = state.get("func_evals", 0) + 1
        with enable_grad():
            loss = closure()
        return loss, float(loss), parameters_to_vector(
            _C.zeros_like(p) if p.grad is None else p.grad.detach()
            for p in self._params)

    def _move(self, direction, t):
        pieces = direction.split([p.numel() for p in self._params])
        for p, piece in zip(self._params, pieces):
            p.add_(piece.reshape(p.shape), alpha=t)

    def _direction(self, state, g, size):
        pairs = state["pairs"]
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        curved = y.dot(s).item()
        if curved > 1e-10:
            pairs.append((y, s, 1 / curved))
            del pairs[:-size or len(pairs)]
            state["H_diag"] = curved / y.dot(y).item()
        q, taken = -g, []
        for y, s, r in reversed(pairs):
            taken.append(s.dot(q).item() * r)
            q = q - taken[-1] * y
        q = q * state["H_diag"]
        for (y, s, r), a in zip(pairs, reversed(taken)):
            q = q + (a - y.dot(q).item() * r) * s
        return q

    @no_grad
    def step(self, closure):
        """At most max_iter steps; returns the loss before the first.

        closure() clears the gradients, computes the loss, calls its
        backward() and returns it.
        """
        o, state = self.param_groups[0], self.state[self._params[0]]
        first, loss, g = self._ask(closure, state)
        begun = state["func_evals"]
        for i in range(o["max_iter"]):
            if g.abs().max().item() <= o["tolerance_grad"]:
                break
            state["n_iter"] = state.get("n_iter", 0) + 1
            t = o["lr"]
            if state["n_iter"] == 1:
                state.update(pairs=[], H_diag=1, d=-g)
                t *= min(1, 1 / g.abs().sum().item())
            else:
                state["d"] = self._direction(state, g,
                                             o["history_size"])
            d, slope = state["d"], g.dot(state["d"]).item()
            state.update(prev_flat_grad=g, t=t)
            if slope > -o["tolerance_change"]:
                break
            old = loss
            if o["line_search_fn"]:
                t, loss, g, _ = self._search(closure, state, t, loss, g,
                                             slope)
                state["t"] = t
            self._move(d, t)
            if not o["line_search_fn"] and i + 1 < o["max_iter"]:
                _, loss, g = self._ask(closure, state)
            if state["func_evals"] - begun + 1 >= o["max_eval"] \
                    or (d * t).abs().max().item() \
                    <= o["tolerance_change"] \
                    or abs(loss - old) < o["tolerance_change"]:
                break
        return first

    def _search(self, closure, state, t, f, g, slope, most=25):
        d, tiny = state["d"], self.param_groups[0]["tolerance_change"]
        long = d.abs().max().item()

        def at(t):
            kept = [p.clone() for p in self._params]
            self._move(d, t)
            _, loss, g = self._ask(closure, state)
            for p, k in zip(self._params, kept):
                p.copy_(k)
            return t, loss, g, g.dot(d).item()

        def too_high(new, least):
            return new[1] > f + 1e-4 * new[0] * slope or new[1] >= least
        start = old = (0, f, g, slope)
        new, n = at(t), 0
        while n < most:
            high = too_high(new, old[1] if n > 1 else float("inf"))
            if not high and abs(new[3]) <= -0.9 * slope:
                return new
            if high or new[3] >= 0:
                ends = [old, new]
                break
            t = _lowest(old, new, new[0] + 0.01 * (new[0] - old[0]),
                        new[0] * 10)
            old, new, n = new, at(t), n + 1
        else:
            ends = [start, new]
        # seldom: close in between both ends
        ends.sort(key=lambda end: end[1])
        timid = False
        while n < most:
            low, high = sorted((ends[0][0], ends[1][0]))
            if (high - low) * long < tiny:
                break
            t, rim = _lowest(*ends, low, high), 0.1 * (high - low)
            near = min(high - t, t - low) < rim
            if near and (timid or not low < t < high):
                t = high - rim if high - t < t - low else low + rim
                near = False
            timid = near
            new, n = at(t), n + 1
            if too_high(new, ends[0][1]):
                ends[1] = new
                ends.sort(key=lambda end: end[1])
                continue
            if abs(new[3]) <= -0.9 * slope:
                return new
            if new[3] * (ends[1][0] - ends[0][0]) >= 0:
                ends[1] = ends[0]
            ends[0] = new
        return ends[0]


def _lowest(a, b, low, high):
    (x1, f1, _, g1), (x2, f2, _, g2) = sorted((a, b))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2
    d2 = sqrt(square)
    t = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    return min(max(t, low), high)
