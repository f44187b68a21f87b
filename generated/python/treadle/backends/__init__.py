# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Switches of libraries that PyTorch computes with."""
from . import cuda, cudnn, mkl, mps
