# needs: package
"""Gradients from Python: passes, hooks, functions, modes."""
import threading
import traceback

import pytest
import treadle as td
from treadle.autograd import Function


def test_backward_and_accumulation():
    x = td.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]
    x.grad = None
    assert x.grad is None


def test_backward_with_a_seed():
    x = td.ones(3, requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError):
        y.backward()
    y.backward(td.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(RuntimeError):
        td.ones(1).backward()


def test_a_graph_is_used_once_unless_retained():
    x = td.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second"):
        y.backward()


def test_grad_function():
    x = td.tensor(3.0, requires_grad=True)
    y = td.tensor(2.0, requires_grad=True)
    z = x * x * y
    gx, gy = td.autograd.grad(z, (x, y))
    assert (gx.item(), gy.item()) == (12.0, 9.0) and x.grad is None
    with pytest.raises(RuntimeError):
        td.autograd.grad(x * 2, y)
    assert td.autograd.grad(x * 2, y, allow_unused=True) == (None,)
    with pytest.raises(TypeError):
        td.autograd.grad(x * 2, [3])


def test_second_derivatives():
    x = td.tensor(2.0, requires_grad=True)
    y = x * x * x
    g, = td.autograd.grad(y, x, create_graph=True)
    h, = td.autograd.grad(g, x)
    assert (g.item(), h.item()) == (12.0, 12.0)


@pytest.mark.parametrize("n, name", [(2, "Square"), (2.0, "Square"), (3, "Cube"), (3.0, "Cube"), (0.5, "Pow"), (-0.5, "Pow"),
                                     (-1, "Pow"), (2.5, "Pow"), (1, "Pow"), (-2, "Pow")])
def test_a_power_by_a_familiar_number_is_another_operator(n, name):
    v = [0.25, 1.0, 1.7, 31.0]
    for dtype, near in (td.float32, 1e-6), (td.float64, 1e-14), (td.float16, 2e-3):
        x = td.tensor(v, dtype=dtype, requires_grad=True)
        y = x ** n
        g, = td.autograd.grad(y.sum(), x, create_graph=True)
        h, = td.autograd.grad(g.sum(), x)
        assert type(y.grad_fn).__name__ == (name if dtype != td.float16 else "Pow") + "Backward0"
        for got, want in (y, lambda a: a ** n), (g, lambda a: n * a ** (n - 1)), (h, lambda a: n * (n - 1) * a ** (n - 2)):
            assert got.dtype is dtype
            assert got.tolist() == pytest.approx([want(a) for a in x.tolist()], rel=4 * near, abs=near)
        z = td.tensor(v, dtype=dtype, requires_grad=True)
        (z * 1).pow_(n).sum().backward()
        assert z.grad.tolist() == pytest.approx(g.tolist(), rel=4 * near, abs=near)
        compiled = td.jit(lambda a: a ** n)
        assert compiled(x.detach()).tolist() == y.tolist()
        compiled(x.detach())
        assert (name if dtype != td.float16 else "Pow").lower() + "(" in td.jit.dump(compiled)
    whole = td.tensor([1, 2, 4], dtype=td.int32)
    if isinstance(n, float) or n > 0:
        y = whole ** n
        assert y.dtype is (td.float32 if isinstance(n, float) else td.int32)
        assert y.tolist() == pytest.approx([1, 2 ** n, 4 ** n])
    else:
        with pytest.raises(RuntimeError, match="negative"):
            whole ** n
    assert td.jit(lambda a: a ** 2.0)(whole).dtype is td.float32
    z = td.tensor(v, requires_grad=True)
    y = z ** n
    y += 1                          # nobody's derivative reads it
    y.sum().backward()
    assert z.grad.tolist() == pytest.approx([n * a ** (n - 1) for a in v], rel=1e-6)


def test_autograd_backward_of_several():
    x = td.ones(2, requires_grad=True)
    td.autograd.backward([(x * 2).sum(), (x * 3).sum()])
    assert x.grad.tolist() == [5.0, 5.0]


def test_leaf_properties():
    x = td.ones(2, requires_grad=True)
    y = x * 2
    assert x.is_leaf and not y.is_leaf
    assert x.grad_fn is None and "Mul" in y.grad_fn.name()
    assert repr(y.grad_fn).startswith("<Mul")
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError):
        y.requires_grad = False
    x.requires_grad_(False)
    assert not (x * 2).requires_grad
    with pytest.raises(RuntimeError):
        td.ones(2, dtype=td.int64).requires_grad_()
    with pytest.raises(TypeError):
        x.grad = 3
    with pytest.raises(RuntimeError):
        x.grad = td.ones(5)


def test_modes_nest_decorate_and_survive_exceptions():
    x = td.ones(2, requires_grad=True)

    @td.no_grad()
    def quiet():
        return x * 2

    @td.no_grad
    def also_quiet():
        with td.enable_grad():
            assert (x * 2).requires_grad
        return x * 2
    assert not quiet().requires_grad and not also_quiet().requires_grad
    with pytest.raises(ValueError):
        with td.no_grad():
            raise ValueError
    assert (x * 2).requires_grad
    with td.set_grad_enabled(False):
        assert not td.is_grad_enabled()
    td.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    td.set_grad_enabled(True)
    for _ in range(5000):           # deeper than any stack of modes
        td.set_grad_enabled(False)
        td.set_grad_enabled(True)


def test_the_mode_belongs_to_the_thread():
    seen = []
    with td.no_grad():
        t = threading.Thread(target=lambda: seen.append(td.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_hooks_see_and_replace_gradients(no_leaks):
    x = td.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    h = y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1.0, 1.0]] and x.grad.tolist() == [20.0, 20.0]
    h.remove()
    h.remove()
    x.grad = None
    h = x.register_hook(lambda g: g * 0)
    with h:
        (x * 2).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None


def test_an_exception_in_a_hook_goes_through_unchanged(no_leaks):
    class Odd(Exception):
        pass
    error = Odd("from the hook")

    def hook(g):
        raise error
    x = td.ones(2, requires_grad=True)
    h = x.register_hook(hook)
    try:
        (x * x).sum().backward()
    except Odd as caught:
        assert caught is error
        frames = [f.name for f in traceback.extract_tb(caught.__traceback__)]
        assert frames[-1] == "hook"
        caught.__traceback__ = None
    else:
        assert False, "the exception was lost"
    error = None
    h.remove()
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None


def test_a_hook_that_returns_nonsense():
    for value in (3, "a", td.ones(5), td.ones(2, dtype=td.float64)):
        x = td.ones(2, requires_grad=True)
        x.register_hook(lambda g: value)
        with pytest.raises((TypeError, RuntimeError)):
            (x * 2).sum().backward()
    assert (td.ones(2) + 1).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        td.ones(2, requires_grad=True).register_hook(3)
    with pytest.raises(RuntimeError):
        td.ones(2).register_hook(print)


def test_hooks_may_run_operators_and_passes():
    x = td.ones(2, requires_grad=True)
    inner = td.tensor(3.0, requires_grad=True)

    def hook(g):
        with pytest.raises(RuntimeError):
            td.ones(2) + td.ones(3)
        with td.enable_grad():
            (inner * inner).backward()
        return g + inner.grad
    x.register_hook(hook)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        assert ctx.needs_input_grad[0]
        return g * 3 * x * x * ctx.scale, None


def test_functions(no_leaks):
    x = td.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x, 2.0)
    assert y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]
    assert not Cube.apply(x.detach()).requires_grad
    with td.no_grad():
        assert not Cube.apply(x).requires_grad
    x.grad = None


def test_second_derivative_through_a_function(no_leaks):
    x = td.tensor([1.0, 2.0], requires_grad=True)
    g, = td.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    h, = td.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 12.0]


class Exp(Function):
    """Saves its own result: a cycle, if the wrapper were kept."""
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * y


def test_a_saved_result_makes_no_cycle_and_differentiates_twice():
    import gc
    gc.collect()
    gc.disable()
    try:
        before = td.memory_stats()
        x = td.tensor([0.5], dtype=td.float64, requires_grad=True)
        g, = td.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
        h, = td.autograd.grad(g.sum(), x)
        assert abs(h.item() - 1.6487212707) < 1e-9
        del x, g, h
        after = td.memory_stats()
    finally:
        gc.enable()
    assert after["live_tensors"] == before["live_tensors"]
    assert after["live_nodes"] == before["live_nodes"]


def test_saved_tensors_are_watched():
    x = td.ones(2, requires_grad=True)
    w = td.ones(2)

    class Times(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None
    y = Times.apply(x, w)
    w.add_(1)
    with pytest.raises(RuntimeError):
        y.sum().backward()


def test_functions_with_several_results_and_absent_gradients(no_leaks):
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert a is not None and b is not None
            return a * 2 + b * 3
    x = td.ones(2, requires_grad=True)
    a, b = Two.apply(x)
    b.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    x.grad = None


def test_a_function_that_returns_its_argument(no_leaks):
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g
    x = td.ones(2, requires_grad=True)
    y = Same.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]
    x.grad = None


@pytest.mark.parametrize("answer", [
    lambda g: (), lambda g: (g, g), lambda g: "a", lambda g: td.ones(7)])
def test_functions_that_answer_wrongly(answer):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return answer(g)
    x = td.ones(2, requires_grad=True)
    with pytest.raises((RuntimeError, TypeError)):
        Bad.apply(x).sum().backward()


def test_exceptions_in_functions_go_through():
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise KeyError("lost")
    x = td.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="lost"):
        Broken.apply(x).sum().backward()
    with pytest.raises(NotImplementedError):
        Function.apply(x)
    with pytest.raises(TypeError, match="Tensors"):
        class Worse(Function):
            @staticmethod
            def forward(ctx, x):
                return 3
        Worse.apply(x)


def test_gradcheck():
    x = td.randn(3, 2, dtype=td.float64, requires_grad=True)
    w = td.randn(2, 2, dtype=td.float64, requires_grad=True)
    assert td.autograd.gradcheck(lambda x, w: (x @ w).tanh(), (x, w))
    assert td.autograd.gradcheck(Cube.apply, (x,))
    with pytest.raises(ValueError, match="float64"):
        td.autograd.gradcheck(Cube.apply, (td.ones(2, requires_grad=True),))

    class Wrong(Cube):
        @staticmethod
        def backward(ctx, g):
            return g, None
    with pytest.raises(RuntimeError, match="gradcheck"):
        td.autograd.gradcheck(Wrong.apply, (x,))
    assert not td.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)


def test_a_long_chain_is_freed_without_recursion(no_leaks):
    x = td.ones(1, requires_grad=True)
    y = x
    for _ in range(50000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    x.grad = None


def test_in_place_on_a_leaf_is_refused():
    x = td.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        x.add_(1)
    with td.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 2.0]


def test_live_node_count_returns():
    before = td.live_node_count()
    x = td.ones(2, requires_grad=True)
    y = (x * x).sum()
    assert td.live_node_count() > before
    y.backward()
    del y
    assert td.live_node_count() == before


def test_gradcheck_fails_for_a_function_that_detaches():
    x = td.ones(3, dtype=td.float64, requires_grad=True)
    assert not td.autograd.gradcheck(lambda x: x.detach() * 2, x, raise_exception=False)
    with pytest.raises(RuntimeError):
        td.autograd.gradcheck(lambda x: (x * 2, x.detach() * 2), x)


def test_a_tensor_is_not_its_own_gradient():
    x = td.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="its own gradient"):
        x.grad = x
    assert x.grad is None


@pytest.mark.parametrize("seed_dtype", [td.float64, td.float16, td.bfloat16, td.int64, td.bool])
def test_a_seed_of_another_dtype_is_converted(seed_dtype, no_leaks):
    x = td.tensor([1.0, 2.0], requires_grad=True)
    seed, seen = td.tensor([3, 1]).to(seed_dtype), []
    y = x * x
    y.register_hook(lambda g: seen.append(g.dtype))
    y.backward(seed)
    expected = (seed.float() * 2 * x.detach()).tolist()
    assert seen == [td.float32] and x.grad.dtype is td.float32 and x.grad.tolist() == expected
    assert td.autograd.grad(x * x, x, seed)[0].tolist() == expected
    assert td.autograd.grad(x, x, seed)[0].dtype is td.float32
    with pytest.raises(RuntimeError, match=r"the gradient is float32 \[3\], but the tensor is float32 \[2\]"):
        (x * x).backward(td.ones(3).to(seed_dtype))
    del y


def test_a_converted_seed_is_differentiated():
    x, seed = td.ones(2, requires_grad=True), td.ones(2, dtype=td.float64, requires_grad=True)
    g, = td.autograd.grad(x * x, x, seed, create_graph=True)
    h, = td.autograd.grad(g.sum(), seed)
    assert g.dtype is td.float32 and h.dtype is td.float64 and h.tolist() == [2, 2]
