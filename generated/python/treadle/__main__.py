# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""python3 -m treadle FILE ...: run a program written for PyTorch."""
import os
import runpy
import sys
from .compat.stand_in import stand_for

if len(sys.argv) < 2:
    sys.exit("usage: python3 -m treadle FILE [ARGUMENT ...]")
del sys.argv[0]
stand_for("torch")
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
