# SPDX-License-Identifier: MIT
# Tangled from the chapter "porting": edit that, not this file.
# needs: vocabulary
"""Special functions, some under second names."""
import math as _math
from . import (
    _C, digamma, digamma as psi, erf, erfc, erfinv, exp2, expm1,
    lgamma as gammaln, log1p, log_softmax, logit, logsumexp,
    mvlgamma as multigammaln, polygamma, round, sigmoid as expit, sinc,
    softmax, xlogy, zeta)


def ndtr(input):
    """The normal distribution: how likely is no more than input."""
    return 0.5 * _C.erfc(input * -_math.sqrt(0.5))


def ndtri(input):
    """What ndtr takes to input."""
    return _math.sqrt(2) * _C.erfinv(2 * input - 1)


def entr(input):
    """-input log(input); 0 at 0, and -inf below."""
    return _C.where(input < 0, -_math.inf, -_C.xlogy(input, input))
