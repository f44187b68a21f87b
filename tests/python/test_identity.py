# needs: package
"""One handle, one wrapper; what keeps what alive."""
import gc
import sys
import weakref

import pytest
import treadle as td


class Tagged(td.Tensor):
    pass


def test_grad_is_always_the_same_object():
    p = td.ones(3, requires_grad=True)
    (p * p).sum().backward()
    assert p.grad is p.grad
    first = id(p.grad)
    gc.collect()
    assert id(p.grad) == first


def test_attributes_survive_while_only_c_holds_the_handle():
    p = td.ones(3, requires_grad=True)
    (p * p).sum().backward()
    p.grad.mark = {"a": 1}
    gc.collect()
    assert p.grad.mark == {"a": 1}


def test_a_leaf_keeps_its_wrapper_while_a_graph_holds_it(no_leaks):
    x = td.ones(3, requires_grad=True)
    x.mark = 7
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    y = (x * 2).sum()
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is not None and ref().mark == 7
    y.backward()
    assert seen == [[2.0, 2.0, 2.0]]
    del y
    gc.collect()
    assert ref() is None


def test_flipping_many_times():
    p = td.ones(2, requires_grad=True)
    p.sum().backward()
    for i in range(1000):
        g = p.grad
        g.count = getattr(g, "count", 0) + 1
        del g
    assert p.grad.count == 1000


def test_subclasses_flip_too(no_leaks):
    x = td.Tensor._make_subclass(Tagged, td.ones(2), True)
    x.mark = 1
    y = (x * 3).sum()
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert type(ref()) is Tagged and ref().mark == 1
    x = ref()
    assert x.grad is None
    y.backward()
    assert x.grad.tolist() == [3.0, 3.0] and x.grad is x.grad


def test_a_wrapper_found_by_a_weak_reference_survives_its_handle(no_leaks):
    x = td.tensor([1.0, 2.0], requires_grad=True)
    x.mark = 1
    y = (x * 3).sum()
    ref = weakref.ref(x)
    del x
    x = ref()               # nobody in C is told
    del y                   # and the handle dies
    assert x.tolist() == [1.0, 2.0] and x.mark == 1 and x.requires_grad
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and x.grad is x.grad
    x.grad = None


def rescued(graph):
    """The result y of graph(), after the last handle of C that knew it is gone."""
    y = graph()
    y.mark = 1
    z = (y * y).sum()
    ref = weakref.ref(y)
    del y
    y = ref()
    del z
    return y


def test_a_rescued_tensor_keeps_its_history(no_leaks):
    w = td.tensor([1.0, 2.0], requires_grad=True)
    y = rescued(lambda: w * 3)
    assert y.mark == 1 and y.grad_fn is not None and not y.is_leaf
    y.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]
    w.grad = None


def test_a_rescued_tensor_keeps_its_gradient_and_hooks(no_leaks):
    w, seen = td.tensor([1.0, 2.0], requires_grad=True), []

    def graph():
        y = w * 3
        y.retain_grad()
        y.register_hook(lambda g: seen.append(g.tolist()))
        return y
    y = rescued(graph)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and seen == [[1.0, 1.0]]

    def leaf():
        x = td.ones(2, requires_grad=True)
        x.register_hook(lambda g: seen.append("leaf"))
        x.grad = td.ones(2)
        return x
    x = rescued(leaf)
    x.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and seen[1:] == ["leaf"]
    w.grad = x.grad = y.grad = None


def test_a_rescued_view_still_knows_its_base(no_leaks):
    w = td.ones(4, requires_grad=True)
    base = w * 1
    view = rescued(lambda: base[:2])
    base.mul_(3)
    view.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0, 0.0, 0.0]
    w.grad = None


def test_weak_references_die_with_the_tensor(no_leaks):
    died = []
    x = td.ones(2)
    ref = weakref.ref(x, lambda r: died.append(1))
    del x
    assert ref() is None and died == [1]


def test_reference_counts_return_to_the_start(no_leaks):
    x = td.ones(4, requires_grad=True)
    before = sys.getrefcount(x), sys.getrefcount(td.Tensor)
    for _ in range(50):
        y = (x * 2 + 1).relu().sum()
        y.backward()
        x.grad.tolist()
        x[1:].reshape(3, 1), x.shape, x.dtype, x.grad
        for bad in (lambda: x + "a", lambda: x[9], lambda: td.add(x),
                    lambda: x.reshape(9)):
            try:
                bad()
            except Exception:
                pass
    x.grad = None
    del y
    gc.collect()
    after = sys.getrefcount(x), sys.getrefcount(td.Tensor)
    assert after[0] == before[0] and abs(after[1] - before[1]) <= 1


def test_no_reference_leaks_for_common_objects():
    def work():
        td.zeros(2, dtype=td.float32).sum(0, keepdim=False)
        td.add(td.ones(2), other=3)
        td.tensor([[1, 2], [3, 4]])[0, None, ...]
        try:
            td.add(td.ones(2), "x")
        except TypeError:
            pass
    for _ in range(10):
        work()
    gc.collect()
    objects = len(gc.get_objects())
    counts = [sys.getrefcount(o) for o in (td.float32, td.Size, td.Tensor,
                                           None)]
    for _ in range(100):
        work()
    gc.collect()
    assert len(gc.get_objects()) - objects < 20
    after = [sys.getrefcount(o) for o in (td.float32, td.Size, td.Tensor,
                                          None)]
    assert all(abs(a - b) < 20 for a, b in zip(after, counts)), (counts, after)


def test_a_cycle_through_an_attribute_is_collected(no_leaks):
    x = td.ones(100)
    x.me = [x]
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_a_cycle_through_a_hook_is_collected(no_leaks):
    x = td.ones(100, requires_grad=True)
    x.register_hook(lambda g: g * x)
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_the_collector_spares_hooks_a_graph_still_needs(no_leaks):
    def graph():
        x = td.ones(2, requires_grad=True)
        seen = []
        x.register_hook(lambda g: seen.append((g * x).tolist()))
        return (x * 3).sum(), seen
    y, seen = graph()
    for _ in range(3):
        gc.collect()
    y.backward()
    assert seen == [[3.0, 3.0]]


def test_a_cycle_through_a_function_is_collected(no_leaks):
    class Keep(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2
    x = td.ones(100, requires_grad=True)
    y = Keep.apply(x)
    y.note = y
    ref = weakref.ref(y)
    del x, y
    gc.collect()
    assert ref() is None


def test_replacing_data_keeps_the_object():
    p = td.nn.Parameter(td.ones(2))
    before = id(p)
    p.data = td.zeros(3, dtype=td.float64)
    assert id(p) == before and p.shape == (3,) and p.dtype is td.float64
    assert p.requires_grad and p.is_leaf
    with pytest.raises(TypeError):
        p.data = [1]


def test_data_shares_storage_without_history():
    p = td.ones(2, requires_grad=True)
    p.data[0] = 5
    assert p.tolist() == [5.0, 1.0] and not p.data.requires_grad


def test_the_collector_leaves_a_hook_in_use_alone():
    """The engine drops its reference with the graph; two were shown."""
    def run():
        w = td.ones(3, requires_grad=True)
        y = w * 2

        def hook(g, y=y):
            return None
        y.register_hook(hook)
        y.sum().backward()
        del y
        gc.collect()
        return hook
    hook = run()
    assert hook.__globals__ is globals() and hook(None) is None


def test_a_hook_that_mentions_its_tensor_dies_after_backward():
    gc.collect()
    before = td.memory_stats()["live_tensors"]
    for _ in range(5):
        w = td.ones(3, requires_grad=True)
        y = w * 2
        y.register_hook(lambda g, y=y: None)
        y.sum().backward()
    del w, y
    gc.collect()
    assert td.memory_stats()["live_tensors"] == before
