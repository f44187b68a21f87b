# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Batches of sequences of unequal length."""
from .. import _C


def pad_sequence(sequences, batch_first=False, padding_value=0.0):
    """One tensor [longest, batch, ...] of tensors [length, ...]."""
    sequences = list(sequences)
    longest = max(len(s) for s in sequences)
    padded = [_C.cat([s, _C.full((longest - len(s), *s.shape[1:]),
                                 padding_value, dtype=s.dtype,
                                 device=s.device)]) for s in sequences]
    return _C.stack(padded, 0 if batch_first else 1)
