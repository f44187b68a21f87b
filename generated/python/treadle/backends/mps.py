# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
from .mkl import is_available
is_built = is_available
