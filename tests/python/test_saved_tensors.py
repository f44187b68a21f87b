# needs: layers
# SPDX-License-Identifier: MIT
"""What the graph keeps: for every gradient that is wanted what it uses, and nothing else."""
import concurrent.futures
import weakref
from itertools import combinations

import pytest
import treadle as td
from registry_cases import OPERATORS, REFUSALS, arguments

F = td.nn.functional
USES_OF_ZEROS = {"pow", "xlogy"}                        # ask whether an operand is zero
USES_OF_EITHER = {"lerp"}                               # chooses between two forms, of one slope
FOR_SECOND = {"gated", "lstm", "gru", "attend"}                # keep for second derivatives what the first do not read
SPOILS = [lambda x: x * 0 + float("nan"), lambda x: -x - 3, lambda x: x * 5 + 9]


class Kept:
    def __init__(self, tensor):
        self.tensor = tensor


def gradients(op, args, named, wanted, spoilt=None, spoil=None):
    """Gradients of the operands wanted, and what was saved; number `spoilt` of that comes back spoilt."""
    kept = []

    def pack(x):
        holder = Kept(x)
        kept.append(weakref.ref(holder))
        return holder

    def unpack(holder):
        return spoil(holder.tensor) if spoilt is not None and kept[spoilt]() is holder else holder.tensor
    td.manual_seed(3)
    leaves = [args[i].detach().requires_grad_() for i in wanted]
    args = [leaves[wanted.index(i)] if i in wanted else x for i, x in enumerate(args)]
    with td.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = op.function(*args, **named)
    results = [r for r in ([y] if isinstance(y, td.Tensor) else y) if isinstance(r, td.Tensor) and r.requires_grad]
    saved = [ref() and ref().tensor for ref in kept]
    loss = sum((r * td.arange(1, r.numel() + 1, dtype=r.dtype).reshape(r.shape)).sum() for r in results)
    return (td.autograd.grad(loss, leaves, allow_unused=True) if results else []), saved


def spoils_of(x):
    return [] if x is None else SPOILS if x.is_floating_point() else [td.logical_not] if x.dtype is td.bool else []


def differ(a, b):
    return any(x is not None and not td.equal(x, y) for x, y in zip(a, b))


@pytest.mark.parametrize("name", [name for name in OPERATORS if not name.endswith("_")])
def test_everything_saved_changes_a_gradient(name):
    op = OPERATORS[name]
    for call in op.calls:
        args, named = arguments(op, call)
        reals = [i for i, x in enumerate(args) if isinstance(x, td.Tensor) and x.is_floating_point()]
        for wanted in (c for n in range(1, len(reals) + 1) for c in combinations(reals, n)):
            try:
                plain, saved = gradients(op, args, named, wanted)
            except REFUSALS:                            # no derivative, and no operator without a sample of one
                continue
            if name in USES_OF_ZEROS | USES_OF_EITHER | FOR_SECOND or not any(g is not None and g.any() for g in plain):
                continue
            for k, x in enumerate(saved):
                assert not spoils_of(x) or any(differ(plain, gradients(op, args, named, wanted, k, spoil)[0])
                                               for spoil in spoils_of(x)), f"{args}, {named}: the gradients of {wanted} ignore {x}"


WIDE = {"dtype": td.float64}


def change(x):
    with td.no_grad():
        x.mul_(3)


# (what is computed of a tensor x that wants a gradient and a constant c; whether c may then be overwritten)
FREE = {
    "div by a number": (lambda x, c: x / 3, True),
    "div by a constant": (lambda x, c: x / c, False),
    "div of a constant": (lambda x, c: c / x, False),
    "normalised": (lambda x, c: x / x.sum(-1, keepdim=True), True),
    "mul by a number": (lambda x, c: x * 3, True),
    "pow of a constant": (lambda x, c: td.pow(c, 2) + x, True),
    "fmod": (lambda x, c: td.fmod(x, c), True),
    "remainder": (lambda x, c: td.remainder(x, c), True),
    "copysign": (lambda x, c: td.copysign(c, x), True),
    "addmm": (lambda x, c: td.addmm(x, c, c), True),
    "linear's bias": (lambda x, c: F.linear(c, c, x[0]), True),
    "lerp": (lambda x, c: td.lerp(x, c, 0.25), True),
    "where": (lambda x, c: td.where(td.ones(3, 3, dtype=td.bool), x, c), True),
    "masked_fill": (lambda x, c: x.masked_fill(td.eye(3, dtype=td.bool), 1.0), True),
    "addcdiv": (lambda x, c: td.addcdiv(x, c, c), True),
    "dist": (lambda x, c: (x - c).abs().sum(), True),
    "soft targets": (lambda x, c: F.cross_entropy(c.log(), x), False),
}


@pytest.mark.parametrize("what", FREE)
def test_what_no_gradient_needs_may_be_overwritten(what, no_leaks):
    function, constant_is_free = FREE[what]
    gradients = []
    for overwrite in (False, True):
        td.manual_seed(1)
        x, c = (td.rand(3, 3, **WIDE) + 0.5).requires_grad_(), td.rand(3, 3, **WIDE) + 0.5
        y = function(x * 1, c)
        seed = y.detach() + 1
        if overwrite:
            change(y)
            if constant_is_free:
                change(c)
        y.backward(seed)
        gradients.append(x.grad)
    assert td.equal(*gradients)


def test_scores_are_masked_in_place():
    q, k = td.rand(2, 5, 8, requires_grad=True), td.rand(2, 5, 8, requires_grad=True)
    mask = td.ones(5, 5, dtype=td.bool).triu(1)
    scores = q @ k.transpose(-2, -1) / 8 ** 0.5
    masked = scores.masked_fill(mask, -1e9)
    expected = td.autograd.grad(masked.softmax(-1).square().sum(), (q, k))
    scores = q @ k.transpose(-2, -1) / 8 ** 0.5
    scores.masked_fill_(mask, -1e9)
    got = td.autograd.grad(scores.softmax(-1).square().sum(), (q, k))
    assert all(td.equal(a, b) for a, b in zip(expected, got))


def test_frozen_weights_keep_no_inputs(no_leaks):
    w, b = td.rand(4, 3), td.rand(4)
    layer = td.nn.Conv2d(3, 4, 3)
    layer.requires_grad_(False)
    x, images = td.rand(2, 3, requires_grad=True), td.rand(1, 3, 5, 5, requires_grad=True)
    inner, inside = x * 1, images * 1
    y, z = F.linear(inner, w, b).sum(), layer(inside).sum()
    change(inner), change(inside)
    y.backward(), z.backward()
    assert td.allclose(x.grad, w.sum(0).expand(2, 3)) and images.grad is not None


def test_a_change_in_place_keeps_no_copy(no_leaks):
    x = td.rand(1000, requires_grad=True)
    y = x * 1
    kept = []
    with td.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y.mul_(2).div_(4).add_(1)
    y.sum().backward()
    assert kept == [] and td.equal(x.grad, td.full((1000,), 0.5))
    kept.clear()


def test_a_copy_to_a_device_keeps_nothing():
    x = td.rand(3, requires_grad=True)
    batch = x * 1
    y = td._C.to_device(batch, device="cpu")
    change(batch)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_second_derivatives_of_a_quotient():
    a, b = (td.rand(4, **WIDE) + 0.5).requires_grad_(), (td.rand(4, **WIDE) + 0.5).requires_grad_()
    assert td.autograd.gradcheck(lambda a, b: a / b, (a, b)) and td.autograd.gradgradcheck(lambda a, b: a / b, (a, b))


def test_memory_of_others_is_not_written_to():
    np = pytest.importorskip("numpy")
    theirs = np.ones(4, "float32")

    class Ones(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return td.from_numpy(theirs)
    x = td.ones(4, requires_grad=True)
    y = F.silu(x * 2)
    y.register_hook(lambda g: td.from_numpy(theirs))
    y.sum().backward()
    z = x * 1
    (Ones.apply(z) + z * 3 + Ones.apply(z)).sum().backward()
    assert (theirs == 1).all()


FORGETFUL = {
    "norm": lambda x, s, b, w: F.relu(F.batch_norm(F.linear(x, w), None, None, s, b, True)) @ w,
    "rows": lambda x, s, b, w: F.linear(F.layer_norm(x * 2, (160,), s, b), w),
    "folded": lambda x, s, b, w: F.linear(F.layer_norm((x * 2).view(4, 30, 160), (160,), s, b), w),
    "root": lambda x, s, b, w: F.silu(F.rms_norm(x * 2, (160,), s)) @ w,
    "gelu": lambda x, s, b, w: F.gelu(F.layer_norm(x, (160,), s, b)) @ w,
}


def forgetful_leaves():
    td.manual_seed(1)
    return [(td.randn(*shape) * 0.1 + 0.2).requires_grad_() for shape in ((120, 160), (160,), (160,), (160, 160))]


def held_by(make):
    before = td.memory_stats()["bytes"]
    return make(), td.memory_stats()["bytes"] - before


@pytest.mark.parametrize("name", FORGETFUL)
def test_what_is_computed_again_has_the_same_bits(name):
    """Under hooks that want to see all, nothing is forgotten."""
    leaves, answers, held = forgetful_leaves(), [], []
    with td.no_grad():
        weights = td.randn(*FORGETFUL[name](*leaves).shape)
    for hooks in (td.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t), td.enable_grad()):
        with hooks:
            y, bytes = held_by(lambda: FORGETFUL[name](*leaves))
        held.append(bytes)
        loss = (y * weights).sum()
        first = td.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True)
        slopes = td.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        again = td.autograd.grad(sum((g * g).sum() for g in slopes if g is not None), leaves, allow_unused=True)
        answers.append([[g.detach() for g in some if g is not None] for some in ((*first, *slopes), again)])
        del y, loss, slopes
    assert held[1] <= held[0] - 120 * 160 * 4 + 4096
    assert all(td.equal(a, b) for a, b in zip(answers[0][0], answers[1][0], strict=True))
    for a, b in zip(answers[0][1], answers[1][1], strict=True):         # sums in another order
        assert (a - b).abs().max() <= 1e-5 * b.abs().max()


def behind(x, change):
    """Change x in a way that no version shows."""
    if change == "address":
        x.detach().numpy()[...] *= 2
    elif change == "data":
        x.data.mul_(2)
    elif change == "storage":
        x.data = x.detach() * 2
    elif change == "counted":
        with td.no_grad():
            x.mul_(2)


@pytest.mark.parametrize("change", ["address", "data", "storage", "counted"])
def test_a_value_changed_before_its_use_is_saved_as_it_is(change):
    x, s, b, w = forgetful_leaves()
    r = F.relu(F.layer_norm(x, (160,), s, b))
    behind(r, change)
    as_used = r.detach().clone()
    y = (r @ w).sum()
    del r
    g, = td.autograd.grad(y, [w])
    assert td.equal(g, as_used.T @ td.ones(120, 160))


@pytest.mark.parametrize("change", ["address", "data", "storage", "counted"])
@pytest.mark.parametrize("which", ["weight", "bias"])
def test_numbers_changed_after_their_use_do_not_matter(change, which):
    x, s, b, w = forgetful_leaves()
    r = F.relu(F.layer_norm(x, (160,), s, b))
    as_used = r.detach().clone()
    y = (r @ w).sum()
    del r
    behind(s if which == "weight" else b, change)
    g, = td.autograd.grad(y, [w])
    assert td.equal(g, as_used.T @ td.ones(120, 160))


def test_hooks_and_second_derivatives_know_what_was_computed_again():
    x, s, b, w = forgetful_leaves()
    with td.no_grad():
        v = td.randn(120, 160)
    got = []
    for hooks in (td.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t), td.enable_grad()):
        seen = []
        with hooks:
            r = F.relu(F.layer_norm(x, (160,), s, b))
            r.register_hook(lambda g, seen=seen: seen.append(g.detach().clone()))
            y = ((r @ w) * v).sum()
        g, = td.autograd.grad(y, [w], create_graph=True)
        dr, dx = td.autograd.grad((g * g).sum(), [r, x])
        got.append((dr, dx, *seen))
        del r, y, g
    assert len(got[0]) == len(got[1]) and all(td.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(*got))


def test_a_function_that_writes_to_what_it_saved_changes_nothing_else():
    class Spoils(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            x.detach().numpy()[...] = 7
            return g * 3

    x, s, b, w = forgetful_leaves()
    r = F.relu(F.layer_norm(x, (160,), s, b))
    as_used = r.detach().clone()
    y = Spoils.apply(r).sum() + (r @ w).sum()
    del r
    y.backward()
    assert td.equal(w.grad, as_used.T @ td.ones(120, 160))


def test_threads_that_compute_again_at_once():
    """Two graphs that share what was forgotten, and nothing else."""
    x, s, b, w = forgetful_leaves()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            r = F.relu(F.layer_norm(x, (160,), s, b)).detach()
            expected = r.T @ td.ones(120, 160)
            sums = [(r.view(r.shape).requires_grad_() @ w).sum() for _ in range(4)]
            del r
            for again in (True, False):
                for g, in pool.map(lambda y, again=again: td.autograd.grad(y, [w], retain_graph=again), sums):
                    assert td.equal(g, expected)
