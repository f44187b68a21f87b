# needs: functional package
"""Derivatives as functions: products, Jacobians, Hessians, levels."""
from collections import OrderedDict, defaultdict, namedtuple

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


def test_trees_keep_their_kinds():
    Pair = namedtuple("Pair", "w b")
    x = td.tensor([1.0, 2.0])
    g = func.grad(lambda p: (p.w * x + p.b).sum())(Pair(x + 1, x))
    assert type(g) is Pair and g.w.tolist() == [1.0, 2.0] and g.b.tolist() == [1.0, 1.0]
    given = defaultdict(list, w=x, b=[x])
    g = func.grad(lambda p: (p["w"] * p["b"][0]).sum())(given)
    assert type(g) is defaultdict and g["w"].tolist() == g["b"][0].tolist() == [1.0, 2.0]
    assert g["none"] == [] and "none" not in given and given["w"] is x
    out, pull = func.vjp(lambda a: Pair(a * 2, OrderedDict(c=a)), x)
    assert type(out) is Pair and type(out.b) is OrderedDict
    assert pull(Pair(x, {"c": x})).tolist() == [3.0, 6.0]


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
    with pytest.raises(RuntimeError, match="scalar tensor, got treadle.Size"):
        func.grad(lambda x: x * 2)(x)
    with pytest.raises(RuntimeError, match="argnum=2"):
        func.grad(lambda x: x.sum(), argnums=2)(x)
    with pytest.raises(RuntimeError, match="only tensors"):
        func.vjp(lambda x: 3, x)
    with pytest.raises(RuntimeError, match="expected primals to be a tuple"):
        func.jvp(lambda x: x, x, x)
    with pytest.raises(RuntimeError, match="same structure"):
        func.jvp(lambda x: x, (x,), (x, x))


def test_a_network_as_a_function_of_its_parameters():
    net = td.nn.Sequential(td.nn.Linear(2, 2), td.nn.Linear(2, 1))
    given = {k: p.detach() * 2 for k, p in net.named_parameters()}
    x = td.ones(3, 2)
    g = func.grad(lambda p: func.functional_call(net, p, x).sum())(given)
    assert set(g) == set(given) and g["1.bias"].tolist() == [3.0]
    twin = td.nn.Sequential(td.nn.Linear(2, 2), td.nn.Linear(2, 1))
    twin.load_state_dict(given)
    twin(x).sum().backward()
    for name, p in twin.named_parameters():
        close(p.grad, g[name])
    assert all(not p.requires_grad or p.grad is None for p in net.parameters())
    with pytest.raises(KeyError):
        func.functional_call(net, {"0.weights": x}, x)


# --- options of the pass -------------------------------------------------------

def test_backward_to_chosen_inputs():
    x, w = td.ones(2, requires_grad=True), td.ones(2, requires_grad=True)
    h = x * 2
    (h * w).sum().backward(inputs=[h])
    assert h.grad.tolist() == [1.0, 1.0] and x.grad is None and w.grad is None
    (x * w).sum().backward(inputs=x)
    (x * w).sum().backward(inputs=(x,))
    assert x.grad.tolist() == [2.0, 2.0] and w.grad is None
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * w).sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match="does not require"):
        (x * w).sum().backward(inputs=[td.ones(2)])
    h = x * 2
    h.retain_grad()
    (h * w).sum().backward(inputs=[h])
    assert h.grad.tolist() == [1.0, 1.0]


def test_options_of_grad():
    x, z = td.ones(2, requires_grad=True), td.ones(1, requires_grad=True)
    assert td.autograd.grad(x.sum(), (x, z), allow_unused=True)[1] is None
    assert td.autograd.grad(x.sum(), (x, z), materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="not used"):
        td.autograd.grad(x.sum(), (x, z))
    with pytest.raises(ValueError, match="allow_unused"):
        td.autograd.grad(x.sum(), (x, z), allow_unused=False, materialize_grads=True)
    with pytest.raises(NotImplementedError, match="is_grads_batched"):
        td.autograd.grad(x.sum(), x, is_grads_batched=True)


def test_a_hook_after_the_gradient(no_leaks):
    x, seen = td.ones(2, requires_grad=True), []

    def hook(p):
        seen.append((p is x, p.grad.tolist()))
        p.grad = None
    handle = x.register_post_accumulate_grad_hook(hook)
    (x * x * x).sum().backward()
    assert seen == [(True, [3.0, 3.0])] and x.grad is None
    handle.remove()
    x.sum().backward()
    assert len(seen) == 1 and x.grad is not None
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(hook)
    with pytest.raises(RuntimeError, match="doesn't require"):
        td.ones(1).register_post_accumulate_grad_hook(hook)
    x.grad = None


def test_nodes_lead_to_nodes():
    x = td.ones(2, requires_grad=True)
    y = (x * 3).sum()
    assert y.grad_fn == y.grad_fn and y.grad_fn.name() == "SumBackward0"
    (product, slot), = y.grad_fn.next_functions
    assert product.name() == "MulBackward0" and slot == 0
    (leaf, _), (nothing, _) = product.next_functions
    assert leaf.variable is x and leaf.name() == "AccumulateGrad" and nothing is None
    assert x.grad_fn is None and y.output_nr == 0
    assert (x * 1).retains_grad is False
    h = x * 1
    h.retain_grad()
    assert h.retains_grad


# --- modes ---------------------------------------------------------------------

def test_generators_run_in_the_mode():
    log = []

    @td.no_grad()
    def steps():
        got = yield td.is_grad_enabled()
        try:
            yield got, td.is_grad_enabled()
        except ValueError:
            yield "caught", td.is_grad_enabled()
        try:
            yield
        finally:
            log.append(td.is_grad_enabled())
    it = steps()
    assert next(it) is False and td.is_grad_enabled()
    assert it.send("x") == ("x", False) and td.is_grad_enabled()
    assert it.throw(ValueError()) == ("caught", False)
    next(it)
    it.close()
    assert log == [False] and td.is_grad_enabled()

    @td.no_grad()
    def returns():
        yield
        return 7
    with pytest.raises(StopIteration) as end:
        it = returns()
        next(it)
        next(it)
    assert end.value.value == 7


def test_inference_mode():
    def state():
        return td.is_inference_mode_enabled(), td.is_grad_enabled()
    with td.inference_mode():
        assert state() == (True, False)
        with td.inference_mode(False):
            assert state() == (False, True)
        assert state() == (True, False)
    assert state() == (False, True)
    assert td.inference_mode()(state)() == td.inference_mode(state)() == (True, False)


# --- anomaly mode --------------------------------------------------------------

def test_the_first_nan_is_named():
    x = td.zeros(1, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        mode = td.autograd.detect_anomaly()
    with mode:
        y = td.sqrt(x * 1)       # the line to be found
        z = (y * 0).sum()
        with pytest.warns(UserWarning, match="the line to be found"), \
                pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th"):
            z.backward()
    (td.sqrt(x * 1) * 0).sum().backward()
    assert x.grad.isnan().all()
    x.grad = None


def test_modes_of_anomaly():
    assert not td.is_anomaly_enabled()
    with td.autograd.set_detect_anomaly(True, check_nan=False):
        assert td.is_anomaly_enabled() and not td.is_anomaly_check_nan_enabled()
        x = td.zeros(1, requires_grad=True)
        (td.sqrt(x) * 0).sum().backward()
    td.autograd.set_detect_anomaly(True)
    assert td.is_anomaly_check_nan_enabled()
    td.autograd.set_detect_anomaly(False)
    assert not td.is_anomaly_enabled()


def test_infinite_gradients_are_no_anomaly():
    x = td.zeros(1, requires_grad=True)
    with td.autograd.set_detect_anomaly(True):
        td.sqrt(x).sum().backward()
    assert x.grad.item() == float("inf")
    x.grad = None


# --- saved tensors -------------------------------------------------------------

def test_what_is_saved_passes_the_hooks(no_leaks):
    x, log = td.tensor([2.0], requires_grad=True), []

    def pack(t):
        log.append(t.requires_grad)
        return {"it": t.clone()}
    with td.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept["it"]):
        y = (x.exp() * x).sum()
    assert log == [False] * 3
    assert y.grad_fn is not None
    g, = td.autograd.grad(y, x, create_graph=True)
    h, = td.autograd.grad(g, x)
    e = x.detach().exp()
    assert abs(g.item() - (3 * e).item()) < 1e-5
    assert abs(h.item() - (4 * e).item()) < 1e-4


def test_hooks_nest_and_end(no_leaks):
    def times(k):
        return td.autograd.graph.saved_tensors_hooks(lambda t: t * k, lambda t: t)
    x = td.ones(1, requires_grad=True)
    with times(2):
        with times(3):
            a = x * x
        b = x * x
    c = x * x
    assert [td.autograd.grad(y, x)[0].item() for y in (a, b, c)] == [6.0, 4.0, 2.0]


def test_hooks_that_fail(no_leaks):
    x = td.ones(1, requires_grad=True)

    def refuse(t):
        raise KeyError("full")
    with td.autograd.graph.saved_tensors_hooks(refuse, lambda t: t):
        with pytest.raises(KeyError):
            x * x
    with td.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    with pytest.raises(TypeError, match="expected to be a Tensor"):
        y.backward()
    with td.autograd.graph.saved_tensors_hooks(lambda t: t, refuse):
        y = x * x
    with pytest.raises(KeyError):
        y.backward()
    with td.autograd.graph.save_on_cpu():
        y = x * x
    y.backward()
    assert x.grad.item() == 2.0
    x.grad = None


# --- checkpoints ---------------------------------------------------------------

class Drop(td.nn.Module):
    def forward(self, x):
        return x * (td.rand(*x.shape) > 0.5).to(x.dtype)


def test_checkpoints_compute_the_same(no_leaks):
    from treadle.utils.checkpoint import checkpoint, checkpoint_sequential
    td.manual_seed(0)
    net = td.nn.Sequential(td.nn.Linear(4, 8), td.nn.ReLU(), Drop(), td.nn.Linear(8, 8),
                           td.nn.Tanh(), td.nn.Linear(8, 1))
    x, found = td.randn(5, 4), []
    for forward in (net, lambda x: checkpoint(net, x), lambda x: checkpoint_sequential(net, 3, x)):
        td.manual_seed(1)
        forward(x).sum().backward()
        found.append([p.grad.tolist() for p in net.parameters()] + [td.rand(2).tolist()])
        for p in net.parameters():
            p.grad = None
    assert found[0] == found[1] == found[2]


def test_a_checkpoint_saves_memory():
    from treadle.utils.checkpoint import checkpoint

    def deep(x):
        for _ in range(20):
            x = x.tanh()
        return x
    x = td.ones(10000, requires_grad=True)
    before = td.memory_stats()["bytes"]
    y = deep(x)
    plain = td.memory_stats()["bytes"] - before
    del y
    y = checkpoint(deep, x)
    assert td.memory_stats()["bytes"] - before < plain / 4
    y.sum().backward()
    assert x.grad is not None


def test_checkpoints_in_odd_places(no_leaks):
    from treadle.utils.checkpoint import checkpoint
    x = td.ones(2, requires_grad=True)
    g, = td.autograd.grad(checkpoint(lambda x: x.exp() * x, x).sum(), x, create_graph=True)
    h, = td.autograd.grad(g.sum(), x)
    close(h, td.ones(2).exp() * 3)
    y = checkpoint(lambda x: checkpoint(lambda x: x.exp(), x) * x, x)
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.sum().backward()
    close(x.grad, first * 2)
    x.grad = None
    calls = []

    def fickle(x):
        calls.append(1)
        return x.exp() * x if len(calls) == 1 else x * 2
    y = checkpoint(fickle, x)
    with pytest.raises(RuntimeError, match="saved 3 tensors, and 0 when run again"):
        y.sum().backward()
    with td.no_grad():
        assert not checkpoint(lambda x: x * 2, x).requires_grad
    x.grad = None


# --- functions of one's own ----------------------------------------------------

class Scale(td.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x * k, x > 0

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_backward(inputs[0])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        x, = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return g * ctx.k + 0 * x, None


def test_a_context_set_up_afterwards():
    x = td.ones(2, requires_grad=True)
    y, positive = Scale.apply(x, 3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and not positive.requires_grad


class Triple(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_functions_in_place(no_leaks):
    x = td.ones(2, requires_grad=True)
    y = x * 2
    z = Triple.apply(y)
    assert z is y and z.tolist() == [6.0, 6.0] and z.grad_fn.name() == "TripleBackward"
    (z * z).sum().backward()
    assert x.grad.tolist() == [72.0, 72.0]
    with pytest.raises(RuntimeError, match="leaf"):
        Triple.apply(td.ones(2, requires_grad=True))
    y = x * 2
    row = y[0]
    with pytest.raises(RuntimeError, match="view"):
        Triple.apply(row)
    plain = td.ones(2)
    assert Triple.apply(plain) is plain and plain.tolist() == [3.0, 3.0]
    x.grad = None


def test_once_differentiable():
    from treadle.autograd.function import once_differentiable

    class Square(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            x, = ctx.saved_tensors
            assert not td.is_grad_enabled()
            return 2 * x * g
    x = td.ones(2, requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    g, = td.autograd.grad((Square.apply(x) * x).sum(), x, create_graph=True)
    assert g.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="differentiate twice"):
        g.sum().backward()
    x.grad = None


def test_functional_call_heeds_tied_weights_and_strict():
    m = td.nn.Module()
    m.first = m.second = td.nn.Parameter(td.ones(2))
    m.forward = lambda: m.first + 10 * m.second
    new = {"first": td.tensor([2.0, 3.0])}
    assert func.functional_call(m, new).tolist() == [22.0, 33.0]
    assert func.functional_call(m, new, tie_weights=False).tolist() == [12.0, 13.0]
    both = {**new, "second": td.zeros(2)}
    assert func.functional_call(m, both).tolist() == [2.0, 3.0]
    assert m.first.tolist() == m.second.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="missing keys: second"):
        func.functional_call(m, new, tie_weights=False, strict=True)
    assert func.functional_call(m, new, strict=True).tolist() == [22.0, 33.0]


@pytest.mark.parametrize("choose", [
    lambda a: a.sort()[0], lambda a: a.topk(3)[0], lambda a: a.cummax(0)[0].flip(0), lambda a: a.kthvalue(2, 0)[0] * 3,
    lambda a: a.median(0)[0], lambda a: a.quantile(0.5), lambda a: a.max(0)[0]])
def test_what_is_chosen_has_second_derivatives(choose):
    x = td.tensor([3., 1., 2.], dtype=td.float64)
    w = td.tensor([1., 2., 3.], dtype=td.float64)
    close(func.hessian(lambda a: (choose(a) * w).sum() + (a * a).sum())(x), 2 * td.eye(3, dtype=td.float64))
    twice = func.hessian(lambda a: (choose(a) ** 2 * w).sum())(x)
    plain = func.jacfwd(func.grad(lambda a: (choose(a) ** 2 * w).sum()))(x) if hasattr(func, "jacfwd") else twice
    close(twice, plain)
    assert twice.abs().sum() > 0
