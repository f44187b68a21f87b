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


def turned():
    x = td.arange(65536.0).reshape(256, 256)
    return [(x + x.t()).sum(1)[:3].tolist(), x.sub_(x.t()).sum().item()]


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


def computed_again():
    x, s, b = leaf(128, 128), leaf(128), leaf(128)
    w = (td.arange(128 * 64).reshape(128, 64) % 5 / 4).requires_grad_()
    y = nn.functional.layer_norm(x, (128,), s, b).relu() @ w
    y.sum().backward()
    return [w.grad.sum().item(), s.grad.sum().item(), x.grad.abs().sum().item()]


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


def at_once():
    """What takes several steps in one: norms, changes in place, windows, products of turned batches."""
    F = nn.functional
    x, w, b = leaf(2, 9, 20), leaf(20), leaf(20)
    y = F.layer_norm(x, (20,), w, b)
    y = F.max_pool2d(y.unsqueeze(0), 3, 2, 1).sum() + F.smooth_l1_loss(y, y.detach() + 1, beta=0.5)
    y = y + (F.group_norm(x, 3, leaf(9), leaf(9)) * x).sum()
    y.backward()
    with td.no_grad():
        z = F.layer_norm(x, (20,), w, b)
        z.relu_().clamp_(max=1).lerp_(x, 0.25).addcmul_(x, x, value=3)
        t = F.linear(x.transpose(0, 1), leaf(4, 20))
        c = x[:, :, :1].expand(2, 9, 20).contiguous() + w.unsqueeze(0)
    return [v.tolist() for v in (x.grad, w.grad, b.grad, z, t, c)]


WORKLOADS = [at_once, forward, backward, create_graph, turned, in_place, in_place_on_views, hooks, custom_function,
             saved_tensor_hooks, computed_again, optimiser_steps, loading_a_state, indexing, printing,
             loading_data,
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
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_a_compiled_step_without_memory_leaves_no_half(kind, backend):
    w, b = leaf(3, 2).detach().requires_grad_(), leaf(2).detach().requires_grad_()
    optimiser = getattr(td.optim, kind)([w, b], 0.1)

    def step(x):
        optimiser.zero_grad()
        loss = ((x @ w).tanh() + b).exp().sum(1).amax()
        loss.backward()
        optimiser.step()

    def state():
        return [x.tolist() for s in (w, b) for x in (s, *optimiser.state.get(s, {}).values()) if isinstance(x, td.Tensor)]
    f, x = td.jit(step, backend=backend), td.ones(4, 3)
    for _ in range(3):
        f(x)
    for n in range(1000):
        if w.grad is None:
            f(x)
        before, gradients = state(), [w.grad.tolist(), b.grad.tolist()]
        if attempt(lambda: f(x) is None, n):
            break
        assert state() == before, f"after allocation {n} failed"
        assert w.grad is None and b.grad is None or [w.grad.tolist(), b.grad.tolist()] == gradients
    assert 20 < n < 999 and state() != before


def embedding():
    return nn.Sequential(nn.Embedding(7, 4), nn.LayerNorm(4), nn.Linear(4, 3)), td.tensor([0, 3, 6, 2])


def normalised():
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(16, 3)), td.randn(4, 2, 4, 4)


def perceptron():
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3))
    net[0].weight.data = td.randn(3, 5).t()
    return net, td.randn(2, 2, 3)


BEHIND = {
    "nothing": lambda net, x, y, loss, old, opt: None, "twice": lambda net, x, y, loss, old, opt: (loss * 2, loss.detach() * 2),
    "views": lambda net, x, y, loss, old, opt: (y.detach().reshape(-1), y.detach()[1:], loss.detach().view(1), x),
    "forward": lambda net, x, y, loss, old, opt: net(x), "gather": lambda net, x, y, loss, old, opt: [*net.parameters()][0].detach()[td.tensor([1, 0])],
    "old": lambda net, x, y, loss, old, opt: [(o + w.detach()).sum() for o, w in zip(old, net.parameters())],
    "again": lambda net, x, y, loss, old, opt: (opt.zero_grad(), net(x).exp().mean().backward(), opt.step())[0],
    "mean": lambda net, x, y, loss, old, opt: [m.mul_(0.9).add_(w.detach(), alpha=0.1) for m, w in zip(net.mean, net.parameters())][:0]}


@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("make", [embedding, normalised, perceptron])
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_a_compiled_step_without_memory_writes_all_or_nothing(kind, make, behind, backend):
    td.manual_seed(3)
    net, x = make()
    ws = [*net.parameters()]
    optimiser = getattr(td.optim, kind)(ws, 0.01)
    net.mean = [w.detach().clone() for w in ws]

    def step(x):
        old, y = [w.detach() * 3 for w in ws], net(x)
        loss = y.pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(ws, 0.5)
        optimiser.step()
        result = BEHIND[behind](net, x, y, loss, old, optimiser)
        optimiser.zero_grad()
        return result

    def state():
        kept = [s for w in ws for s in optimiser.state.get(w, {}).values() if isinstance(s, td.Tensor)]
        return [t.tolist() for t in (*ws, *net.buffers(), *kept, *net.mean)]
    f = td.jit(step, backend=backend)
    for _ in range(3):
        f(x)
    now = state()
    f(x)
    change = [p != q for p, q in zip(now, state())]
    assert all(change[:len(ws)])
    for n in range(3000):
        before = state()
        done = attempt(lambda: f(x) is f, n)
        changed = [p != q for p, q in zip(before, state())]
        assert changed in ([False] * len(change), change), f"after allocation {n} failed"
        if done is not None:
            break
    assert 20 < n < 2999 and changed == change


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
