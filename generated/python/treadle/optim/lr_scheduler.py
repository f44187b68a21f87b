# SPDX-License-Identifier: MIT
# Tangled from the chapter "schedules": edit that, not this file.
# needs: layers
"""Schedules: learning rates that follow the epochs."""
from bisect import bisect_right
from inspect import Signature, signature
from math import cos, inf, pi
from .._forms import _spread
from .optimizer import options_of


def _groups(optimizer):
    if not hasattr(optimizer, "param_groups"):
        raise TypeError(f"{type(optimizer).__name__} is not an "
                        "Optimizer")
    return optimizer.param_groups


def _of_groups(optimizer, what, value):
    """A list of one value for each group of the optimizer."""
    n = len(_groups(optimizer))
    values = list(_spread(value, n))
    if len(values) != n:
        raise ValueError(f"expected {n} {what}, got {len(values)}")
    return values


class LRScheduler:
    """Sets the rates of an optimiser, epoch by epoch.

    A subclass defines get_lr(), which returns the rates of all groups
    for epoch self.last_epoch.
    """
    _hidden = ("optimizer",)

    def __init__(self, optimizer, last_epoch=-1, verbose=False):
        groups = _groups(optimizer)
        for group in groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("initial_lr is missing in a group of an "
                               "optimizer that is resumed")
        self.optimizer, self.verbose = optimizer, verbose
        self.base_lrs = [group["initial_lr"] for group in groups]
        self.last_epoch, self._step_count = last_epoch, 0
        self.step()

    # schedules: epochs of a schedule
    def get_lr(self):
        raise NotImplementedError(
            f"{type(self).__name__} does not define get_lr")

    def get_last_lr(self):
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch=None):
        """Begin the next epoch, or the given one."""
        self._step_count += 1
        rates = self.get_lr
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            rates = getattr(self, "_get_closed_form_lr", rates)
        self.last_epoch = epoch
        self._set(rates(), "Adjusting")

    def _set(self, rates=(), how=""):
        groups = self.optimizer.param_groups
        for i, (group, rate) in enumerate(zip(groups, rates)):
            if rate is not None:
                group["lr"] = rate
                if self.verbose:
                    print(f"{how} learning rate of group {i} to "
                          f"{rate:.4e}.")
        self._last_lr = [group["lr"] for group in groups]

    def state_dict(self):
        """What is needed to go on later; functions are left out."""
        return {k: v for k, v in self.__dict__.items()
                if k not in self._hidden}

    def load_state_dict(self, state):
        """Go on from what state_dict returned."""
        self.__dict__.update(state)


_LRScheduler = LRScheduler


class _Curved(LRScheduler):
    eta_min = 0

    def _get_closed_form_lr(self):
        part = self._part(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * part
                for base in self.base_lrs]

    def get_lr(self):
        t, least = self.last_epoch, self.eta_min
        new, old = self._part(t), self._part(t - 1) if t else 1
        rates = [group["lr"] for group in self.optimizer.param_groups]
        if new == old:
            return rates
        return [least + (rate - least) * new / old if old else
                rate + (base - least) * new
                for rate, base in zip(rates, self.base_lrs)]


def _schedule(curve):
    """The class of schedules of curve(t, *options), a part of 1."""
    own = [*signature(curve).parameters.values()][1:]
    names = [p.name for p in own]
    base = [*signature(LRScheduler.__init__).parameters.values()]
    form = Signature([*base[:2], *own, *base[2:]])

    def __init__(self, *args, **named):
        given = form.bind(self, *args, **named)
        given.apply_defaults()
        given = given.arguments
        self.__dict__.update((n, given.pop(n)) for n in names)
        LRScheduler.__init__(**given)

    def _part(self, t):
        return curve(float(t), *(getattr(self, n) for n in names))
    __init__.__signature__ = form
    return type(curve.__name__, (_Curved,), {
        "__init__": __init__, "_part": _part, "__doc__": curve.__doc__,
        "__module__": __name__})


@_schedule
def StepLR(t, step_size, gamma=0.1):
    """The rates are multiplied by gamma every step_size epochs."""
    return float(gamma) ** (t // step_size)


@_schedule
def MultiStepLR(t, milestones, gamma=0.1):
    """The rates are multiplied by gamma at each milestone."""
    return gamma ** sum(t >= m for m in milestones)


@_schedule
def ExponentialLR(t, gamma):
    """The rates are multiplied by gamma every epoch."""
    return float(gamma) ** t


@_schedule
def ConstantLR(t, factor=1 / 3, total_iters=5):
    """The rates times factor, until epoch total_iters."""
    return factor if t < total_iters else 1


@_schedule
def LinearLR(t, start_factor=1 / 3, end_factor=1.0, total_iters=5):
    """From start_factor to end_factor in total_iters equal steps."""
    _within(locals(), "start_factor end_factor", high=1)
    return start_factor + (end_factor - start_factor) \
        * min(t, total_iters) / max(1, total_iters)


@_schedule
def PolynomialLR(t, total_iters=5, power=1.0):
    """base * (1 - t / total_iters) ** power, and 0 after that."""
    return (1 - min(t, total_iters) / max(1, total_iters)) ** power


def _within(given, names, low=0, high=inf):
    for name in names.split():
        if not low <= given[name] <= high:
            raise ValueError(f"{name}: expected {low} to {high}, got "
                             f"{given[name]}")


@_schedule
def CosineAnnealingLR(t, T_max, eta_min=0):
    """Half a cosine down to eta_min at epoch T_max, and up again."""
    return (1 + cos(pi * t / T_max)) / 2


@_schedule
def CosineAnnealingWarmRestarts(t, T_0, T_mult=1, eta_min=0):
    """Half cosines of T_0, T_0 * T_mult, ... epochs."""
    _within(locals(), "T_0 T_mult", 1)
    if T_mult == 1:
        t %= T_0
    while t >= T_0:
        t, T_0 = t - T_0, T_0 * T_mult
    return (1 + cos(pi * t / T_0)) / 2


@_schedule
def LinearWarmup(t, warmup_steps, total_steps):
    """Up to base in warmup_steps, then down to 0 at total_steps.

    With w = warmup_steps and n = total_steps, the rate of step t is
    base * (t + 1) / w for t < w, and base * max(0, n - t) / (n - w)
    after that.
    """
    _within(locals(), "warmup_steps")
    _within(locals(), "total_steps", max(1, warmup_steps))
    if t < warmup_steps:
        return (t + 1) / warmup_steps
    return max(0, total_steps - t) / max(1, total_steps - warmup_steps)


@_schedule
def WSD(t, warmup_steps, stable_steps, decay_steps, min_lr_ratio=0.0):
    """Up to base, stable, then down to min_lr_ratio * base.

    With w, s and d steps, the rate of step t is base * (t + 1) / w
    for t < w, base for t < w + s, and then falls on a line that ends
    d steps later, where it stays.
    """
    _within(locals(), "warmup_steps stable_steps decay_steps")
    _within(locals(), "min_lr_ratio", high=1)
    if t < warmup_steps:
        return (t + 1) / warmup_steps
    part = max(0, t - warmup_steps - stable_steps) / max(1, decay_steps)
    return max(min_lr_ratio, 1 - part * (1 - min_lr_ratio))


for _kind in CosineAnnealingWarmRestarts, LinearWarmup, WSD:
    _kind.get_lr = _kind._get_closed_form_lr


class LambdaLR(LRScheduler):
    """The initial rates times lr_lambda(epoch)."""
    _hidden = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer, lr_lambda, last_epoch=-1,
                 verbose=False):
        self.lr_lambdas = _of_groups(optimizer, "functions lr_lambda",
                                     lr_lambda)
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        return [base * f(self.last_epoch)
                for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LambdaLR):
    """The rates times lr_lambda(epoch), from the second epoch on."""

    def get_lr(self):
        t = self.last_epoch
        return [g["lr"] * (f(t) if t > 0 else 1) for g, f in
                zip(self.optimizer.param_groups, self.lr_lambdas)]


class OneCycleLR(LRScheduler):
    """Up to max_lr and down to almost nothing, batch by batch."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None,
                 steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True,
                 base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1,
                 verbose=False):
        if total_steps is None and None in (epochs, steps_per_epoch):
            raise ValueError("OneCycleLR: give total_steps, or epochs "
                             "and steps_per_epoch")
        n = self.total_steps = total_steps or epochs * steps_per_epoch
        if n < 1 or not 0 <= pct_start <= 1 \
                or anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "OneCycleLR: expected a positive number of steps, a "
                "pct_start between 0 and 1, and 'cos' or 'linear', got "
                f"{n}, {pct_start} and {anneal_strategy!r}")
        self.anneal_strategy = anneal_strategy
        # schedules: prepare the groups for one cycle
        self._momentum = next((
            kind for kind in ("betas", "momentum")
            if cycle_momentum and kind in optimizer.defaults), None)
        if cycle_momentum and self._momentum is None:
            raise ValueError("OneCycleLR: the optimizer has no momentum; "
                             "pass cycle_momentum=False")
        self._points = [(0, "initial_lr", "max_momentum"),
                        (pct_start * n - 1, "max_lr", "base_momentum"),
                        (n - 1, "min_lr", "max_momentum")]
        if three_phase:
            self._points.insert(2, (2 * pct_start * n - 2, "initial_lr",
                                    "max_momentum"))
        several = [_of_groups(optimizer, "rates and momenta", x)
                   for x in (max_lr, max_momentum, base_momentum)]
        for group, top, most, least in zip(optimizer.param_groups, *several):
            if last_epoch == -1:
                group.update(initial_lr=top / div_factor, max_lr=top,
                             min_lr=top / div_factor / final_div_factor,
                             max_momentum=most, base_momentum=least)
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        t, rates = self.last_epoch, []
        if t > self.total_steps:
            raise ValueError(f"OneCycleLR: step {t} of "
                             f"{self.total_steps}")
        for a, b in zip(self._points, self._points[1:]):
            if t <= b[0]:
                break
        # schedules: anneal the values of all groups
        part = (t - a[0]) / (b[0] - a[0])
        if self.anneal_strategy == "cos":
            part = (1 - cos(pi * part)) / 2
        for group in self.optimizer.param_groups:
            rate, momentum = (
                group[old] + (group[new] - group[old]) * part
                for old, new in zip(a[1:], b[1:]))
            rates.append(rate)
            if self._momentum == "betas":
                momentum = (momentum, *group["betas"][1:])
            if self._momentum:
                group[self._momentum] = momentum
        return rates


class ChainedScheduler(LRScheduler):
    """All schedules at once; their factors multiply."""
    _hidden = ("optimizer", "_schedulers")

    def __init__(self, schedulers):
        self._schedulers = list(schedulers)
        self.optimizer = self._schedulers[0].optimizer
        if any(s.optimizer is not self.optimizer
               for s in self._schedulers):
            raise ValueError(f"{type(self).__name__}: all schedulers "
                             "must belong to one optimizer")
        self._set()

    def step(self):
        """Begin the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._set()

    def state_dict(self):
        """What is needed to go on later, for each schedule."""
        return {**super().state_dict(), "_schedulers": [
            s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state):
        """Go on from what state_dict returned."""
        state = dict(state)
        for mine, theirs in zip(self._schedulers,
                                state.pop("_schedulers")):
            mine.load_state_dict(theirs)
        super().load_state_dict(state)


class SequentialLR(ChainedScheduler):
    """Each schedule in turn; the next begins at a milestone."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1,
                 verbose=False):
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("SequentialLR: expected "
                             f"{len(schedulers) - 1} milestones, got "
                             f"{len(milestones)}")
        super().__init__([*schedulers])
        if optimizer is not self.optimizer:
            raise ValueError("SequentialLR: the schedulers belong to "
                             "another optimizer")
        self._milestones, self.last_epoch = milestones, last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0].step()
        self._set()

    def step(self):
        """Begin the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        first = i > 0 and self._milestones[i - 1] == self.last_epoch
        self._schedulers[i].step(*[0] * first)
        self._set()


class ReduceLROnPlateau(LRScheduler):
    """Lowers the rates when a number stops improving."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10,
                 threshold=1e-4, threshold_mode="rel", cooldown=0,
                 min_lr=0, eps=1e-8, verbose=False):
        self.__dict__.update(options_of(locals()))
        self.min_lrs = _of_groups(optimizer, "values min_lr", min_lr)
        if factor >= 1 or mode not in ("min", "max") \
                or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                "ReduceLROnPlateau: expected a factor below 1, 'min' "
                f"or 'max', and 'rel' or 'abs', got {factor}, {mode!r} "
                f"and {threshold_mode!r}")
        self.best = inf if mode == "min" else -inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self.last_epoch = 0
        self._set()

    # schedules: look at the number of an epoch

    def is_better(self, a, best):
        """Whether a improves on best by more than the threshold."""
        sign = 1 if self.mode == "min" else -1
        room = self.threshold
        if self.threshold_mode == "rel" and abs(best) < inf:
            room *= sign * best
        return sign * a < sign * best - room

    def step(self, metrics, epoch=None):
        """End an epoch with this number."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        rates = ()
        if self.num_bad_epochs > self.patience:
            rates = self._reduced()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._set(rates, f"Epoch {self.last_epoch}: reducing")

    def _reduced(self):
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            rate = max(group["lr"] * self.factor, least)
            yield rate if group["lr"] - rate > self.eps else None
