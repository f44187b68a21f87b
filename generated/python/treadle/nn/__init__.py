# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Networks: modules, layers, losses."""
from . import functional, init, utils
from .module import Module, Parameter
from .layers import Flatten, Identity, Linear, Sequential
from .loss import *
from .activation import *
from .arranging import *
from .convolution import *
from .normalisation import *
from .pooling import *
from .recurrence import *
from .attention import *
