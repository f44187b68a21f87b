# needs: package
"""The tests import from the build tree, wherever pytest is started."""
import gc
import os
import sys
from pathlib import Path

import pytest

os.environ["TREADLE_CUDA"] = "0"        # tests of devices start processes of their own
STAGE = Path(os.environ.get(
    "TREADLE_STAGE", Path(__file__).resolve().parents[2] / "build" / "python"))
if str(STAGE) not in os.environ.get("PYTHONPATH", ""):
    sys.path.insert(0, str(STAGE))


@pytest.fixture(autouse=True)
def seeded():
    """Every test starts from the same random numbers, recording on."""
    import treadle as td
    td.manual_seed(0)
    yield
    assert td.is_grad_enabled(), "the test left recording off"


def live():
    """What is alive when all garbage is gone: some goes only after some."""
    import treadle as td
    before = None
    while True:
        gc.collect()
        now = td.memory_stats()
        now = {what: now[what] for what in ("live_tensors", "live_nodes", "live_objects", "bytes")}
        if now == before:
            return now
        before = now


@pytest.fixture
def no_leaks():
    """Live tensors, nodes and bytes are after the test what they were."""
    before = live()
    gc.freeze()         # what is there stays, and need not be looked at again
    yield
    assert live() == before
