# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""Treadle: tensors, gradients and networks woven in C.

>>> import treadle as td
>>> x = td.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""
__version__ = "0.1.0"
from ._C import *
from ._C import Tensor, Size, dtype
from ._tensor import (Generator, arange, as_tensor, device, is_tensor,
                      max, min)
from ._grad_mode import (no_grad, enable_grad, set_grad_enabled,
                         inference_mode, is_inference_mode_enabled)

# package: names that PyTorch users expect
float = float32
double = float64
half = float16
long = int64
int = int32
short = int16
nograd = no_grad
from math import e, inf, nan, pi
from . import autograd, cuda, nn, optim, utils, datasets, return_types
# activations: imports of further parts of the package
from ._forms import *
# statistics: imports of further parts of the package
from . import linalg
# vocabulary: imports of further parts of the package
from ._composed import *
# functional: imports of further parts of the package
from . import func
from .autograd.anomaly_mode import (is_anomaly_check_nan_enabled,
                                    is_anomaly_enabled)
# convolution: imports of further parts of the package
from ._convolution import *
# transforms: imports of further parts of the package
from . import transforms, metrics
from .metrics import train_epoch
# seldom: imports of further parts of the package
from .nn import seldom as _seldom
# jit: imports of further parts of the package
from ._jit import jit
# exchange: imports of further parts of the package
from ._exchange import from_dlpack, to_dlpack, UntypedStorage
# dialect: imports of further parts of the package
from .compat import __getattr__
from .compat.spelling import *
# strangers: imports of further parts of the package
from .compat import paths as _paths
# porting: imports of further parts of the package
from .compat import absent as _absent
# saving-more: imports of further parts of the package
from .safetensors import (safe_open, save_file, load_file, save_model,
                          load_model, SafetensorError)
# arrow: imports of further parts of the package
from ._exchange import from_arrow, to_arrow
# linalg: imports of further parts of the package
from .linalg import logdet, pinverse, _svd as svd
# precision: imports of further parts of the package
from . import _casts
from ._errors import name_errors as _name_errors

_name_errors()
