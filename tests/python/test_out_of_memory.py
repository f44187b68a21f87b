# needs: porting
"""Every allocation of a program fails in turn, and the program goes on.

A workload runs with its first allocation made to fail, then with its second,
and so on until none is left to fail.  Each failure is a MemoryError; after each
the same workload gives the right numbers, and when it is gone nothing is left.
The file needs no process of its own, so that it can be run under a sanitizer.
"""
import copy
import gc
import pickle
import warnings

import pytest

import treadle
import treadle as td
from treadle import nn
import treadle.utils.checkpoint
from treadle.utils.data import DataLoader, Dataset, TensorDataset

COUNTED = "live_tensors", "live_nodes", "live_objects", "bytes"


def counts():
    gc.collect()
    now = td.memory_stats()
    return [now[what] for what in COUNTED]


def leaf(*shape):
    n = td.Size(shape).numel()
    return (td.arange(1.0, n + 1) / n).reshape(shape).requires_grad_()


def forward():
    x, w = leaf(3, 2).detach(), leaf(4, 2).detach()
    y = td.tanh(x @ w.t() + 1).softmax(1)
    z = td.cat([y, y[:1]], 0).sum(0)
    return [z.tolist(), y.max(1).values.tolist(), (3 / y).mean().item()]


def backward():
    x, w = leaf(3, 2), leaf(4, 2)
    (x @ w.t()).sigmoid().prod(0).sum().backward()
    (x * x).sum().backward()
    return [x.grad.tolist(), w.grad.tolist()]


def create_graph():
    x = leaf(3)
    g, = td.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
    h, = td.autograd.grad((g * g).sum(), x)
    return [g.tolist(), h.tolist()]


def in_place():
    w = leaf(3, 2)
    x = w * 1
    x.mul_(2)
    x += w
    x[0] = 5
    x.exp_()
    x.masked_fill_(x > 100, 0.5)
    x.sum().backward()
    return [x.tolist(), w.grad.tolist()]


def in_place_on_views():
    w = leaf(3, 4)
    x = w * 1
    row, column = x[1], x[:, 2:]
    row.mul_(3)
    column.t()[0].sub_(row[0])
    column.zero_()
    x.view(-1)[3:7].add_(1)
    (x * x).sum().backward()
    with td.no_grad():
        w[0].add_(1)
    return [x.tolist(), row.tolist(), w.grad.tolist(), w.tolist()]


def hooks():
    seen = []
    x = leaf(3)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
    y.sum().backward()
    return [x.grad.tolist(), y.grad.tolist(), seen]


class Cube(td.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        y = x * x * x
        ctx.save_for_backward(x, y)
        return y, x + n

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * 3 * x * x + 0 * y + h, None


def custom_function():
    x = leaf(3)
    y, z = Cube.apply(x, 2)
    (y * z).sum().backward()
    return [x.grad.tolist(), y.tolist()]


def saved_tensor_hooks():
    x = leaf(3)
    with td.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t + 0):
        y = (x.exp() * x).sum()
    z = treadle.utils.checkpoint.checkpoint(lambda t: t.sin().cos(), x, use_reentrant=False)
    (y + z.sum()).backward()
    return [x.grad.tolist()]


def network():
    td.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def optimiser_steps():
    net = network()
    numbers = []
    for make in (lambda p: td.optim.SGD(p, 0.1, momentum=0.9), lambda p: td.optim.Adam(p, 0.1)):
        optimiser = make(net.parameters())
        for _ in range(2):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(net(leaf(5, 3).detach()), td.tensor([0, 1, 1, 0, 1]))
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
        numbers.append(loss.item())
    return numbers + [p.tolist() for p in net.parameters()]


def loading_a_state():
    net, other = network(), network()
    td.nn.init.ones_(other[0].weight)
    net.load_state_dict(other.state_dict())
    optimiser = td.optim.Adam(net.parameters())
    optimiser.load_state_dict(optimiser.state_dict())
    return [p.tolist() for p in net.parameters()]


def indexing():
    x = leaf(4, 3)
    y = x * 1
    y[[0, 2]] = td.tensor([1.0, 2.0, 3.0])
    y[y > 2.5] = 0
    y[1, ::2] += 1
    z = y[td.tensor([3, 1]), 1:] + y[..., None][1:3, :2, 0]
    z.sum().backward()
    return [y.tolist(), z.tolist(), x.grad.tolist()]


def printing():
    x = leaf(3, 4)
    return [repr(x), str(x[1] * 2), f"{x.sum():.3f}", repr(td.zeros(0)), repr(x.to(td.float16).detach())]


class Squares(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return td.tensor([float(i), i * i]), {"label": i}


def loading_data():
    plain = TensorDataset(leaf(5, 2).detach(), td.arange(5))
    numbers = []
    for batch, labels in DataLoader(plain, 2, shuffle=True, generator=td.Generator().manual_seed(1)):
        numbers.append((batch.tolist(), labels.tolist()))
    for batch, more in DataLoader(Squares(), 2):
        numbers.append((batch.tolist(), more["label"].tolist()))
    return numbers


def layers():
    td.manual_seed(4)
    conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    lstm, attend = nn.LSTM(2, 3, batch_first=True), nn.MultiheadAttention(4, 2, batch_first=True)
    x = leaf(2, 2, 5, 5)
    y = nn.functional.max_pool2d(norm(conv(x)), 3)
    z, (h, _) = lstm(leaf(1, 3, 2))
    a, _ = attend(*[nn.functional.layer_norm(leaf(1, 3, 4), (4,))] * 3)
    (y.sum() + z.sum() + h.sum() + a.sum() + nn.Embedding(4, 2)(td.tensor([1, 3])).sum()).backward()
    return [x.grad.sum().item(), norm.running_mean.tolist(), a.tolist(), lstm.weight_ih_l0.grad.tolist()]


def exchange():
    np = pytest.importorskip("numpy")
    array = np.arange(6.0).reshape(2, 3)
    shared = td.from_numpy(array)
    shared += 1
    x = td.tensor(array) + td.from_dlpack(shared)
    y = pickle.loads(pickle.dumps({"x": x, "view": x[0]}))
    return [array.tolist(), (x * array).tolist(), (array - x).tolist(), y["view"].tolist(), x.numpy().tolist(),
            copy.deepcopy(leaf(3)).tolist()]


def functional():
    def f(x):
        return (x.sin() * x).sum()
    x = leaf(3).detach()
    y, v = td.func.jvp(f, (x,), (td.ones(3),))
    back = td.func.vjp(f, x)[1](td.tensor(1.0))
    return [td.func.grad(f)(x).tolist(), td.func.hessian(f)(x).tolist(), y.item(), v.item(), back[0].tolist(),
            td.vmap(td.func.grad(f))(leaf(2, 3).detach()).tolist(),
            td.autograd.functional.jacobian(td.exp, x).tolist()]


def anomaly_mode():
    x = leaf(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with td.autograd.detect_anomaly():
            (x * 2).exp().sum().backward()
    return [x.grad.tolist()]


def gradients_set_and_data_replaced():
    x = leaf(3)
    x.grad = td.ones(3)
    (x * x).sum().backward()
    x.data = td.cat([x.data, x.data])
    x.grad = None
    (x * x).sum().backward(inputs=[x])
    return [x.grad.tolist()]


def chain(x, w):
    return ((x @ w).tanh() * 2 + x.sum(1, keepdim=True)).softmax(1), x.exp() / 3


def compiled(backend):
    """The first calls: eager, traced and compiled, run."""
    f = td.jit(chain, backend=backend)
    x, w = leaf(3, 2).detach(), leaf(2, 4).detach()
    return [[y.tolist() for y in f(x, w)] for _ in range(3)]


def training_step(backend):
    w = leaf(3, 2).detach().requires_grad_()
    optimiser = td.optim.SGD([w], 0.1, momentum=0.9)

    def step(x):
        optimiser.zero_grad()
        loss = (w * x).exp().sum()
        loss.backward()
        optimiser.step()
        return loss
    f = td.jit(step, backend=backend)
    return [f(td.ones(3, 2)).item() for _ in range(3)] + w.tolist()


WORKLOADS = [forward, backward, create_graph, in_place, in_place_on_views, hooks, custom_function,
             saved_tensor_hooks, optimiser_steps, loading_a_state, indexing, printing, loading_data,
             layers, exchange, functional, anomaly_mode, gradients_set_and_data_replaced]


def attempt(work, n):
    """What it returned with allocation n failing, or None."""
    td._C._memory_fail_after(n)
    try:
        return work()
    except (MemoryError, BufferError) as error:     # the latter says that a buffer cannot be had
        assert "allocate" in str(error) or "no memory" in str(error)
        return None
    finally:
        td._C._memory_fail_after(-1)


def fail_each(work, at_least=5, again=3):
    """Fails each allocation of work; after some of them does it again."""
    expected = work()
    before, made = counts(), td.memory_stats()["allocations"]
    assert work() == expected
    made = td.memory_stats()["allocations"] - made
    failed = 0
    for n in range(made):
        got = attempt(work, n)
        failed += got is None
        assert got is None or got == expected, f"although allocation {n} failed"
        assert counts() == before, f"after allocation {n} failed"
        if n % again == 0:
            assert work() == expected, f"after allocation {n} failed"
    assert attempt(work, made) == expected and failed >= at_least


@pytest.fixture(autouse=True)
def alone():
    """One thread, so that allocations are counted; and little to collect."""
    threads = td.get_num_threads()
    td.set_num_threads(1)
    gc.collect()
    gc.freeze()
    yield
    td.set_num_threads(threads)


@pytest.mark.parametrize("work", WORKLOADS, ids=lambda work: work.__name__)
def test_goes_on_after_each_allocation_failed(work):
    fail_each(work)


@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("work", [compiled, training_step])
def test_compiling_goes_on_after_each_allocation_failed(work, backend):
    fail_each(lambda: work(backend), again=10)


@pytest.mark.parametrize("backend", ["interpreter", "c"])
def test_compiled_program_goes_on_after_each_allocation_failed(backend):
    f, x, w = td.jit(chain, backend=backend), leaf(3, 2).detach(), leaf(2, 4).detach()
    fail_each(lambda: [y.tolist() for y in f(x, w) and f(x, w)], again=1)


def test_a_buffer_is_given_back_when_no_tensor_comes_of_it():
    for n in range(10):
        data = bytearray(8)
        td._C._memory_fail_after(n)
        try:
            x = td.from_numpy(data)
            break
        except MemoryError:
            data.append(1)          # not while somebody looks at it
        finally:
            td._C._memory_fail_after(-1)
    assert n > 1 and x.tolist() == [0] * 8
    with pytest.raises(BufferError):
        data.append(1)
