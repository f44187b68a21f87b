# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Optimisers, and schedules of their learning rates."""
from .optimizer import Optimizer, SGD
from .adaptive import Adadelta, Adagrad, Adam, AdamW, RMSprop
from . import lr_scheduler
