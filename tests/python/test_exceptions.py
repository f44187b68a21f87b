# needs: porting
"""What raises inside the library leaves nothing behind.

Each raiser ends in an exception that came from a callback, or in the middle of
a pass.  Each probe then asks one thing, first of all things, since an operator
that runs would hide what was left pending.
"""
import os
import signal
import warnings

import pytest

import treadle as td
import treadle.utils.checkpoint
from treadle.autograd.graph import saved_tensors_hooks
from treadle.utils.data import DataLoader, Dataset

ours = pytest.mark.usefixtures("no_leaks")


class Ours(Exception):
    pass


def raises(*args):
    raise Ours


def leaf():
    return td.tensor([1.0, 2.0, 3.0], requires_grad=True)


class Double(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def function(**methods):
    """A function like Double, but for these methods."""
    return type("Odd", (Double,), {k: staticmethod(f) for k, f in methods.items()})


# ---- raisers ----------------------------------------------------------------

def hook():
    x = leaf()
    x.register_hook(raises)
    (x * 2).sum().backward()


def hook_on_a_result():
    y = leaf() * 2
    y.register_hook(raises)
    y.sum().backward(retain_graph=True)


def hook_when_the_graph_is_recorded():
    y = leaf() * 2
    y.register_hook(raises)
    td.autograd.grad(y.exp().sum(), y, create_graph=True)


def hook_after_accumulation():
    x = leaf()
    x.register_post_accumulate_grad_hook(raises)
    (x * 2).sum().backward()


def hook_returns_a_string():
    x = leaf()
    x.register_hook(lambda g: "g")
    (x * 2).sum().backward()


def hook_returns_another_shape():
    x = leaf()
    x.register_hook(lambda g: g[:1])
    (x * 2).sum().backward()


def forward():
    function(forward=raises).apply(leaf())


def forward_in_forward():
    function(forward=lambda ctx, x: function(forward=raises).apply(x)).apply(leaf())


def setup_context():
    function(forward=lambda x: x * 2, setup_context=raises).apply(leaf())


def backward():
    function(backward=raises).apply(leaf()).sum().backward()


def backward_for_grad():
    x = leaf()
    td.autograd.grad(function(backward=raises).apply(x).sum(), x)


def backward_returns_too_many():
    function(backward=lambda ctx, g: (g, g)).apply(leaf()).sum().backward()


def pass_in_a_backward():
    def again(ctx, g):
        with td.enable_grad():
            hook()
    function(backward=again).apply(leaf()).sum().backward()


def pack():
    with saved_tensors_hooks(raises, lambda x: x):
        leaf().exp()


def unpack():
    with saved_tensors_hooks(lambda x: x, raises):
        y = leaf().exp()
    y.sum().backward()


def unpack_returns_none():
    with saved_tensors_hooks(lambda x: x, lambda x: None):
        y = leaf().exp()
    y.sum().backward()


def interrupt_in_a_hook():
    x = leaf()
    x.register_hook(lambda g: os.kill(os.getpid(), signal.SIGINT))
    (x * 2).sum().backward()


def no_memory():
    y = leaf().exp().sum()
    td._C._memory_fail_after(2)
    try:
        y.backward()
    finally:
        td._C._memory_fail_after(-1)


def anomaly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with td.autograd.detect_anomaly():
            (leaf() * 0).sqrt().sqrt().sum().backward()


def hook_under_anomaly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with td.autograd.detect_anomaly():
            hook()


def checkpoint():
    def f(x):
        if later:
            raise Ours
        later.append(1)
        return x.exp()
    later = []
    treadle.utils.checkpoint.checkpoint(f, leaf(), use_reentrant=False).sum().backward()


def functional_grad():
    td.func.grad(lambda x: raises(x.sum()))(leaf())


def functional_backward():
    td.func.grad(lambda x: function(backward=raises).apply(x).sum())(leaf())


def functional_jvp():
    td.func.jvp(lambda x: function(backward=raises).apply(x), (leaf(),), (td.ones(3),))


def functional_vjp():
    td.func.vjp(lambda x: function(backward=raises).apply(x), leaf())[1](td.ones(3))


def wrong_arguments():
    td.autograd.grad([leaf().sum()], [leaf()], [td.ones(()), td.ones(())])


def no_tensor():
    td.autograd.grad(leaf().sum(), ["x"])


def second_pass():
    y = leaf().exp().sum()
    y.backward()
    y.backward()


def item_of_a_dataset():
    class Bad(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            backward()
    list(DataLoader(Bad()))


def array_that_does_not_become_one():
    class Bad:
        __array__ = raises
    leaf() + Bad()


RAISERS = [hook, hook_on_a_result, hook_when_the_graph_is_recorded, hook_after_accumulation, hook_returns_a_string,
           hook_returns_another_shape, forward, forward_in_forward, setup_context, backward, backward_for_grad,
           backward_returns_too_many, pass_in_a_backward, pack, unpack, unpack_returns_none, interrupt_in_a_hook,
           no_memory, anomaly, hook_under_anomaly, checkpoint, functional_grad, functional_backward, functional_jvp,
           functional_vjp, wrong_arguments, no_tensor, second_pass, item_of_a_dataset, array_that_does_not_become_one]


# ---- probes -----------------------------------------------------------------

@pytest.fixture(scope="module")
def known():
    x = td.tensor([1.0, 2.0], requires_grad=True)
    y, z = function(forward=lambda ctx, x: (x[0] * 3, x[1] * 3),
                    backward=lambda ctx, g, h: td.stack([g, h]) * 3).apply(x)
    z.retain_grad()
    (y + z).sum().backward(retain_graph=True)
    return x, z


PROBES = {
    "requires_grad": lambda x, z: x.requires_grad and z.requires_grad,
    "grad": lambda x, z: x.grad.tolist() == [3, 3],
    "grad_fn": lambda x, z: z.grad_fn is not None,
    "is_leaf": lambda x, z: x.is_leaf and not z.is_leaf,
    "output_nr": lambda x, z: z.output_nr == 1,
    "retains_grad": lambda x, z: z.retains_grad,
    "apply": lambda x, z: Double.apply(x).requires_grad,
    "requires_grad_": lambda x, z: td.zeros(2).requires_grad_().requires_grad,
    "creation": lambda x, z: td.zeros(2, requires_grad=True).requires_grad,
    "backward": lambda x, z: td.autograd.grad(Double.apply(x).exp().sum(), x)[0].tolist()
    == (2 * (2 * x).exp()).tolist(),
    "subscript": lambda x, z: x[1].item() == 2,
    "item": lambda x, z: z.item() == 6,
    "recording": lambda x, z: td.is_grad_enabled() and (x + 1).requires_grad,
    "text": lambda x, z: repr(x) == "tensor([1., 2.], requires_grad=True)",
    "seed": lambda x, z: td.Generator().manual_seed(1) is not None,
    "data": lambda x, z: x.data.tolist() == [1, 2],
}


@ours
@pytest.mark.parametrize("raiser", RAISERS, ids=lambda f: f.__name__)
def test_nothing_is_pending_after(raiser, known):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for name, probe in PROBES.items():
            with pytest.raises((Ours, TypeError, RuntimeError, MemoryError, KeyboardInterrupt)):
                raiser()
            assert probe(*known), name
    finally:
        signal.signal(signal.SIGINT, before)


# ---- what runs when something is freed --------------------------------------

class Last:
    """Computes when it is dropped, and keeps the result."""
    kept = []

    def __del__(self):
        try:
            td.zeros(2).view(7)
        except RuntimeError:
            Last.kept.append(td.ones(3) + 1)


def dropped_with_a_function():
    def forward(ctx, x):
        ctx.last = Last()
        return x * 2
    return function(forward=forward).apply(leaf())


def dropped_with_a_hook():
    y = leaf() * 2
    y.register_hook(lambda g, last=Last(): None)
    return y


def dropped_with_saved():
    def pack(x):
        last = Last()
        last.x = x
        return last
    with saved_tensors_hooks(pack, lambda last: last.x):
        return leaf().exp()


def dropped_with_a_tensor():
    y = leaf() * 2
    y.last = Last()         # y saves itself, and its wrapper sleeps
    return y * y


def dropped_with_memory():
    np = pytest.importorskip("numpy")

    class Array(np.ndarray):
        pass
    array = np.ones(3, np.float32).view(Array)
    array.last = Last()
    return leaf() * td.from_numpy(array)


@ours
@pytest.mark.parametrize("make", [dropped_with_a_function, dropped_with_a_hook, dropped_with_saved,
                                  dropped_with_a_tensor, dropped_with_memory], ids=lambda f: f.__name__)
@pytest.mark.parametrize("fails", [False, True])
def test_a_destructor_may_compute(make, fails):
    y = make().sum()
    if fails:
        y.register_hook(raises)
    try:
        y.backward()
    except Ours:
        assert fails
    del y
    made = [td.ones(3) * i for i in range(5)]
    assert Last.kept and all(x.tolist() == [2, 2, 2] for x in Last.kept)
    del Last.kept[:], made


# ---- what returns nonsense --------------------------------------------------

class Product(td.autograd.Function):
    """x * y, whose backward wants to be told what to return."""
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return Product.answer(g)


def slopes(answer):
    x, y = leaf().reshape(1, 3).detach().requires_grad_(), leaf()
    Product.answer = staticmethod(answer)
    Product.apply(x, y).sum().backward()
    return [None if t.grad is None else (t.grad.dtype, t.grad.tolist()) for t in (x, y)]


@ours
@pytest.mark.parametrize("answer, error, words", [
    (lambda g: g, RuntimeError, "Product.backward returned 1 gradients, expected 2, one for each argument"),
    (lambda g: (g, g, g), RuntimeError, "returned 3 gradients, expected 2"),
    (lambda g: (), RuntimeError, "returned 0 gradients, expected 2"),
    (lambda g: None, RuntimeError, "returned 1 gradients"),
    (lambda g: 3, RuntimeError, "returned 1 gradients"),
    (lambda g: {"x": g}, RuntimeError, "returned 1 gradients"),
    (lambda g: (3, g), TypeError, "Product.backward must return Tensors or None, not int"),
    (lambda g: ((g,), g), TypeError, "must return Tensors or None, not tuple"),
    (lambda g: (Product, g), TypeError, "must return Tensors or None, not type"),
    (lambda g: (td.ones(4), g), RuntimeError, r"invalid gradient at index 0 - got \[4\] but expected shape .* \[1, 3\]"),
    (lambda g: (g, td.ones(2)), RuntimeError, r"at index 1 - got \[2\] but expected shape compatible with \[3\]"),
    (lambda g: (g, td.ones(())), RuntimeError, r"at index 1 - got \[\]"),
    (lambda g: (g, td.ones(0)), RuntimeError, r"at index 1 - got \[0\]"),
    (lambda g: (g, g.clone().add_(g).view(7)), RuntimeError, r"shape \[7\] is invalid")])
def test_backward_of_a_function_that_returns_nonsense(answer, error, words):
    with pytest.raises(error, match=words):
        slopes(answer)
    assert slopes(lambda g: (g, None))[0] == (td.float32, [[1, 1, 1]])


@ours
@pytest.mark.parametrize("answer, expected", [
    (lambda g: (None, None), [None, None]), (lambda g: [g, g], [[[1, 1, 1]], [1, 1, 1]]),
    (lambda g: (g, g, None, None), [[[1, 1, 1]], [1, 1, 1]]),
    (lambda g: (g.double(), g.double()), [[[1, 1, 1]], [1, 1, 1]]),
    (lambda g: (g.to(td.int64), g > 0), [[[1, 1, 1]], [1, 1, 1]]),
    (lambda g: (td.ones(2, 1, 3), td.ones(4, 5, 3)), [[[2, 2, 2]], [20, 20, 20]]),
    (lambda g: (g.expand(1, 3), td.ones(1, 1).expand(1, 3)), [[[1, 1, 1]], [1, 1, 1]]),
    (lambda g: (td.arange(6.0)[::2][None], td.arange(3.0, requires_grad=True)), [[[0, 2, 4]], [0, 1, 2]])])
def test_backward_of_a_function_may_return_what_can_be_made_to_fit(answer, expected):
    assert slopes(answer) == [None if e is None else (td.float32, e) for e in expected]


def marked(method, *what):
    def forward(ctx, x):
        getattr(ctx, method)(*what)
        return x * 2
    return function(forward=forward)


@ours
@pytest.mark.parametrize("odd, error, words", [
    (function(forward=lambda ctx, x: None), TypeError, "Odd.forward must return Tensors, not NoneType"),
    (function(forward=lambda ctx, x: 3), TypeError, "must return Tensors, not int"),
    (function(forward=lambda ctx, x: (x * 2, None)), TypeError, "must return Tensors, not NoneType"),
    (function(forward=lambda ctx, x: {"y": x}), TypeError, "must return Tensors, not dict"),
    (function(forward=lambda ctx, x: leaf()), RuntimeError, "result 0 was recorded already, or is a leaf"),
    (function(forward=lambda ctx: 3), TypeError, "argument"),
    (marked("save_for_backward", 3), TypeError, "save_for_backward can only take tensors, but argument 0 is of type int"),
    (marked("mark_dirty", "x"), TypeError, "mark_dirty can only take tensors, but argument 0 is of type str"),
    (marked("mark_non_differentiable", None, []), TypeError, "mark_non_differentiable .* argument 1 is of type list"),
    (marked("mark_dirty", td.ones(1)), RuntimeError, "marked as dirty during the forward method were not returned")],
    ids=str)
def test_forward_of_a_function_that_returns_nonsense(odd, error, words):
    with pytest.raises(error, match=words):
        odd.apply(leaf())
    assert Double.apply(leaf()).requires_grad


@ours
def test_forward_of_a_function_may_return_the_same_twice():
    def twice(ctx, x):
        y = x * 2
        return y, y, x, x
    f = function(forward=twice, backward=lambda ctx, a, b, c, d: a + 10 * b + 100 * c + 1000 * d)
    for k, weight in enumerate([1, 10, 100, 1000]):
        x = leaf()
        results = f.apply(x)
        assert len({id(y) for y in results}) == 4 and x.is_leaf
        results[k].sum().backward()
        assert x.grad.tolist() == [weight] * 3
    x = leaf()
    y = function(forward=lambda ctx, x: ()).apply(x)
    assert y == () and function(forward=lambda ctx, x: x[1:]).apply(x).requires_grad
    whole = function(forward=lambda ctx, x: x.to(td.int64)).apply(x)
    assert not whole.requires_grad and whole.tolist() == [1, 2, 3]


@ours
@pytest.mark.parametrize("answer, error, words", [
    (lambda g: g[:1], RuntimeError, r"result of a hook: the gradient is float32 \[1\], but the tensor is float32 \[3\]"),
    (lambda g: g.double(), RuntimeError, "result of a hook: the gradient is float64"),
    (lambda g: g.to(td.int64), RuntimeError, "result of a hook: the gradient is int64"),
    (lambda g: g.sum(), RuntimeError, "result of a hook"), (lambda g: td.ones(0), RuntimeError, "result of a hook"),
    (lambda g: 3, TypeError, "a hook must return a Tensor or None, not int"),
    (lambda g: [g], TypeError, "a hook must return a Tensor or None, not list"),
    (lambda g: slopes, TypeError, "not function"), (lambda: None, TypeError, "argument"), (int, Exception, "")])
@pytest.mark.parametrize("on_leaf", [False, True])
def test_hooks_that_return_nonsense(answer, error, words, on_leaf):
    x = leaf()
    y = x * 2
    (x if on_leaf else y).register_hook(answer)
    with pytest.raises(error, match=words):
        y.sum().backward()
    assert x.grad is None


@ours
@pytest.mark.parametrize("unpack, words", [
    (lambda x: x[:1], r"unpack hook: it returned float32 \[1\], but what was packed is float32 \[3\]"),
    (lambda x: x.double(), "unpack hook: it returned float64"), (lambda x: x.sum(), "unpack hook: it returned"),
    (lambda x: td.ones(7, 9), "unpack hook: it returned"), (lambda x: None, "expected to be a Tensor but got .* NoneType"),
    (lambda x: 3, "expected to be a Tensor but got .* int"), (lambda: 3, "argument")])
def test_unpack_hooks_that_return_nonsense(unpack, words):
    x = leaf()
    with saved_tensors_hooks(lambda x: x, unpack):
        y = x.exp()
    with pytest.raises((RuntimeError, TypeError), match=words):
        y.sum().backward()
    assert x.grad is None


@ours
@pytest.mark.parametrize("save", ["operand", "result"])
def test_a_pack_hook_raises_while_a_function_saves(save):
    class Twice(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x if save == "operand" else y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf()
    with saved_tensors_hooks(raises, lambda kept: kept), pytest.raises(Ours):
        Twice.apply(x)
    y = Twice.apply(x)
    y.sum().backward()
    assert y.grad_fn is not None and x.grad is not None


@ours
def test_a_retained_graph_outlives_a_hook_that_raises():
    x = td.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    handle = y.register_hook(raises)
    for _ in range(2):
        with pytest.raises(Ours):
            z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    assert x.grad.tolist() == [8, 8, 8]


@ours
def test_pack_hooks_may_not_change_what_is_saved():
    x = leaf()
    with saved_tensors_hooks(lambda x: x.mul_(2), lambda x: x):
        with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
            x.exp()
    with saved_tensors_hooks(lambda x: x.tolist(), lambda x: td.tensor(x)):
        y = x.exp()
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_seeds_are_counted():
    x = leaf()
    y = x * 2, x * 3, x * 4
    for seeds in [(td.ones(3),), (td.ones(3),) * 2, (td.ones(3),) * 9]:
        with pytest.raises(RuntimeError, match=f"got 3 tensors and {len(seeds)} gradients"):
            td.autograd.grad(y, x, seeds)
        with pytest.raises(RuntimeError, match=f"got 3 tensors and {len(seeds)} gradients"):
            td.autograd.backward(y, seeds)
    assert td.autograd.grad(y, x, (td.ones(3),) * 3)[0].tolist() == [9, 9, 9]


def test_anomaly_mode_does_not_name_the_place_of_an_earlier_failure():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with td.autograd.detect_anomaly():
            with pytest.raises(RuntimeError, match="nan"):
                (leaf() * 0).sqrt().sqrt().sum().backward()
            assert "Traceback of forward call" in str(said.pop().message)
            del said[:]
            y = leaf() * 2
            y.register_hook(raises)
            with pytest.raises(Ours):
                y.backward(td.ones(3))
    assert not said
