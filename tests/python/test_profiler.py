# needs: seeing
# SPDX-License-Identifier: MIT
"""Profiles: what is recorded, whose time it is, who holds memory at the peak."""
import json
import os
import subprocess
import sys
import threading

import pytest

import treadle as td
from treadle import nn
from treadle.profiler import ProfilerActivity, profile, record_function

if os.environ.get("TREADLE_PROFILE") == "1":
    pytest.skip("another profile is running", allow_module_level=True)

F = nn.functional


def by_name(p):
    return {e.key: e for e in p.key_averages()}


def rows(*events):
    """What the library makes of nested events of these (name, ...inner): [(name, total, self, again)]"""
    def run(name, *inner):
        with record_function(name):
            for e in inner:
                run(*e)
    with profile() as p:
        for e in events:
            run(*e)
    return p.events()


def test_every_operator_is_an_event():
    x = td.rand(3, 5)
    with profile() as p:
        (x + x).exp()
        x.exp()
    got = by_name(p)
    assert {k: e.count for k, e in got.items()} == {"add": 1, "exp": 2}
    assert [e.name for e in p.events()] == ["add", "exp", "exp"]
    assert all(0 < e.self_cpu_time_total <= e.cpu_time_total for e in p.events())


def test_total_time_is_self_time_and_that_of_the_inner_events():
    events = rows(("a", ("b", ("c",), ("d",)), ("e",)), ("f",))
    inner = {}
    for e in events:
        if e.outer >= 0:
            inner.setdefault(e.outer, []).append(e)
    assert [e.name for e in events] == list("abcdef")
    assert [e.outer for e in events] == [-1, 0, 1, 1, 0, -1]
    for k, e in enumerate(events):
        parts = sum(i.cpu_time_total for i in inner.get(k, []))
        assert e.self_cpu_time_total == pytest.approx(e.cpu_time_total - parts, abs=1e-3), e.name
        assert e.self_cpu_time_total >= 0 and e.cpu_time_total > 0, e.name
    outermost = [e.cpu_time_total for e in events if e.outer < 0]
    assert sum(e.self_cpu_time_total for e in events) == pytest.approx(sum(outermost), abs=1e-2), \
        "self times do not add up to the time of the outermost events"


def test_events_that_recur_count_once_in_the_total():
    events = rows(("a", ("b", ("a", ("a",)))), ("a",))
    assert [e.again for e in events] == [False, False, True, True, False], "which events are in one of their name"
    a = by_name_of(events)["a"]
    assert a.count == 4
    assert a.cpu_time_total == pytest.approx(events[0].cpu_time_total + events[4].cpu_time_total)


def by_name_of(events):
    p = profile()
    p._all = list(events)
    return by_name(p)


def test_an_event_inside_another_of_its_length_is_not_again():
    assert [e.again for e in rows(("ab", ("ac",), ("abc",)))] == [False] * 3


def test_a_name_of_another_kind_is_another_event():
    with profile() as p:
        with record_function("exp"):
            td.rand(2).exp()
    assert [e.again for e in p.events()] == [False] * 3


def test_memory_is_that_of_the_event_and_of_the_inner_ones():
    x = td.rand(1000)
    with profile(profile_memory=True) as p:
        with record_function("outer"):
            a = x + 1
            with record_function("inner"):
                b = x * 2
                del a
    got = by_name(p)
    assert (got["add"].self_cpu_memory_usage, got["mul"].self_cpu_memory_usage) == (4000, 4000)
    assert (got["inner"].self_cpu_memory_usage, got["inner"].cpu_memory_usage) == (-4000, 0)
    assert (got["outer"].self_cpu_memory_usage, got["outer"].cpu_memory_usage) == (0, 4000)
    del b


def test_forward_and_backward_are_apart():
    x = td.rand(3, 4, requires_grad=True)
    with profile() as p:
        (x * x).sum().backward()
    got = by_name(p)
    assert got["mul"].count == 1 and got["MulBackward0"].count == 1 and got["SumBackward0"].count == 1
    assert any(k.endswith(" (backward)") for k in got)
    assert {e.kind for e in p.events() if e.name.endswith("Backward0")} == {2}


def test_the_names_are_those_of_torch():
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity as TA, profile as torch_profile
    x, y = td.rand(4, 3), torch.rand(4, 3)
    with profile(activities=[ProfilerActivity.CPU]) as p, record_function("mine"):
        for _ in range(3):
            x.exp().sum()
    with torch_profile(activities=[TA.CPU]) as q:
        with torch.profiler.record_function("mine"):
            for _ in range(3):
                y.exp().sum()
    theirs = {e.key.replace("aten::", "") for e in q.key_averages()}
    for name, calls in ("exp", 3), ("sum", 3), ("mine", 1):      # PyTorch 1.13 sometimes counts more than were made
        assert name in theirs and by_name(p)[name].count == calls
    assert "Self CPU" in p.key_averages().table(sort_by="self_cpu_time_total", row_limit=1)
    assert hasattr(p.events()[0], "self_cpu_time_total") and hasattr(q.events()[0], "self_cpu_time_total")


def test_tables_are_sorted_and_cut():
    x = td.rand(200, 200)
    with profile() as p:
        for _ in range(3):
            x.neg()
        x.exp()
    table = p.key_averages().table(sort_by="count").splitlines()
    assert table[1].split()[0] == "neg" and table[1].split()[-1] == "3"
    assert len(p.key_averages().table(row_limit=1).splitlines()) == 2
    assert len(p.key_averages().table(row_limit=-1).splitlines()) == 3
    with pytest.raises(ValueError, match="sort_by must be one of"):
        p.key_averages().table(sort_by="weight")


def test_the_peak_names_the_line_that_holds_it():
    x = td.rand(1000)
    with profile(profile_memory=True, with_stack=True) as p:
        a = x + 1                               # held at the peak
        (x * 2).exp()                           # a moment later two more
    most, held = p.memory_peak()
    assert most == 12000 == sum(n for n, _, _ in held)
    assert {name for _, name, _ in held} == {"add", "mul", "exp"}
    line = next(line for _, name, line in held if name == "add")
    assert __file__ in line and "in test_the_peak" in line
    with pytest.raises(RuntimeError, match="profile_memory"):
        q = profile()
        with q:
            pass
        q.memory_peak()
    del a


def test_the_peak_does_not_count_what_was_there_before():
    old = td.rand(100000)
    with profile(profile_memory=True) as p:
        del old
        x = td.rand(10)
    assert p.memory_peak()[0] == 40
    del x


def test_a_profile_keeps_no_tensor(no_leaks=None):
    before = td.memory_stats()["bytes"]
    with profile(profile_memory=True, with_stack=True) as p:
        td.rand(1000).exp()
    assert td.memory_stats()["bytes"] == before
    assert p.events()


def test_the_trace_is_json_of_complete_events(tmp_path):
    x = td.rand(10, requires_grad=True)
    with profile(profile_memory=True) as p:
        x.exp().sum().backward()
    p.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [e for e in trace if e["ph"] == "X"]
    assert [e["name"] for e in spans] == [e.name for e in p.events()]
    assert {e["cat"] for e in spans} >= {"forward", "rule", "backward"}
    assert all(e["dur"] >= 0 and e["pid"] == os.getpid() and isinstance(e["tid"], int) for e in spans)
    counts = [e["args"]["bytes"] for e in trace if e["ph"] == "C"]
    assert max(counts) == p.memory_peak()[0]


def test_on_trace_ready_gets_the_profile():
    seen = []
    with profile(on_trace_ready=seen.append) as p:
        td.ones(2)
    assert seen == [p] and seen[0].events()


def test_arguments_work_or_raise():
    for bad in [dict(record_shapes=True), dict(activities=[ProfilerActivity.CUDA])]:
        with pytest.raises(NotImplementedError):
            profile(**bad)
    with pytest.raises(TypeError):
        profile(schedule=None)
    with pytest.raises(NotImplementedError):
        with record_function("a", "b"):
            pass
    with pytest.raises(TypeError):
        with record_function(3):
            pass
    with pytest.raises(RuntimeError, match="has not been stopped"):
        profile().events()
    with pytest.raises(RuntimeError, match="none is running"):
        profile().stop()


def test_profiles_do_not_nest():
    with profile() as p:
        with pytest.raises(RuntimeError, match="another profile is running"):
            profile().start()
        td.ones(2).exp()
    assert by_name(p)["exp"].count == 1


def test_exceptions_close_their_events():
    x = td.rand(3)
    with profile() as p:
        with pytest.raises(RuntimeError):
            with record_function("mine"):
                x + td.rand(4)
        x.exp()
    got = by_name(p)
    assert got["mine"].count == got["add"].count == got["exp"].count == 1
    assert next(e for e in p.events() if e.name == "exp").outer == -1


def test_an_event_that_is_open_at_the_end_is_left_out():
    p = profile()
    with record_function("before"):
        p.start()
        with record_function("inside"):
            td.ones(3).exp()
            p.stop()
    assert [e.name for e in p.events()] == ["ones", "exp"]
    with profile() as p:
        td.ones(3).exp()
    assert [e.outer for e in p.events()] == [-1, -1]


def test_threads_nest_by_themselves():
    x, go = td.rand(50, 50), threading.Barrier(4)

    def work():
        go.wait()
        for _ in range(50):
            with record_function("mine"):
                x.exp()
    threads = [threading.Thread(target=work) for _ in range(4)]
    with profile() as p:
        [t.start() for t in threads]
        [t.join() for t in threads]
    events = p._all
    assert by_name(p)["exp"].count == by_name(p)["mine"].count == 200
    for e in events:
        if e.name == "exp":
            assert events[e.outer].name == "mine" and events[e.outer].thread == e.thread


def test_a_child_does_not_record():
    with profile() as p:
        td.ones(2)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                td.ones(2).exp()
                with profile() as q:
                    td.ones(3)
                code = 0 if len(q.events()) == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        td.ones(2)
    assert by_name(p)["ones"].count == 2


def test_a_compiled_program_is_one_event():
    def square_sum(x):
        return (x * x).sum()
    f, x = td.jit(square_sum), td.rand(4)
    for _ in range(2):
        f(x)
    with profile() as p:
        f(x)
    assert by_name(p)["square_sum"].count == 1


def test_record_function_decorates():
    @record_function("mine")
    def f(n):
        return f(n - 1) if n else 0
    with profile() as p:
        f(2)
    assert by_name(p)["mine"].count == 3
    assert sum(e.again for e in p.events()) == 2


class Images(nn.Module):
    """Results of relu that are pooled, and then wanted for their signs only."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.last = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x):
        for layer in self.one, self.two:
            x = F.max_pool2d(F.relu(layer(x)), 2)
        return self.last(x.flatten(1))


class Rows(nn.Module):
    """Norms, whose results are made again; each layer's program is longer than a short memory."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(96) for _ in range(4)])
        self.up, self.down = (nn.ModuleList([nn.Linear(n, m) for _ in range(4)]) for n, m in ((96, 130), (130, 96)))
        self.last = nn.Linear(96, 10)

    def forward(self, x):
        for norm, up, down in zip(self.norms, self.up, self.down):
            x = x + down(F.gelu(up(norm(x))))
        return self.last(x)


def peak_of(call):
    for _ in range(2):
        with td.profiler.profile(profile_memory=True) as p:
            call()
    return p.memory_peak()[0]


@pytest.mark.parametrize("make,shape,most", [(Images, (16, 1, 28, 28), 0.9), (Rows, (256, 96), 1.02)])
def test_a_compiled_step_holds_no_more_than_an_eager_one(make, shape, most, monkeypatch, tmp_path):
    monkeypatch.setenv("TREADLE_CACHE", str(tmp_path))
    peaks, losses, weights = [], [], []
    td.manual_seed(3)
    x, y = td.randn(*shape), td.randint(0, 10, shape[:1]).long()
    for backend in None, "interpreter", "c":
        td.manual_seed(4)
        net = make()
        opt = td.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            return loss.detach()
        call = td.jit(step, backend=backend) if backend else step
        losses.append([call(x, y).item() for _ in range(4)])
        peaks.append(peak_of(lambda: call(x, y)))
        weights.append([*net.parameters()])
    assert losses[0][0] == losses[1][0] == losses[2][0]
    assert losses[0] == pytest.approx(losses[2], rel=1e-5) and losses[1] == pytest.approx(losses[2], rel=1e-5)
    for p, q, r in zip(*weights):
        assert (p - r).abs().amax().item() < 1e-5 and (q - r).abs().amax().item() < 1e-5
    assert peaks[2] <= most * peaks[0], peaks


def test_a_program_without_weights_gives_back_what_it_has_read(monkeypatch, tmp_path):
    monkeypatch.setenv("TREADLE_CACHE", str(tmp_path))
    def chain(x):
        y = x
        for _ in range(8):
            y = y @ x
        return y
    x, compiled = td.rand(128, 128) / 128, td.jit(chain, backend="c")
    for _ in range(2):
        assert compiled(x).equal(chain(x))
    assert peak_of(lambda: compiled(x)) < 2.1 * 4 * 128 ** 2    # a product and its operand


def run(code, **env):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, timeout=60)


def test_the_environment_prints_a_table_at_exit():
    code = "import treadle as td; x = td.rand(4, requires_grad=True); (x * x).sum().backward()"
    done = run(code, TREADLE_PROFILE="1")
    assert done.returncode == 0 and "MulBackward0" in done.stderr, done.stderr
    head, *table = [line for line in done.stderr.splitlines() if line]
    assert head.split() == ["Name", "Self", "us", "%", "Total", "us", "Calls"]
    assert abs(sum(float(line.split()[-3]) for line in table) - 100) < 0.1
    assert "Name" not in run(code, TREADLE_PROFILE="0").stderr
    assert "TREADLE_PROFILE" in run("import treadle as td; td.ones(2); td.ones(2)", TREADLE_PROFILE="x").stderr
    code = """import treadle as td
td.ones(1).exp()
with td.profiler.profile() as p:
    td.ones(1).sin()
print(*(e.name for e in p.events()))"""
    done = run(code, TREADLE_PROFILE="1")           # makes room for the program's own
    assert done.returncode == 0 and "sin" in done.stdout and "exp" not in done.stdout, done.stderr
    assert done.stderr.count("Self us") == 1 and "exp" in done.stderr and "sin" not in done.stderr
