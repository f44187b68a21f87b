# SPDX-License-Identifier: MIT
# Tangled from the chapter "precision": edit that, not this file.
"""Mixed precision: sixteen bits where they pay, more where not."""
import warnings as _warnings
from . import _C, cuda as _cuda
from ._grad_mode import _Mode, no_grad as _no_grad, settings

settings.append(_C._autocast)


def _available(device, what):
    known = device != "cuda" or _cuda.is_available()
    if not known:
        _warnings.warn(f"{what}: CUDA is not available; disabled",
                       stacklevel=3)
    return known
# precision: class autocast


class autocast(_Mode):
    """A block, or a function, whose products have sixteen bits.

    Products, convolutions and attention take operands of dtype, losses
    take float32, others what comes; float64 is left alone.  The
    backward pass uses the types of the forward pass.  Weights are
    converted at each use, whatever cache_enabled says.
    """
    swap = _C._autocast

    def __init__(self, device_type, dtype=None, enabled=True,
                 cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError("autocast: expected device_type of type "
                             f"str, got {type(device_type).__name__}")
        if device_type not in ("cpu", "cuda"):
            raise RuntimeError("autocast: unsupported device_type "
                               f"{device_type!r}")
        self.mode = dtype or (_C.float16 if device_type == "cuda"
                              else _C.bfloat16)
        if self.mode not in (_C.float16, _C.bfloat16):
            if enabled:
                _warnings.warn("autocast: only float16 and bfloat16 "
                               f"are supported, not {dtype}; disabled",
                               stacklevel=2)
            enabled = False
        if not (enabled and _available(device_type, "autocast")):
            self.mode = None


def is_autocast_enabled(device_type="cpu"):
    """Whether operators are given halves here, on whatever device."""
    return _C._autocast() is not None
# precision: class GradScaler


class GradScaler:
    """Multiplies a loss, so that gradients do not vanish in float16.

    scale(loss).backward(), step(optimizer), update().  A step with an
    infinite gradient or a NaN is skipped, and the scale is lowered.
    """

    def __init__(self, device="cuda", init_scale=65536.0,
                 growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        self._enabled = enabled and _available(device, "GradScaler")
        if growth_factor <= 1 or backoff_factor >= 1:
            raise AssertionError("GradScaler: expected growth_factor > "
                                 "1 and backoff_factor < 1, got "
                                 f"{growth_factor}, {backoff_factor}")
        self._state = dict(
            scale=init_scale, growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval, _growth_tracker=0)
        self._started, self._good, self._stepped = False, {}, set()

    def is_enabled(self):
        return self._enabled

    def get_scale(self):
        return self._state["scale"] if self._enabled else 1.0

    def get_growth_factor(self):
        return self._state["growth_factor"]

    def get_backoff_factor(self):
        return self._state["backoff_factor"]

    def get_growth_interval(self):
        return self._state["growth_interval"]

    def scale(self, outputs):
        """outputs times the scale: a tensor, or a list of them."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if not isinstance(outputs, _C.Tensor):
            raise ValueError("GradScaler: expected a tensor or list "
                             f"of them, got {type(outputs).__name__}")
        self._started = True
        return outputs * _C.full((), self.get_scale(),
                                 device=outputs.device)
    # precision: methods of a scaler
    @_no_grad
    def unscale_(self, optimizer):
        """Divide its gradients by the scale, and look for infinities."""
        if not self._enabled:
            return
        if not self._started:
            raise AssertionError("GradScaler: unscale_ before scale")
        if id(optimizer) in self._good:
            raise RuntimeError("GradScaler: unscale_() after step() or "
                               "unscale_() without update() between")
        grads = [p.grad for group in optimizer.param_groups
                 for p in group["params"] if p.grad is not None]
        if any(g.dtype == _C.float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        self._good[id(optimizer)] = [
            bool(g.mul_(1 / self.get_scale()).isfinite().all())
            for g in grads]

    def step(self, optimizer, *args, **named):
        """optimizer.step(), unless a gradient is infinite or a NaN."""
        if not self._enabled:
            return optimizer.step(*args, **named)
        if args or named:
            raise RuntimeError("GradScaler: closures are not supported")
        if id(optimizer) in self._stepped:
            raise RuntimeError("GradScaler: step() has already been called "
                               "since the last update()")
        if id(optimizer) not in self._good:
            self.unscale_(optimizer)
        if not self._good[id(optimizer)]:
            raise AssertionError("GradScaler: no gradients were looked at")
        self._stepped.add(id(optimizer))
        if all(self._good[id(optimizer)]):
            return optimizer.step()

    def update(self, new_scale=None):
        """Lower the scale after an overflow, raise it after many steps."""
        if not self._enabled:
            return
        seen = sum(self._good.values(), [])
        if new_scale is None and not seen:
            raise AssertionError("GradScaler: update before step")
        # precision: move the scale
        now = self._state
        good = new_scale is None and all(seen)
        now["_growth_tracker"] += good
        if new_scale is not None:
            now["scale"] = float(new_scale)
        elif not good:
            now["scale"] *= now["backoff_factor"]
            now["_growth_tracker"] = 0
        elif now["_growth_tracker"] == now["growth_interval"]:
            larger = now["scale"] * now["growth_factor"]
            if larger < 2.0 ** 128:
                now["scale"] = larger
            now["_growth_tracker"] = 0
        self._good, self._stepped = {}, set()

    def state_dict(self):
        return dict(self._state) if self._enabled else {}

    def load_state_dict(self, state_dict):
        if self._enabled and not state_dict:
            raise RuntimeError("GradScaler: the state is empty, as "
                               "that of a scaler that is disabled")
        if self._enabled:
            self._state.update((k, state_dict[k]) for k in self._state)
# precision: class MasterWeights


class MasterWeights:
    """An optimiser of float32 copies of weights of sixteen bits.

    The copies stand in the groups of the optimizer, which must be new.
    A weight and its copy have one gradient, in float32, and step()
    rounds the copies back.  What is not named here is the optimizer's.
    """

    def __init__(self, optimizer):
        if optimizer.state:
            raise ValueError("MasterWeights: expected an optimizer "
                             "that has made no step")
        self.optimizer, self.pairs = optimizer, []
        for group in optimizer.param_groups:
            group["params"] = [*map(self._master, group["params"])]

    def _master(self, p):
        if p.dtype not in _DIGITS:
            return p
        master = p.detach().float().requires_grad_()

        def carry(p):
            p.grad = master.grad = p.grad.float()
        p.register_post_accumulate_grad_hook(carry)
        self.pairs.append((p, master))
        return master

    @_no_grad
    def step(self):
        for p, master in self.pairs:
            master.grad = p.grad
        self.optimizer.step()
        for p, master in self.pairs:
            p.copy_(master)

    def zero_grad(self, set_to_none=True):
        """Forget the gradients, or set them to zero."""
        self.optimizer.zero_grad(set_to_none)
        for p, master in self.pairs:
            p.grad = master.grad

    def state_dict(self):
        return {**self.optimizer.state_dict(),
                "masters": [m.detach() for _, m in self.pairs]}

    @_no_grad
    def load_state_dict(self, state):
        self.optimizer.load_state_dict(state)
        for (p, master), value in zip(self.pairs, state["masters"]):
            p.copy_(master.copy_(value))

    def __getattr__(self, name):
        return getattr(self.optimizer, name)
# precision: function stochastic_round


_DIGITS = {_C.bfloat16: (7, 2.0**-126), _C.float16: (10, 2.0**-14)}


def stochastic_round(input, dtype=_C.bfloat16, generator=None):
    """input in sixteen bits, up or down by chance.

    The chance of the upper neighbour is the distance from the lower, so
    that the mean over many roundings is the number itself.
    """
    if input.dtype != _C.float32 or dtype not in _DIGITS:
        raise TypeError("stochastic_round: expected float32 to float16 "
                        f"or bfloat16, got {input.dtype} to {dtype}")
    digits, least = _DIGITS[dtype]
    chance = _C.rand(input.shape, dtype=_C.float64,
                     generator=generator, device=input.device)
    x = input.detach().contiguous()
    # by-chance: exercise by-chance
    power = (x.view(_C.int32) & 0x7f800000).view(_C.float32)
    step = power.double().clamp(min=least) * 2.0 ** -digits
    rounded = (x.abs().double() / step + chance).floor() * step
    return rounded.copysign(x).where(x.isfinite(), x).to(dtype)
