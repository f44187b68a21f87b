# needs: layers
# SPDX-License-Identifier: MIT
"""Every operator, dtype, layout and corner, without PyTorch.

The cases are those of `make conformance`, which writes PyTorch's numbers to
tests/conformance/golden.json; a layout may not change a bit (but of a sum,
whose order is that of memory), and where NumPy
has the function, its float64 result is another witness.
"""
import json
import os
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import treadle as td

HERE = Path(__file__).resolve().parents[1] / "conformance"
sys.path.insert(0, str(HERE))
import cases                                                            # noqa: E402
from peers import SUMS, find                      # noqa: E402

REGISTRY = cases.registry()
GOLDEN = json.loads((HERE / "golden.json").read_text())
NUMPY = {name: getattr(np, name) for name in """add sub mul abs sign exp expm1 log log1p log2 log10 sqrt square reciprocal sin cos tan
    tanh sinh cosh floor ceil trunc exp2 logaddexp hypot maximum minimum fmax fmin eq ne lt le gt ge where isnan isinf isfinite
    sum mean any all argmax argmin matmul dot inner outer vdot kron""".split() if hasattr(np, name)}
NUMPY |= {"sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "asin": np.arcsin, "acos": np.arccos,
          "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "round": np.rint,
          "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
          "logical_not": np.logical_not, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
          "relu": lambda x: np.where(x <= 0, 0, x), "sign": lambda x: np.where(x != x, 0, np.sign(x)),
          "mm": np.matmul, "bmm": np.matmul, "mv": np.matmul}
LONG = "TREADLE_LONG" in os.environ        # make test-long tries every dtype, others half of them, each operator its own
ASKS_FOR_A_LAYOUT = {"view", "view_dtype", "strided_view", "sgd_step_", "adam_step_", "rmsprop_step_", "adagrad_step_", "detach_",
                     "gated_backward_"}
np.seterr(all="ignore")


def test_every_operator_has_cases():
    assert len(REGISTRY) > 300
    without = [name for name, op in REGISTRY.items() if not op.calls]
    assert without == [], "give it a sample in its chapter, or a row of CALLS in tests/conformance/cases.py"


@pytest.mark.parametrize("name", REGISTRY)
def test_a_layout_changes_no_bit(name):
    op, function = REGISTRY[name], getattr(td._C, name)
    for case in cases.matrix(op):
        if case.layout == "contiguous" or name in cases.FACTS_ONLY or name in ASKS_FOR_A_LAYOUT:
            continue
        if not LONG and zlib.crc32(f"{name}{case.dtypes}".encode()) % 2:
            continue
        ours, plain = (cases.outcome(case, td, function, False, contiguous) for contiguous in (False, True))
        if op.mutates and case.layout == "expanded" and ours[0] == "raises":
            continue                                    # writing where elements share a place
        assert ours[0] == plain[0], f"{case}: {ours}, when contiguous {plain}"
        if ours[0] == "raises":
            continue
        assert ours[2] == plain[2], str(case)
        for a, b in zip(ours[1], plain[1]):
            scale = cases.magnitude(case, plain[1]) if name.rstrip("_") in SUMS else 0
            assert a.shape == b.shape and cases.ulps(a, b, scale) <= (4 if scale else 0), f"{case}: {a}, when contiguous {b}"


@pytest.mark.parametrize("name", sorted(set(GOLDEN) & set(REGISTRY)))
def test_numbers_are_pytorchs(name):
    op, function, golden, missed = REGISTRY[name], find(td, name), dict(GOLDEN[name]), []
    for case in cases.matrix(op):
        expected = golden.pop(case.key(), None)
        if expected is None:
            continue
        got = cases.outcome(case, td, function, case.dtypes == ("float64",))
        mine = cases.summary(got)
        if mine == "raises" or expected == "raises":
            assert mine == expected, f"{case}: {got}"
            continue
        scale = cases.magnitude(case, got[1]) if name.rstrip("_") in SUMS else 0
        assert len(mine) == len(expected), f"{case}: {mine}, not {expected}"
        for a, b in zip(mine, expected):
            if a is None or not a or not isinstance(a[0], str):                   # a gradient
                assert a == b or np.allclose(a or 0, b or 0, 1e-11, 1e-11 * max(1, cases.magnitude(case, got[1])), equal_nan=True), \
                    f"{case}: gradient {a}, not {b}"
                continue
            assert a[:2] == b[:2], f"{case}: {a}, not {b}"
            bound = 1e-6 if a[0] == "float32" else 2e-13
            assert a == b or name in cases.FACTS_ONLY or np.allclose(a[2], b[2], bound, bound * scale, equal_nan=True), f"{case}: {a}, not {b}"


@pytest.mark.parametrize("name", sorted(set(NUMPY) & set(REGISTRY)))
def test_numbers_are_numpys(name):
    compared = 0
    for case in cases.matrix(REGISTRY[name]):
        if case.corner in ("attribute", "zero") or any(case.call.attributes) or len(set(case.dtypes)) > 1:
            continue
        ours = cases.outcome(case, td, find(td, name), False)
        if ours[0] == "raises":
            continue
        got, = ours[1]
        wide = lambda x: x.astype("float64") if isinstance(x, np.ndarray) and (x.dtype.kind == "f" or got.dtype.kind == "f") else x
        wanted = np.asarray(NUMPY[name](*map(wide, case.arrays()))).astype(got.dtype)
        bound, scale = 1e-6 if got.dtype == "float32" else 1e-14, cases.magnitude(case, [got]) if name in SUMS else 1e-37
        assert got.shape == wanted.shape, str(case)
        assert np.allclose(got, wanted, bound, bound * scale, equal_nan=True), f"{case}: {got}, not {wanted}"
        compared += 1
    assert compared


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 15, 16, 127, 128, 300, 4096, 4100])
def test_products_of_few_rows(dtype, k):
    rng, eps = np.random.default_rng(k), np.finfo(dtype).eps
    threads = td.get_num_threads()
    for m, n in ((2, 1), (3, 5), (4, 200), (7, 6), (13, 31), (16, 33), (17, 96), (33, 7), (64, 10), (100, 12), (130, 13)):
        x, w, c = (rng.standard_normal(s) for s in ((m, k), (n, k), (m, n)))
        bound = 4 * (k + 2) ** 0.5 * eps * (np.abs(x) @ np.abs(w.T) + np.abs(c))
        x, w, c = (td.tensor(v).to(getattr(td, dtype)) for v in (x, w, c))
        exact = x.numpy().astype("float64") @ w.numpy().astype("float64").T
        once = [(x @ w.t()).numpy(), td.nn.functional.linear(x, w).numpy(), td.addmm(c, x, w.t(), beta=2, alpha=-1).numpy()]
        assert (np.abs(once[0] - exact) <= bound).all() and (once[0] == once[1]).all()
        assert (np.abs(once[2] - (2 * c.numpy().astype("float64") - exact)) <= 2 * bound).all()
        assert (np.abs((x.t().contiguous().t() @ w.t()).numpy() - exact) <= bound).all()
        try:
            td.set_num_threads(3)
            assert ((x @ w.t()).numpy() == once[0]).all()
        finally:
            td.set_num_threads(threads)


def test_a_turned_batch_is_one_product():
    x, w = td.randn(5, 7, 130), td.randn(40, 130)
    for turned in (x.transpose(0, 1), x[:, ::2], x.unsqueeze(1).expand(5, 3, 7, 130)[:, :, 1:], x.mT.contiguous().mT):
        assert (td.nn.functional.linear(turned, w) == td.nn.functional.linear(turned.contiguous(), w)).all()
        assert (turned @ w.t() == turned.contiguous() @ w.t()).all()
    assert (td.randn(0, 5, 3).transpose(0, 1) @ td.randn(3, 2)).shape == (5, 0, 2)
