# SPDX-License-Identifier: MIT
# Tangled from the chapter "precision": edit that, not this file.
"""The names of treadle.amp, for a device."""
from .. import amp as _amp


class autocast(_amp.autocast):
    """treadle.autocast("cuda", ...)"""

    def __init__(self, enabled=True, dtype=None, cache_enabled=None):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """treadle.GradScaler("cuda", ...)"""

    def __init__(self, *args, **named):
        super().__init__("cuda", *args, **named)
