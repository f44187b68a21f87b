# SPDX-License-Identifier: MIT
# Tangled from the chapter "precision": edit that, not this file.
"""The names of treadle.amp, for a device."""
from functools import partialmethod as _partialmethod
from .. import amp as _amp


class autocast(_amp.autocast):
    """treadle.autocast("cuda", ...)"""

    def __init__(self, enabled=True, dtype=None, cache_enabled=None):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """treadle.GradScaler("cuda", ...)"""

    __init__ = _partialmethod(_amp.GradScaler.__init__, "cuda")
