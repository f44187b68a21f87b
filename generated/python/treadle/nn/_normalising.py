# SPDX-License-Identifier: MIT
# Tangled from the chapter "normalisation": edit that, not this file.
# needs: layers
"""Normalisations as functions."""
from .. import _C
from .._C import group_norm, layer_norm, rms_norm


def batch_norm(input, running_mean, running_var, weight=None, bias=None,
               training=False, momentum=0.1, eps=1e-05):
    """Mean 0 and variance 1 for each channel; see td.batch_norm."""
    return _C.batch_norm(input, weight, bias, running_mean, running_var,
                         training, momentum, eps)


def instance_norm(input, running_mean=None, running_var=None,
                  weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-05):
    """Mean 0 and variance 1 for each channel of each example."""
    return _C.instance_norm(input, weight, bias, running_mean,
                            running_var, use_input_stats, momentum, eps)
