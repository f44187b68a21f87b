# needs: functional python
"""Derivatives as functions: products, Jacobians, Hessians, levels."""
import pytest
import treadle as td
from treadle import func
from treadle.autograd import functional as F


def close(a, b):
    assert tuple(a.shape) == tuple(b.shape)
    assert all(abs(p - q) < 1e-9 for p, q in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist())), (a, b)


def numbers(*shape, k=1.0):
    n = 1
    for s in shape:
        n *= s
    return td.tensor([k * i + 0.5 * k for i in range(n)], dtype=td.float64).sin().reshape(shape)


def two(x, y):
    return (x * y).sum(), x.exp() * 2


# --- products and matrices agree with formulas --------------------------------

def test_jacobian_of_an_elementwise_function_is_diagonal():
    x = numbers(3)
    for strategy in ("reverse-mode", "forward-mode"):
        j = F.jacobian(lambda x: x.exp(), x, strategy=strategy)
        close(j, td.eye(3, dtype=td.float64) * x.exp())
    assert not j.requires_grad and not x.requires_grad


def test_forms_of_inputs_and_outputs():
    x, y = numbers(3), numbers(3, k=2)
    j = F.jacobian(two, (x, y))
    assert [[tuple(b.shape) for b in row] for row in j] == [[(3,), (3,)], [(3, 3), (3, 3)]]
    close(j[0][0], y)
    close(j[1][1], td.zeros(3, 3, dtype=td.float64))
    assert F.jacobian(lambda x: x.sum(), x).shape == (3,)
    assert F.jacobian(lambda x: x * 2, td.zeros(0)).shape == (0, 0)
    with pytest.raises(TypeError, match="Tensor or a tuple of Tensors"):
        F.jacobian(two, [x, y])
    with pytest.raises(TypeError, match="outputs of the user-provided function"):
        F.jacobian(lambda x: 1.0, x)


def test_strict_mode_refuses_independence():
    x = numbers(2)
    close(F.jacobian(lambda x: td.ones(2), x), td.zeros(2, 2))
    with pytest.raises(RuntimeError, match="does not require gradients"):
        F.jacobian(lambda x: td.ones(2), x, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        F.jacobian(lambda x, y: x * 2, (x, x), strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        F.vjp(lambda x, y: x * 2, (x, x), x, strict=True)


def test_products_with_vectors():
    x, v = numbers(2, 3), numbers(2, 3, k=0.3)
    out, pulled = F.vjp(lambda x: (x * x).exp(), x, v)
    expected = (x * x).exp() * 2 * x * v
    close(pulled, expected)
    out, pushed = F.jvp(lambda x: (x * x).exp(), x, v)
    close(pushed, expected)
    assert not out.requires_grad and not pushed.requires_grad
    for product in (F.vhp, F.hvp):
        out, p = product(lambda x: (x ** 3).sum(), x, v)
        close(p, 6 * x * v)
        close(product(lambda x: (x * 3).sum(), x, v)[1], x * 0)


def test_bad_vectors():
    x = numbers(3)
    with pytest.raises(RuntimeError, match="can only be None"):
        F.vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="invalid size"):
        F.vjp(lambda x: x * 2, x, numbers(2))
    with pytest.raises(RuntimeError, match="should be 2 but got 1"):
        F.vjp(two, (x, x), (x,))
    for f in (lambda x: x * 2, lambda x: (x.sum(),)):
        with pytest.raises(RuntimeError, match="given to hessian"):
            F.hessian(f, x)


def test_hessian():
    x, y = numbers(2), numbers(2, k=2)
    h = F.hessian(lambda x, y: (x * x * y).sum(), (x, y))
    eye = td.eye(2, dtype=td.float64)
    close(h[0][0], eye * 2 * y)
    close(h[0][1], eye * 2 * x)
    close(h[1][1], eye * 0)
    assert F.hessian(lambda x: (x * 2).sum(), x).tolist() == [[0, 0], [0, 0]]


def test_create_graph_reaches_the_inputs():
    x = numbers(3).requires_grad_()
    j = F.jacobian(lambda x: x ** 3, x, create_graph=True)
    g, = td.autograd.grad(j.sum(), x)
    close(g, 6 * x.detach())
    _, p = F.jvp(lambda x: x ** 3, x, td.ones(3, dtype=td.float64), create_graph=True)
    close(td.autograd.grad(p.sum(), x)[0], 6 * x.detach())
    assert x.grad is None


# --- levels --------------------------------------------------------------------

def test_gradients_of_gradients():
    f, x = lambda x: x ** 4, td.tensor(2.0, dtype=td.float64)
    for expected in (32, 48, 48, 24, 0):
        f = func.grad(f)
        assert f(x).item() == expected
        assert not f(x).requires_grad


def test_hessian_in_four_ways():
    x = numbers(3)

    def f(x):
        return (x ** 3).sum() + x[0] * x[1]
    expected = F.hessian(f, x)
    for outer in (func.jacfwd, func.jacrev):
        for inner in (func.jacfwd, func.jacrev):
            close(outer(inner(f))(x), expected)
    close(func.hessian(f)(x), expected)


def test_a_weight_from_outside_keeps_its_gradient(no_leaks):
    w = td.ones(3, requires_grad=True)
    x = td.tensor([1.0, 2.0, 3.0])
    g = func.grad(lambda x: (w * x * x).sum())(x)
    g.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]
    assert not func.grad(lambda x: (x * x).sum())(x).requires_grad
    with td.no_grad():
        assert not func.grad(lambda x: (w * x * x).sum())(x).requires_grad
    w.grad = None


def test_trees_and_auxiliaries():
    p = {"w": td.tensor([2.0, 3.0]), "b": [td.tensor(1.0)]}
    x = td.tensor([1.0, 2.0])
    g, (value, aux) = func.grad_and_value(
        lambda p, x: ((p["w"] * x + p["b"][0]).sum(), {"n": x.sum()}), has_aux=True)(p, x)
    assert g["w"].tolist() == [1.0, 2.0] and g["b"][0].item() == 2.0
    assert value.item() == 10.0 and aux["n"].item() == 3.0
    a, b = func.grad(lambda x, y: (x * y).sum(), argnums=(0, -1))(x, x + 1)
    assert a.tolist() == [2.0, 3.0] and b.tolist() == [1.0, 2.0]


def test_vjp_and_jvp_of_several():
    x = td.tensor([1.0, 2.0])
    out, pull = func.vjp(lambda a, b: (a * b, a + b), x, x + 1)
    assert out[0].tolist() == [2.0, 6.0]
    a, b = pull((x, td.ones(2)))
    assert a.tolist() == [3.0, 7.0] and b.tolist() == [2.0, 5.0]
    out, tangent = func.jvp(lambda a, b: {"p": a * b}, (x, x + 1), (td.ones(2), td.zeros(2)))
    assert tangent["p"].tolist() == [2.0, 3.0]


def test_what_levels_refuse():
    x = td.ones(2)
    with pytest.raises(RuntimeError, match="scalar tensor, got tensor with 1 dims"):
        func.grad(lambda x: x * 2)(x)
    with pytest.raises(RuntimeError, match="argnum=2"):
        func.grad(lambda x: x.sum(), argnums=2)(x)
    with pytest.raises(RuntimeError, match="only tensors"):
        func.vjp(lambda x: 3, x)
    with pytest.raises(RuntimeError, match="expected primals to be a tuple"):
        func.jvp(lambda x: x, x, x)
    with pytest.raises(RuntimeError, match="same structure"):
        func.jvp(lambda x: x, (x,), (x, x))
