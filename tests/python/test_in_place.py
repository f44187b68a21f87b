# needs: in-place activations indexing package
"""Changes in place: histories, views, versions, refusals."""
import gc

import pytest
import treadle as td

WIDE = {"dtype": td.float64}


def leaf(*shape):
    return (td.rand(*shape, **WIDE) + 0.5).requires_grad_()


def rows(x, w):
    y = td.zeros(3, 2, **WIDE)
    y[0] = w[0]
    y[0] += 1
    y[1] = x[1] * 2
    return y * y


def overlapping_views(x, w):
    y = x * 1
    a, b = y.view(6), y.t()
    a[5] = 0
    b[0] = b[0] * 2
    a[1:4].sigmoid_()
    return (a * a).sum() + (b * x.t()).sum() + y


def saved_operands(x, w):
    y = x * 1
    y.mul_(w)
    y.mul_(y)
    y.div_(w + 1).exp_().pow_(2)
    return y - w


def an_old_view_sees_the_change(x, w):
    y = x * 2
    v = y[0]
    y.mul_(w)
    return v * y[1]


def expanded_view(x, w):
    y = x[:1] * 1
    v = y.expand(3, 2)
    y.mul_(2)
    return v * w


def lists_and_masks(x, w):
    y = x * 1
    y[[0, 2], [1, 0]] = w[0]
    y[y > 1.2] = 0
    y.index_put_((td.tensor([0, 0]), td.tensor([0, 0])), w[1], accumulate=True)
    y[[1], :] *= 3
    return y * x


def scattered(x, w):
    y = td.zeros(3, 2, **WIDE)
    at = td.tensor([[0, 1], [1, 0]])
    y.scatter_(1, at, x).scatter_add_(0, at, w)
    y.index_add_(0, td.tensor([1, 1]), x[:2], alpha=2)
    y.index_copy_(1, td.tensor([1]), w[:, 1:]).index_fill_(0, td.tensor([0]), 3)
    return y * y


def filled(x, w):
    y = x * w
    y[0].fill_(2)
    y[1].zero_()
    y.masked_fill_(td.tensor([True, False]), 1.0)
    return y * y


def filled_where_expanded(x, w):
    y = x[:1] * w[:1]
    v = y.expand(3, 2)
    v[:, 0].fill_(2)
    u = v + x
    v[1:, 1] = w[0, 0]
    return u * x + v * y


def broadcast_source(x, w):
    y = x * 1
    y[1:] = w[0]
    y.t()[1].copy_(w[:, 1])
    return y * y


FUNCTIONS = [rows, overlapping_views, saved_operands, an_old_view_sees_the_change,
             expanded_view, lists_and_masks, scattered, filled, filled_where_expanded,
             broadcast_source]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_through_changes(f):
    x, w = leaf(3, 2), leaf(3, 2)
    assert td.autograd.gradcheck(f, (x, w))
    assert td.autograd.gradgradcheck(f, (x, w))


def test_golden_numbers_of_pytorch():
    w = td.tensor([1., 2.], requires_grad=True)
    y = td.zeros(3, 2)
    y[0] = w
    y[0] += 1
    y[1] = w * 2
    (y * y).sum().backward()
    assert w.grad.tolist() == [12.0, 22.0]
    x = td.tensor([1., 2., 3.], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0, 24.0, 36.0]
    assert x.grad.tolist() == [72.0, 144.0, 216.0]


def test_nothing_comes_of_what_is_overwritten():
    x = td.ones(3, requires_grad=True)
    y = x * 2
    y.copy_(td.zeros(3))
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    y = x * 2
    y[1:] = float("inf")
    (y * td.tensor([1., float("inf"), 1.])).sum().backward()
    assert x.grad.tolist() == [2, 0, 0]


def test_what_is_a_view():
    x = td.zeros(2, 3)
    v = x[0]
    assert v._base is x and v[1:]._base is x and x._base is None
    assert x.detach()._base is None and x.clone()._base is None
    assert x.contiguous() is not None and x.t().reshape(6)._base is None
    w = td.ones(3, requires_grad=True)
    x[1] = w
    assert x.requires_grad and v.requires_grad and not v.is_leaf
    assert v._version == x._version == 1


def refused(words):
    return pytest.raises(RuntimeError, match=words)


def test_changes_that_are_refused():
    x = td.ones(3, 2, requires_grad=True)
    with refused("a leaf that requires a gradient"):
        x.add_(1)
    with refused("a view of a leaf that requires a gradient"):
        x[0].add_(1)
    with refused("a view of a leaf"):
        x[0] = 1
    with refused("a view of a leaf"):
        x[[0, 1], 1] = 1
    y = x * 1
    with td.no_grad():
        v, z = y[0], x[1:]
        x[0] = 5
    assert x[0].tolist() == [5, 5]
    with refused("while gradients were not recorded"):
        v.add_(x[0])
    for write in (lambda: v.mul_(3), lambda: v.__setitem__(0, 1),
                  lambda: v.t().zero_(), lambda: v.copy_(td.ones(2))):
        with refused("while gradients were not recorded"):
            write()
    with td.no_grad():
        v.mul_(3)
        w = td.ones(2, 2)[0]
    assert w.add_(x[0]).tolist() == [6, 6]
    with refused("cannot hold the broadcast shape"):
        y[:1].add_(x)
    with refused("int64"):
        td.zeros(2, dtype=td.int64).add_(x[0])


IN_PLACE = [lambda y: y.copy_(y * 1), lambda y: y.fill_(1), lambda y: y.zero_(), lambda y: y.mul_(2),
            lambda y: y.relu_(), lambda y: y.clamp_(0, 1), lambda y: y.uniform_(), lambda y: y.unsqueeze_(0),
            lambda y: y.squeeze_(), lambda y: y.t_(), lambda y: y.masked_fill_(y > 0, 1),
            lambda y: y.index_fill_(0, td.tensor([0]), 1.0), lambda y: y.tril_(), lambda y: y.cumsum_(0),
            lambda y: y.__setitem__(0, y[0]), lambda y: y.__setitem__(0, y), lambda y: y.__setitem__(slice(None), y),
            lambda y: y.__setitem__(y > 0, 1.0), lambda y: y.__setitem__(td.tensor([0]), y[0])]
LOOKS = [lambda x: x, lambda x: x[:], lambda x: x.view(-1).view(1, 3), lambda x: x.t().t(), lambda x: x[0].unsqueeze(0),
         lambda x: x.expand(2, 1, 3)[1], lambda x: x.narrow(1, 0, 3).squeeze(0)[None]]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("write", IN_PLACE)
def test_no_write_reaches_a_leaf_that_requires_a_gradient(look, write):
    x = td.tensor([[1.0, -2.0, 3.0]], requires_grad=True)
    with refused("a leaf that requires a gradient|a view of a leaf"):
        write(look(x))
    assert x.tolist() == [[1, -2, 3]] and x._version == 0 and x.is_leaf


def test_what_is_expanded_takes_one_value():
    x = td.arange(6.0).reshape(2, 1, 3)
    x.expand(2, 4, 3)[0].fill_(7)
    assert x.tolist() == [[[7, 7, 7]], [[3, 4, 5]]]
    x.expand(5, 2, 4, 3)[:, 1, :, 2].zero_()
    assert x.tolist() == [[[7, 7, 7]], [[3, 4, 0]]]
    x.expand(2, 4, 3)[1, 1:] = td.tensor(8)
    assert x.tolist() == [[[7, 7, 7]], [[8, 8, 8]]] and x._version == 3
    x.expand(2, 0, 3).fill_(9)
    with refused("several elements share one place"):
        x.expand(2, 4, 3)[0, 1:] = td.ones(3, 3)
    with refused("several elements share one place"):
        x.expand(2, 4, 3).add_(1)
    assert x.tolist() == [[[7, 7, 7]], [[8, 8, 8]]]


@pytest.mark.parametrize("change", [
    lambda y: y.add_(1), lambda y: y[0].zero_(), lambda y: y.t().mul_(2),
    lambda y: y.detach().add_(1), lambda y: y.__setitem__(0, 1)])
def test_saved_values_that_were_changed_are_noticed(change):
    x = td.ones(3, 2, requires_grad=True)
    y = x * 2
    z = y * y
    change(y)
    with refused("gradient of mul was modified in place: input"):
        z.sum().backward()


def test_assigning_a_view_to_itself_makes_no_node():
    x = td.ones(3, 2, requires_grad=True)
    y = x * 1
    v = y[0]
    before = y._version
    y[0] = v
    assert y._version == before
    y[0] = v.detach()
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [1, 1]]


def test_views_and_changes_leave_nothing_behind():
    gc.collect()
    nodes, stats = td.live_node_count(), td.memory_stats()
    for f in FUNCTIONS:
        x, w = leaf(3, 2), leaf(3, 2)
        f(x, w).sum().backward()
        f(x, w)
    del x, w
    gc.collect()
    assert td.live_node_count() == nodes
    assert td.memory_stats()["live_tensors"] <= stats["live_tensors"] \
        if "live_tensors" in stats else True


def test_as_strided():
    x = leaf(12)
    y = (x * 1).reshape(3, 4)
    v = y.as_strided((2, 2), (4, 1), 1)
    assert v.tolist() == [y[0, 1:3].tolist(), y[1, 1:3].tolist()]
    assert td.autograd.gradcheck(lambda x: (x * x).as_strided((3, 3), (2, 1), 1), (x,))
    with pytest.raises(RuntimeError, match="do not fit"):
        y.as_strided((4, 4), (4, 1), 1)


def test_a_long_chain_of_changes_is_linear():
    x = td.ones(4, requires_grad=True)
    y = x * 1
    for i in range(2000):
        y[i % 4] *= 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 1]


class Product(td.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


@pytest.mark.parametrize("use", [
    lambda new, old: new * old, lambda new, old: old * new,
    lambda new, old: td.cat([new, old]), Product.apply,
    lambda new, old: td.where(td.tensor([True]), new, old),
    lambda new, old: new.clone().mul_(old)])
@pytest.mark.parametrize("change", [
    lambda base: base.fill_(0.3), lambda base: base.copy_(td.ones(4)),
    lambda base: base.mul_(0)])
def test_every_operand_is_brought_up_to_date(use, change):
    x = td.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    base = x * 1
    old = base[:1]
    old.add_(1)
    change(base)
    use(base[:1], old).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("shape", [(3, 3, 0), (0, 3, 3), (3, 0, 3)])
def test_views_without_elements_are_written_and_differentiated(shape):
    x = td.zeros(*shape, requires_grad=True)
    y = x.transpose(0, 1).clone()
    y[..., 0:1] *= 2
    y.transpose(0, 1)[:, :1].exp_()
    y.sum().backward()
    assert x.grad.shape == shape
    assert td.zeros(4).as_strided((0, 2), (9, 9), 7).numel() == 0


@pytest.mark.parametrize("version", [0, 2])
def test_new_data_is_no_change_and_hides_none(version):
    def graph():
        w = td.full((2,), 3.0, requires_grad=True)
        with td.no_grad():
            for _ in range(version):
                w.mul_(1)
        return w, (w * w).sum()

    def change(w):
        with td.no_grad():
            w.mul_(2)

    def exchange(w):
        w.data = td.full((2,), 10.0)
    w, y = graph()
    exchange(w)
    assert w._version == version
    y.backward()
    assert w.grad.tolist() == [20, 20]                  # as in PyTorch: the new values, at the old version
    for acts in ((change, exchange), (exchange, change)):
        w, y = graph()
        for act in acts:
            act(w)
        with pytest.raises(RuntimeError, match="was modified in place"):
            y.backward()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "bool"])
def test_a_form_in_place_stores_what_the_plain_one_returns(dtype):
    kind, tried = getattr(td, dtype), 0
    make = {"bool": lambda *s: td.rand(*s) > 0.5, "int64": lambda *s: td.randint(1, 9, s)}.get(
        dtype, lambda *s: (td.rand(*s) * 0.8 + 0.1).to(kind))
    for name in sorted(n for n in dir(td._C) if n.endswith("_") and not n.startswith("_") and hasattr(td._C, n[:-1])):
        update, plain = getattr(td._C, name), getattr(td._C, name[:-1])
        for view in (lambda x: x, lambda x: x.t(), lambda x: x[1:, ::2], lambda x: x[2]):
            for others in (lambda x: [], lambda x: [x], lambda x: [x.flip(0)], lambda x: [view(make(60, 40))], lambda x: [2],
                           lambda x: [x, x], lambda x: [x, 0.25]):
                base = make(60, 40)
                x = view(base)
                before, version = base.clone(), x._version
                try:
                    want = plain(x, *others(x))
                    update(base.new_ones(1), *others(base.new_ones(1)))
                except (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError):
                    continue
                if not isinstance(want, td.Tensor) or want.shape != x.shape or name in ("bernoulli_", "detach_"):
                    continue
                try:
                    same = update(x, *others(x))
                except RuntimeError as error:
                    assert "stored" in str(error) or "elementwise" in str(error), name
                    assert (base == before).all() or base.isnan().any()
                    continue
                assert same is x and x._version == version + 1, name
                want = want.to(kind)
                assert ((x == want) | ((x != x) & (want != want))).all(), (name, dtype)
                tried += 1
    assert tried > 100
    one = td.ones(1, 3).expand(2, 3)
    with pytest.raises(RuntimeError, match="expanded"):
        one.relu_()


def test_overlapping_rows_are_read_before_they_are_written():
    x = td.arange(40.0)
    x[1:].clamp_(min=5)
    want = td.addcmul(x[1:], x[:-1], x[1:])
    x[1:].addcmul_(x[:-1], x[1:])
    assert (x[1:] == want).all() and x[0] == 0
    z = td.arange(20000.0) / 20000 + 1
    u = z.unfold(0, 3, 1)
    want = z.clone()
    want.unfold(0, 3, 1).copy_(u.pow(2.5))
    u.pow_(2.5)
    assert (z == want).all()
    w = td.arange(36.0).reshape(6, 6)
    want = td.lerp(w, w.t(), 0.25)
    assert (w.lerp_(w.t(), 0.25) == want).all()
