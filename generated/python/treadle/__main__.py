# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""python3 -m treadle FILE ...: run a program written for PyTorch."""
import os
import runpy
import sys
from .compat.stand_in import stand_for


def main():
    """Run a command of the package, or a program; the status."""
    # trainings: run a command of the package
    from ._command import COMMANDS, main as run
    if len(sys.argv) < 2 or sys.argv[1] in COMMANDS \
            or not os.path.exists(sys.argv[1]):
        return run(sys.argv[1:])
    del sys.argv[0]
    stand_for("torch")
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    sys.exit(main())
