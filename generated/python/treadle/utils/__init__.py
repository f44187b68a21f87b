# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""What training loops need around the network."""
from . import data
# inspection: further names of utils
from . import checkpoint
