# SPDX-License-Identifier: MIT
# Tangled from the chapter "distributions": edit that, not this file.
"""Normal, Uniform, Bernoulli, Categorical: draws and likelihoods."""
import math
import sys
from copy import copy
from . import _C, Size, Tensor
from ._forms import broadcast_tensors
from ._grad_mode import no_grad
from ._tensor import as_tensor
from .special import ndtr, ndtri
from .compat import find_on_demand
from .compat.types import finfo
# distributions: class Distribution


def _broadcast(*values):
    """Numbers and tensors as tensors of one shape and dtype."""
    dtype = next((v.dtype for v in values if isinstance(v, Tensor)),
                 _C._default_dtype(None))
    return broadcast_tensors(*[as_tensor(v, dtype) for v in values])


class Distribution:
    """What all have: sample, rsample, log_prob, entropy, mean, ..."""
    has_rsample, event_shape = False, Size(())

    def _start(self, shape, validate_args, good, names):
        self.batch_shape, self._strict = Size(shape), \
            validate_args is not False
        if self._strict and not good.all():
            raise ValueError(f"{type(self).__name__}: {names}, but got "
                             f"{vars(self)}")

    def _value(self, value):
        value = as_tensor(value)
        if self._strict and not self._has(value).all():
            raise ValueError(f"{type(self).__name__}: a value is "
                             f"outside of the support: {value}")
        return value

    def sample(self, sample_shape=()):
        """Draws [sample_shape, batch_shape], without a gradient."""
        with no_grad():
            return self._draw((*sample_shape, *self.batch_shape))

    def rsample(self, sample_shape=()):
        """Draws through which gradients reach the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__}.rsample: "
                                      "a choice has no gradient")
        return self._draw((*sample_shape, *self.batch_shape))

    @property
    def stddev(self):
        """The square root of the variance."""
        return self.variance.sqrt()

    # distributions: methods about probabilities
    def cdf(self, value=None, expand=True):
        """The probability of no more than value."""
        raise NotImplementedError(f"{type(self).__name__} has no such "
                                  "function")
    icdf = enumerate_support = cdf

    def expand(self, batch_shape):
        """The same for a larger batch_shape."""
        new, n = copy(self), len(self.batch_shape)
        new.batch_shape = Size(batch_shape)
        vars(new).update((k, x.expand((*batch_shape, *x.shape[n:])))
                         for k, x in vars(self).items()
                         if isinstance(x, Tensor))
        return new

    def perplexity(self):
        """Among how many equal choices this is as hard to guess."""
        return self.entropy().exp()

    def __repr__(self):
        shown = ", ".join(f"{k}: {x if x.numel() == 1 else x.shape}"
                          for k, x in vars(self).items()
                          if isinstance(x, Tensor) and k[0] != "_")
        return f"{type(self).__name__}({shown})"
# distributions: classes of distributions


class Normal(Distribution):
    """Mean loc and standard deviation scale > 0."""
    has_rsample = True
    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self.scale ** 2)

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = _broadcast(loc, scale)
        self._start(self.loc.shape, validate_args, (self.scale > 0)
                    & (self.loc == self.loc), "expected scale > 0")

    def _has(self, value):
        return value == value

    def _draw(self, shape):
        return self.loc + self.scale * _C.randn(shape,
                                                dtype=self.loc.dtype)

    def log_prob(self, value):
        """The logarithm of the density at value."""
        z = (self._value(value) - self.loc) / self.scale
        return (1 - z * z) / 2 - self.entropy()

    def entropy(self):
        """The expectation of -log_prob."""
        return 0.5 + math.log(2 * math.pi) / 2 + self.scale.log()

    def cdf(self, value):
        return ndtr((self._value(value) - self.loc) / self.scale)

    def icdf(self, value):
        return self.loc + self.scale * ndtri(value)

    def _kl(self, q):
        ratio = (self.scale / q.scale) ** 2
        return (ratio - 1 - ratio.log()
                + ((self.loc - q.loc) / q.scale) ** 2) / 2


class Uniform(Distribution):
    """From low up to, and without, high."""
    has_rsample = True
    mean = property(lambda self: (self.low + self.high) / 2)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = _broadcast(low, high)
        self._start(self.low.shape, validate_args, self.low < self.high,
                    "expected low < high")

    def _has(self, value):
        return (self.low <= value) & (value <= self.high)

    def _draw(self, shape):
        return self.icdf(_C.rand(shape, dtype=self.low.dtype))

    def log_prob(self, value):
        """The logarithm of the density at value."""
        value = self._value(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - self.entropy()

    def entropy(self):
        """The expectation of -log_prob."""
        return (self.high - self.low).log()

    def cdf(self, value):
        return ((self._value(value) - self.low)
                / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return self.low + value * (self.high - self.low)

    def _kl(self, q):
        return (q.entropy() - self.entropy()).masked_fill(
            (q.low > self.low) | (q.high < self.high), math.inf)


class _Choice(Distribution):
    _kind = _C.int64
    mode = property(lambda self: self._p.argmax(-1).to(self._kind))

    def _choose(self, x, are_logits, validate_args):
        if are_logits:
            good = x == x
            self._p, self._log = x.softmax(-1), x.log_softmax(-1)
        else:
            good, eps = x >= 0, finfo(x.dtype).eps
            self._p = x / x.sum(-1, keepdim=True)
            self._log = self._p.clamp(eps, 1 - eps).log()
        self._start(self._p.shape[:-1], validate_args,
                    good & (self._p == self._p),
                    "expected probabilities, or logits without nan")

    def _has(self, value):
        return (value >= 0) & (value < self._p.shape[-1]) \
            & (value == value.floor())

    def log_prob(self, value):
        """The logarithm of the probability of value."""
        value, log = broadcast_tensors(
            self._value(value).long().unsqueeze(-1), self._log)
        return log.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        """The expectation of -log_prob."""
        least = finfo(self._log.dtype).min
        return -(self._log.clamp(min=least) * self._p).sum(-1)

    def enumerate_support(self, expand=True):
        """All values, [K, batch_shape], or else [K, 1, ...]."""
        batch = self.batch_shape
        x = _C.arange(0, self._p.shape[-1], dtype=self._kind).reshape(
            [-1] + [1] * len(batch))
        return x.expand(-1, *batch) if expand else x

    def _kl(self, q):
        each = (self._p * (self._log - q._log)).masked_fill(
            q._p == 0, math.inf)
        return each.masked_fill(self._p == 0, 0).sum(-1)


def _either(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be "
                         "specified, but not both.")
    return _broadcast(logits if probs is None else probs)[0]


class Bernoulli(_Choice):
    """1 with probability probs, else 0."""
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    _kind = property(lambda self: self.probs.dtype)

    def __init__(self, probs=None, logits=None, validate_args=None):
        x = _either(probs, logits)
        self._choose(
            _C.stack([0 * x if probs is None else 1 - x, x], -1),
            probs is None, validate_args)
        self.probs = x if logits is None else x.sigmoid()
        self.logits = x if probs is None \
            else self._log[..., 1] - self._log[..., 0]

    def _draw(self, shape):
        return self.probs.expand(shape).bernoulli()


class Categorical(_Choice):
    """One of the numbers 0, ..., K - 1; the last dimension has K."""
    mean = property(lambda self: self.probs[..., 0] * math.nan)
    variance = mean

    def __init__(self, probs=None, logits=None, validate_args=None):
        x = _either(probs, logits)
        if not x.ndim:
            raise ValueError("Categorical: expected a vector of "
                             f"probabilities or logits, got {x}")
        self._choose(x, probs is None, validate_args)
        self.probs, self.logits = self._p, self._log

    def _draw(self, shape):
        rows = self.probs.reshape(-1, self.probs.shape[-1])
        n = math.prod(shape) // max(len(rows), 1)
        return rows.multinomial(n, True).t().reshape(shape)
# distributions: function kl_divergence


def kl_divergence(p, q):
    """The expectation under p of log p - log q, of equal kinds."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "kl_divergence: no formula for "
            f"{type(p).__name__} and {type(q).__name__}")
    return p._kl(q)


find_on_demand(sys.modules[__name__], "there are four distributions")
