# needs: linalg
# SPDX-License-Identifier: MIT
"""Dense linear algebra: beside NumPy and PyTorch, its gradients twice, its refusals, traces, threads, a missing library; names of modules that are absent."""
import importlib
import os
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import treadle as td

L = td.linalg
SHAPES = [(4, 4), (2, 3, 3), (2, 1, 5, 5), (1, 1), (0, 0), (0, 3, 3), (2, 0, 0)]
TALL = [(5, 3), (300, 2), (70, 80), (90, 90), (2, 3, 5), (4, 4), (3, 0), (0, 3), (2, 0, 2), (0, 2, 3), (3, 1, 2, 4), (1, 1)]


def drawn(shape, dtype="float64", seed=7):
    return np.random.RandomState(seed + len(shape)).uniform(-1, 1, shape).astype(dtype) + np.eye(*shape[-2:], dtype=dtype)


def near(a, b, dtype="float64", more=1.0):
    a, b = np.asarray(a.detach()), np.asarray(b.detach() if hasattr(b, "detach") else b)
    assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
    tolerance = more * (3e-5 if dtype == "float32" else 1e-11)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def leaf(x):
    return td.from_numpy(np.array(x)).requires_grad_()


def symmetric(x):
    return x @ x.mT + 0.5 * td.eye(x.shape[-1], dtype=x.dtype)


# --- beside NumPy -----------------------------------------------------------------

@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ("rows", "columns"))
def test_square_as_numpy(shape, dtype, layout):
    a = drawn(shape, dtype)
    x = td.from_numpy(a) if layout == "rows" else td.from_numpy(np.swapaxes(a, -1, -2).copy()).mT
    near(L.inv(x), np.linalg.inv(a), dtype)
    near(x.det(), np.linalg.det(a).astype(dtype), dtype)
    sign, log = np.linalg.slogdet(a)
    y = td.slogdet(x)
    near(y.sign, sign.astype(dtype), dtype)
    near(y.logabsdet, log.astype(dtype), dtype)
    b = drawn((*shape[:-1], 2), dtype)
    near(L.solve(x, td.from_numpy(b)), np.linalg.solve(a, b), dtype)
    near(L.solve(x, td.from_numpy(np.swapaxes(b, -1, -2).copy()), left=False), np.swapaxes(
        np.linalg.solve(np.swapaxes(a, -1, -2), b), -1, -2), dtype)
    near(td.matrix_power(x, -2), np.linalg.matrix_power(a, -2), dtype, 10)
    s = symmetric(x)
    near(L.cholesky(s), np.linalg.cholesky(s.numpy()), dtype, 10)
    near(L.cholesky(s, upper=True), np.swapaxes(np.linalg.cholesky(s.numpy()), -1, -2), dtype, 10)
    w, v = L.eigh(s)
    near(w, np.linalg.eigvalsh(s.numpy()), dtype)
    near(v * w.unsqueeze(-2) @ v.mT, s, dtype)
    assert td.equal(L.eigvalsh(s), w)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("shape", TALL)
def test_factors_as_numpy(shape, dtype):
    a, k = drawn(shape, dtype), min(shape[-2:])
    x = td.from_numpy(a)
    for full in (True, False):
        U, S, Vh = L.svd(x, full)
        n, m = (U.mT @ U).numpy(), (Vh @ Vh.mT).numpy()
        near(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], a, dtype)
        np.testing.assert_allclose(n, np.broadcast_to(np.eye(n.shape[-1]), n.shape), atol=1e-5)
        np.testing.assert_allclose(m, np.broadcast_to(np.eye(m.shape[-1]), m.shape), atol=1e-5)
        assert (U.shape[-1], Vh.shape[-2]) == (shape[-2:] if full else (k, k))
        if a.size:
            near(S, np.linalg.svd(a, compute_uv=False), dtype)
    for mode in ("reduced", "complete"):
        Q, R = L.qr(x, mode)
        near(Q @ R, a, dtype)
        assert Q.shape[-1] == (k if mode == "reduced" else shape[-2]) and td.equal(R, R.triu())
        np.testing.assert_allclose((Q.mT @ Q).numpy(), np.broadcast_to(np.eye(Q.shape[-1]), (*shape[:-2], *Q.shape[-1:] * 2)), atol=1e-5)
    if a.ndim == 2 and k:
        near(R.abs(), np.abs(np.linalg.qr(a, "complete")[1]), dtype)
        near(L.pinv(x), np.linalg.pinv(a), dtype)
    y = L.qr(x, "r")
    assert y.Q.shape == (0,) and td.equal(y.R, L.qr(x).R)
    assert L.pinv(x).shape == (*shape[:-2], shape[-1], shape[-2])


def test_the_triangle_that_is_read():
    a = td.tensor([[4.0, 99.0], [2.0, 3.0]])
    near(L.cholesky(a), np.linalg.cholesky(np.float32([[4, 2], [2, 3]])), "float32")
    near(L.cholesky(a.mT, upper=True).mT, L.cholesky(a), "float32")
    near(L.eigh(a).eigenvalues, np.linalg.eigvalsh(np.float32([[4, 2], [2, 3]])), "float32")
    near(L.eigvalsh(a.mT, "U"), L.eigvalsh(a), "float32")


def test_triangles():
    a, b = drawn((2, 4, 4)), drawn((2, 4, 3))
    for upper in (True, False):
        t = np.triu(a) if upper else np.tril(a)
        near(L.solve_triangular(td.from_numpy(a), td.from_numpy(b), upper=upper), np.linalg.solve(t, b))
        right = L.solve_triangular(td.from_numpy(a), td.from_numpy(b).mT, upper=upper, left=False)
        near(right @ td.from_numpy(t), np.swapaxes(b, 1, 2))
        one = t - t * np.eye(4) + np.eye(4)
        near(L.solve_triangular(td.from_numpy(a), td.from_numpy(b), upper=upper, unitriangular=True), np.linalg.solve(one, b))


def test_right_sides_broadcast():
    a, b = drawn((3, 1, 4, 4)), drawn((2, 4, 5))
    near(L.solve(td.from_numpy(a), td.from_numpy(b)), np.linalg.solve(a, b[None]))
    v = td.from_numpy(drawn((4, 5))[:, 0].copy())
    near(L.solve(td.from_numpy(a), v), np.linalg.solve(a, v.numpy()[None, None, :, None])[..., 0])
    m = td.from_numpy(drawn((3, 4)))            # the shape of A less its last: vectors
    near(L.solve(td.from_numpy(a[:, 0]), m), np.linalg.solve(a[:, 0], m.numpy()[..., None])[..., 0])


def test_norms_and_ranks():
    a = drawn((2, 3, 4))
    x = td.from_numpy(a)
    for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        near(L.matrix_norm(x, p), np.linalg.norm(a, p, (1, 2)))
        near(L.matrix_norm(x, p, (0, 2), True), np.linalg.norm(a, p, (0, 2), True))
        near(L.norm(x[0], p), np.linalg.norm(a[0], p))
    low = td.from_numpy(a[:, :, :2] @ a[:, :2])
    assert L.matrix_rank(x).tolist() == [3, 3] and L.matrix_rank(low).tolist() == [2, 2]
    assert L.matrix_rank(x, atol=100.0).tolist() == [0, 0] and L.matrix_rank(x, rtol=0.99).tolist() == [1, 1]
    near(L.pinv(low), np.linalg.pinv(low.numpy(), 1e-12), "float32")
    near(L.pinv(x, atol=1e9), np.zeros((2, 4, 3)))


# --- singular and other bad input ---------------------------------------------------

def refused(words, f, kind=RuntimeError):
    with pytest.raises(kind, match=words):
        f()


def test_no_answer():
    one, batch = td.ones(2, 2), td.stack([td.eye(2), td.ones(2, 2), td.eye(2)])
    error = L.LinAlgError
    assert issubclass(error, RuntimeError)
    refused("inv: The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular",
            lambda: L.inv(one), error)
    refused(r"\(Batch element 1\): The diagonal element 2", batch.inverse, error)
    refused(r"solve: \(Batch element 1\): The solver failed; element 2 of the diagonal is zero: the input matrix is singular", lambda: L.solve(batch, one), error)
    refused(r"cholesky: \(Batch element 2\): The factorization could not be completed because the input is not positive-definite "
            r"\(the leading minor of order 2", lambda: L.cholesky(td.eye(2) - 2 * td.tensor([0., 0, 1]).reshape(3, 1, 1) * td.tensor(
                [[0., 0], [0, 1]])), error)
    for bad in (td.nan, td.inf):
        m = td.eye(3)
        m[1, 0] = bad
        for f in (L.svd, L.eigh, L.svdvals, L.eigvalsh, L.pinv, L.matrix_rank):
            refused("non-finite", lambda: f(m), error)
        if bad is td.inf:
            refused("positive-definite", lambda: L.cholesky(m), error)
        assert not L.qr(m).Q.isfinite().all()
    nan = td.eye(2) * td.nan
    assert L.det(nan).isnan() and L.inv(nan).isnan().any() and L.slogdet(nan).logabsdet.isnan()
    assert L.inv(td.eye(2)).tolist() == [[1, 0], [0, 1]]        # nothing is left pending


def test_singular_determinants():
    x = leaf([[1.0, 2], [2, 4]])
    d, y = L.det(x), L.slogdet(x)
    assert d.item() == 0 and y.sign.item() == 0 and y.logabsdet.item() == -np.inf and td.logdet(-td.eye(3)).isnan()
    (g,) = td.autograd.grad(d, x)
    assert g.tolist() == [[0, 0], [0, 0]]
    (g,) = td.autograd.grad(y.logabsdet, x)
    assert not g.isfinite().any()


def test_bad_shapes_and_types():
    a, b = td.eye(3), td.ones(3, 2)
    for bad in [[np.nan, 0], [0, 1]], [[1, np.nan], [np.nan, 1]], [[np.inf, 0], [0, 1]], [[4., 0], [np.nan, np.nan]]:
        for upper in False, True:
            m = td.tensor(bad).mT if upper else td.tensor(bad)
            refused("non-finite|positive-definite", lambda: L.cholesky(m, upper=upper), L.LinAlgError)
            refused("non-finite|positive-definite", lambda: L.cholesky(td.stack([td.eye(2), m]), upper=upper), L.LinAlgError)
    assert L.cholesky(td.tensor([[4., np.nan], [2, 2]])).tolist() == [[2, 0], [1, 1]]       # not looked at
    for f in (L.inv, L.det, L.slogdet, L.cholesky, L.eigh):
        refused("square", lambda: f(b))
    for f in (L.inv, L.det, L.slogdet, L.cholesky, L.eigh, L.svd, L.qr, L.pinv):
        for x in (td.ones(3), td.tensor(1.0)):
            refused("at least 2 dimensions", lambda: f(x))
        refused("int64", lambda: f(td.ones(3, 3, dtype=td.int64)))
        refused("int8", lambda: f(a.to(td.int8)), NotImplementedError)
        refused("Tensor", lambda: f([[1.0]]), TypeError)
    refused("Incompatible", lambda: L.solve(a, b.mT))
    refused("Incompatible", lambda: L.solve(a, td.ones(2)))
    refused("Incompatible", lambda: L.solve(a, b.double()))
    refused("Incompatible", lambda: L.solve(a, td.tensor(1.0)))
    refused("broadcast", lambda: L.solve(a.expand(2, 3, 3), b.expand(3, 3, 2)))
    refused("mode", lambda: L.qr(a, "full"))
    refused("UPLO", lambda: L.eigh(a, "X"))
    refused("driver", lambda: L.lstsq(a, b, driver="gelsd"), NotImplementedError)
    refused("too large", lambda: L.svd(td.zeros(1).expand(20001, 20001)))
    refused("Order 3", lambda: L.matrix_norm(a, 3))
    refused("treadle.linalg", lambda: td.qr(a), AttributeError)
    refused("treadle.linalg", lambda: a.cholesky(), AttributeError)


# --- gradients ------------------------------------------------------------------------

RULES = {
    "inv": (L.inv, (2, 3, 3)), "det": (L.det, (2, 3, 3)), "slogdet": (lambda x: L.slogdet(x).logabsdet, (2, 3, 3)),
    "det 0x0": (L.det, (2, 0, 0)), "logdet": (lambda x: td.logdet(symmetric(x)), (3, 3)),
    "solve": (lambda x: L.solve(x, x[..., :2]), (2, 3, 3)), "solve right": (lambda x: L.solve(x, x[:2], left=False), (3, 3)),
    "solve vector": (lambda x: L.solve(x, x[..., 0]), (2, 3, 3)), "solve broadcast": (lambda x: L.solve(x[0], x), (2, 3, 3)),
    "triangle": (lambda x: L.solve_triangular(x, x[..., :2], upper=True), (2, 3, 3)),
    "triangle of ones": (lambda x: L.solve_triangular(x, x[..., :2].mT, upper=False, left=False, unitriangular=True), (2, 3, 3)),
    "cholesky": (lambda x: L.cholesky(symmetric(x)), (2, 3, 3)), "cholesky upper": (lambda x: L.cholesky(symmetric(x), upper=True), (3, 3)),
    "eigh": (lambda x: L.eigh(symmetric(x)), (2, 3, 3)), "eigh U": (lambda x: L.eigh(symmetric(x), "U"), (3, 3)),
    "eigvalsh": (lambda x: L.eigvalsh(symmetric(x)), (3, 3)),
    "qr": (L.qr, (2, 3, 3)), "qr tall": (L.qr, (4, 3)), "qr wide": (L.qr, (2, 2, 4)), "qr complete": (lambda x: L.qr(x, "complete"), (2, 3)),
    "qr r": (lambda x: L.qr(x, "r").R, (4, 3)), "qr q": (lambda x: L.qr(x).Q, (2, 4)),
    "svd": (lambda x: L.svd(x, False), (2, 3, 3)), "svd tall": (lambda x: L.svd(x, False), (4, 2)), "svd wide": (lambda x: L.svd(x, False), (2, 4)),
    "svd full": (lambda x: L.svd(x).S, (2, 4)), "svd U": (lambda x: L.svd(x, False).U, (4, 2)), "svd Vh": (lambda x: L.svd(x, False).Vh, (4, 2)),
    "nuc": (lambda x: L.matrix_norm(x, "nuc"), (2, 2, 4)),
    "pinv": (L.pinv, (2, 4, 2)), "pinv wide": (L.pinv, (2, 4)), "pinv square": (L.pinv, (3, 3)),
    "lstsq": (lambda x: L.lstsq(x, x[:, :1] + 1).solution, (4, 2)), "matrix_power": (lambda x: td.matrix_power(x, -3), (3, 3)),
    "pinv of low rank": (lambda x: L.pinv(x[:, :1] @ x[:1]), (3, 4)),
}


@pytest.mark.parametrize("name", RULES)
def test_gradients_twice(name):
    f, shape = RULES[name]
    x = leaf(drawn(shape, seed=11))
    assert td.autograd.gradcheck(f, (x,))
    assert td.autograd.gradgradcheck(f, (x,))


def test_gradients_of_equal_values():
    x = leaf(np.eye(3))
    assert td.autograd.grad(L.svdvals(x).sum(), x)[0].tolist() == np.eye(3).tolist()
    assert td.autograd.grad(L.eigh(x).eigenvalues.sum(), x)[0].tolist() == np.eye(3).tolist()
    assert td.autograd.grad(L.eigh(x).eigenvectors.sum(), x)[0].isnan().any()
    assert td.autograd.gradcheck(L.pinv, (x,))          # smooth there


def test_what_has_no_gradient():
    x = leaf(drawn((4, 3)))
    refused("complete", lambda: L.qr(x, "complete").Q.sum().backward())
    y = leaf(drawn((3, 3)))
    assert td.autograd.grad(L.slogdet(y).sign, y, allow_unused=True)[0] is None


def test_a_solution_is_not_kept_for_its_right_side():
    a, b = td.eye(3), leaf(np.ones((3, 2), "float32"))
    x = L.solve(a, b)
    x.mul_(2)                                           # the rule of b does not read it
    x.sum().backward()
    assert b.grad.tolist() == [[2, 2]] * 3


# --- beside PyTorch ---------------------------------------------------------------------

@pytest.fixture
def peer():
    return pytest.importorskip("torch", reason="PyTorch is not installed: make deps-peers")


BOTH = {        # of a library and leaves; signs of vectors are anybody's
    "inv": lambda t, x: t.linalg.inv(x), "det": lambda t, x: x.det(), "slogdet": lambda t, x: t.slogdet(x)[1],
    "solve": lambda t, x: t.linalg.solve(x, x[..., :2]), "right": lambda t, x: t.linalg.solve(x, x[..., :2, :], left=False),
    "triangular": lambda t, x: t.linalg.solve_triangular(x, x[..., :2], upper=False),
    "cholesky": lambda t, x: t.linalg.cholesky(x @ x.mT), "upper": lambda t, x: t.linalg.cholesky(x @ x.mT, upper=True),
    "cholesky of a leaf": lambda t, x: t.linalg.cholesky(x * 0.1 + 2 * t.eye(3, dtype=x.dtype)),
    "eigh": lambda t, x: t.linalg.eigh(x)[1] ** 2, "eigvalsh": lambda t, x: t.linalg.eigvalsh(x, "U"),
    "qr": lambda t, x: t.linalg.qr(x)[1].abs(), "svd": lambda t, x: t.linalg.svd(x)[0] ** 2, "svdvals": lambda t, x: t.linalg.svdvals(x),
    "pinv": lambda t, x: t.linalg.pinv(x[..., :2]), "power": lambda t, x: t.linalg.matrix_power(x, -2),
    "norm": lambda t, x: t.linalg.norm(x, "nuc", (1, 2)), "lstsq": lambda t, x: t.linalg.lstsq(x[..., :2], x)[0],
    "logdet": lambda t, x: t.logdet(x @ x.mT), "svd of old": lambda t, x: t.svd(x)[2] ** 2, "pinverse": lambda t, x: x.pinverse(),
}


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_values_and_gradients_as_pytorch(peer, name, dtype):
    a = drawn((2, 3, 3), dtype)
    mine, other = leaf(a), peer.from_numpy(a).requires_grad_()
    x, y = BOTH[name](td, mine), BOTH[name](peer, other)
    near(x, y, dtype, 30)
    seed = np.random.RandomState(1).uniform(0.5, 1, tuple(y.shape)).astype(dtype)
    x.backward(td.from_numpy(seed))
    y.backward(peer.from_numpy(seed))
    near(mine.grad, other.grad, dtype, 300)


def test_results_as_pytorch(peer):
    if not hasattr(peer.linalg, "solve_triangular") or os.environ.get("TREADLE_SANITIZED") == "asan":
        pytest.skip("an old PyTorch, or one whose exceptions the address sanitizer does not know")
    a, b = drawn((2, 5, 3), "float32"), drawn((2, 5, 2), "float32")
    for driver in (None, "gelsy"):
        x, y = L.lstsq(td.from_numpy(a), td.from_numpy(b), driver=driver), peer.linalg.lstsq(
            peer.from_numpy(a), peer.from_numpy(b), driver=driver)
        assert x._fields == ("solution", "residuals", "rank", "singular_values")
        for field in x._fields:
            near(getattr(x, field), getattr(y, field), "float32")
    for f in ("slogdet", "qr", "eigh", "svd"):
        x, y = (getattr(t.linalg, f)(t.from_numpy(a[:, :3].copy())) for t in (td, peer))
        names = [n for n in dir(y) if n in ("sign", "logabsdet", "Q", "R", "eigenvalues", "eigenvectors", "U", "S", "Vh")]
        assert names and all(getattr(x, n).shape == getattr(y, n).shape for n in names) and len(x) == len(y) == len(names)
    for bad in (lambda t: t.linalg.inv(t.ones(2, 2)), lambda t: t.linalg.cholesky(-t.ones(3, 2, 2)),
                lambda t: t.linalg.inv(t.ones(3, 2, 2))):
        said = []
        for t in (td, peer):
            with pytest.raises(t.linalg.LinAlgError) as e:
                bad(t)
            said.append(str(e.value))
        assert said[0].removeprefix("linalg.") == said[1].removeprefix("linalg.")


# --- elsewhere ----------------------------------------------------------------------------

def test_compiled_as_a_call():
    def f(a, b):
        x = L.solve(a, b * 2)
        return (x + 1).relu(), L.det(a @ a.mT), L.svdvals(b).sum()
    a, b = td.from_numpy(drawn((3, 3), "float32")), td.from_numpy(drawn((3, 2), "float32"))
    g = td.jit(f)
    for k in range(3):
        for x, y in zip(f(a + k, b), g(a + k, b)):
            near(x, y, "float32")


def test_threads():
    a = [drawn((8, 8), seed=i) for i in range(24)]
    with ThreadPoolExecutor(6) as pool:
        for x, y in zip(a, pool.map(lambda m: L.inv(td.from_numpy(m)).numpy(), a)):
            np.testing.assert_allclose(np.linalg.inv(x), y, rtol=1e-9)


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


def test_a_child_solves_too():
    code = "import os, treadle as td; td.linalg.inv(td.eye(2))\nif os.fork() == 0:\n" \
        " os._exit(0 if td.linalg.inv(td.eye(3) * 2)[0, 0] == 0.5 else 1)\nassert os.wait()[1] == 0"
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_without_lapack():
    code = "import treadle as td\ntry: td.linalg.inv(td.eye(2))\nexcept NotImplementedError as e: print(e)\nprint((td.eye(2) + 1).sum())"
    for place in ("/nowhere/liblapack.so", "libm.so.6"):
        done = run(code, TREADLE_LAPACK=place)
        assert "liblapack3" in done.stdout and "tensor(6.)" in done.stdout, (done.stdout, done.stderr)


def test_nothing_leaks():
    def work():
        x = leaf(drawn((2, 3, 3)))
        (L.det(x).sum() + L.pinv(x).sum() + L.qr(x).Q.sum() + L.solve(x, x).sum()).backward()
        for f in (L.inv, L.cholesky, L.eigh, L.svd):
            with pytest.raises(L.LinAlgError):
                f(-td.ones(2, 2) * (td.nan if f in (L.eigh, L.svd) else 1))
    work()
    before = td.memory_stats()["live_objects"]
    work()
    assert td.memory_stats()["live_objects"] == before


def test_nuclear_norm_and_condition():
    a = td.tensor([[3.0, 0, 0], [0, -4, 0]])
    assert a.norm("nuc").item() == pytest.approx(7) and td.norm(a[None], "nuc", dim=(1, 2)).tolist() == [pytest.approx(7)]
    square = td.tensor([[2.0, 1], [0, 0.5]])
    for p in (None, 1, -1, 2, -2, "fro", "nuc", np.inf):
        assert td.linalg.cond(square, p).item() == pytest.approx(float(np.linalg.cond(square.numpy(), p)), rel=1e-5)


def test_every_absent_name_has_a_reason():
    torch = pytest.importorskip("torch", reason="needs PyTorch (python3-torch) to compare with")
    for path in ("nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "optim", "optim.lr_scheduler", "distributions",
                 "utils.data", "linalg", "autograd"):
        theirs, ours = (importlib.import_module(f"{home}.{path}") for home in ("torch", "treadle"))
        for name in dir(theirs):
            if name[0] != "_" and not hasattr(ours, name) and not isinstance(getattr(theirs, name), types.ModuleType):
                with pytest.raises(AttributeError, match=f"has no attribute '{name}': ..."):
                    getattr(ours, name)
    for name, reason in (("nn.LazyLinear", "a layer knows its sizes"), ("nn.utils.parametrizations", "weight_norm and spectral_norm"),
                         ("nn.DataParallel", "one process"), ("distributions.Beta", "four distributions"), ("optim.Muon", "some lines of what is here")):
        home, _, name = name.rpartition(".")
        with pytest.raises(AttributeError, match=reason):
            getattr(importlib.import_module("treadle." + home), name)
    assert not hasattr(td.Tensor, "Lazy*") and "LazyLinear" not in dir(td.nn)
