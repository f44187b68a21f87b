# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
from types import SimpleNamespace
from .mkl import is_available as is_built
matmul = SimpleNamespace(allow_tf32=False)
