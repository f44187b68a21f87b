# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Switches of libraries that are not used here.

They can be set, for programs that do, and change nothing.
"""
from . import cuda, cudnn, mkl, mps
