# SPDX-License-Identifier: MIT
# Tangled from the chapter "porting": edit that, not this file.
from . import __version__
cuda = hip = None
