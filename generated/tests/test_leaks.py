# SPDX-License-Identifier: MIT
# Tangled from the chapter "leak": edit that, not this file.
# needs: strangers
"""Calls of every operator from Python, and what they leave behind."""
import gc
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]
                       / "tests" / "python"))
import conftest                         # noqa: E402,F401
import registry_cases                   # noqa: E402
import treadle as td                    # noqa: E402


# leak: function leaks in Python
def leaks(work, warm_up=8, rounds=24):
    """Whether calls of `work` leave more behind, the more there are."""
    def count():
        m = td.memory_stats()
        return [m[name] for name in ("live_tensors", "live_nodes",
                                     "live_objects", "bytes")]
    gc.disable()
    try:
        for call in range(warm_up + rounds):
            if call == warm_up:
                before = count()
            work()
        return any(a > b for a, b in zip(count(), before))
    finally:
        gc.enable()

# leak: tests of operators from Python

def tensors(args, named):
    for x in [*args, *named.values()]:
        for y in x if isinstance(x, (list, tuple)) else [x]:
            if isinstance(y, td.Tensor):
                yield y


def differentiable(results):
    return [y for y in tensors([results], {}) if y.requires_grad]


@pytest.mark.parametrize("name", sorted(registry_cases.CALLS))
def test_no_operator_leaks(name):
    op = registry_cases.OPERATORS[name]

    def work(call, walked):
        args, named = registry_cases.arguments(op, call)
        for y in tensors(args, named) if not op.mutates else ():
            y.requires_grad_(y.is_floating_point())
        try:
            results = op.function(*args, **named)
        except registry_cases.REFUSALS:     # a number out of range
            return
        for y in differentiable(results) if walked else ():
            y.sum().backward(retain_graph=True)

    for call in op.calls:
        for walked in False, True:
            assert not leaks(lambda: work(call, walked)), name


def test_a_method_that_knows_its_result_is_found():
    kept = []

    def remember():
        y = td.ones(3)
        y.origin = lambda: y        # a circle through Python
        kept.append(1)
    assert leaks(remember)
    gc.collect()
