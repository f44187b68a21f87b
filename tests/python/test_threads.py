# needs: jit
# SPDX-License-Identifier: MIT
"""Threads that share tensors: one sentence of the header each, raced.

Writers that race may leave any numbers behind.  They may not break memory, lock each other out, raise
or leave anything alive.  Each scenario runs in a process of its own, so that a crash is one failure.
"""
import faulthandler
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
import treadle as td

LONG = "TREADLE_LONG" in os.environ         # make test-long goes on for three times as long
SLOW = 10 if os.environ.get("TREADLE_SANITIZED") else 1
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def together(*loops, rounds=20000 if LONG else 6000):
    """Each loop in a thread of its own, until the first has gone through its rounds or one has raised."""
    over, failures = threading.Event(), []

    def run(loop, first):
        try:
            for k in range(rounds // SLOW):
                if over.is_set():
                    break
                loop()
        except BaseException as error:
            failures.append(error)
        if first or failures:
            over.set()
    threads = [threading.Thread(target=run, args=(loop, k == 0)) for k, loop in enumerate(loops)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def leaf(n=7):
    return td.ones(n, requires_grad=True)


def right():
    """What a thread computes alone, afterwards."""
    p = leaf(3)
    (p * p * 3).sum().backward()
    assert p.grad.tolist() == [6.0, 6.0, 6.0] and p.requires_grad and p.grad_fn is None


# --- the gradient of a leaf ---------------------------------------------------------------

@scenario
def passes_add_up():
    p, passes = leaf(), []

    def backward():
        (p * 2).sum().backward()
        passes.append(2.0)
    together(backward, backward, backward)
    assert p.grad.tolist() == [sum(passes)] * 7


@scenario
def gradient_is_dropped_during_passes():
    p = leaf()
    together(lambda: (p * 2).sum().backward(), lambda: setattr(p, "grad", None))


@scenario
def gradient_is_replaced_during_passes():
    p = leaf()
    together(lambda: (p * 2).sum().backward(), lambda: setattr(p, "grad", td.ones(7)))


@scenario
def gradient_is_zeroed_during_passes():
    p = leaf()
    p.grad = td.zeros(7)
    together(lambda: (p * 2).sum().backward(), lambda: p.grad.zero_())


@scenario
def gradient_is_read_during_passes():
    p, seen = leaf(), []

    def read():
        if p.grad is not None:
            seen.append(p.grad.clone().tolist()[0])
            p.grad.mark = len(seen)
    together(lambda: (p * 2).sum().backward(), read)
    assert all(x % 2 == 0 for x in seen)


@scenario
def gradient_of_a_large_leaf_is_read_and_dropped():
    p = leaf(20000)

    def read():
        g = p.grad
        if g is not None:
            (g.clone() * 2).sum().item()
        p.grad = None
    together(lambda: (p * 2).sum().backward(), read, read, rounds=600)


@scenario
def optimiser_steps_during_passes():
    p = leaf()
    for keep in (True, False):
        sgd = td.optim.SGD([p], lr=0.01, momentum=0.9)

        def step():
            sgd.zero_grad(set_to_none=not keep)
            sgd.step()
        together(lambda: (p + 2).sum().backward(), step, rounds=1000)


# --- hooks, watchers, histories --------------------------------------------------------

@scenario
def hooks_come_and_go_during_passes():
    p = leaf()
    together(lambda: (p * 2).sum().backward(), lambda: p.register_hook(lambda g: g * 1).remove())


@scenario
def post_hooks_come_and_go_during_passes():
    p, calls = leaf(), []
    together(lambda: (p * 2).sum().backward(),
             lambda: p.register_post_accumulate_grad_hook(calls.append).remove())
    assert all(x is p for x in calls)


@scenario
def hooks_raise_during_passes():
    p = leaf()

    def wrong(g):
        raise KeyError("mine")

    def add():
        handle = p.register_hook(wrong)
        try:
            (p * 2).sum().backward()
        except KeyError:
            pass
        handle.remove()

    def backward():
        try:
            (p * 2).sum().backward()
        except KeyError:
            pass
        assert p.requires_grad
    together(backward, add, rounds=1000)


@scenario
def hooks_of_a_result_come_and_go_during_passes():
    p = leaf()
    y = p * 2
    s = (y * 3).sum()
    together(lambda: s.backward(retain_graph=True), lambda: y.register_hook(lambda g: g * 1).remove())


@scenario
def tensor_with_retained_gradient_is_dropped_during_its_pass():
    p, place = leaf(), []

    def long(x):
        for _ in range(100):
            x = x * 1
        return x

    def backward():
        y = long(p)
        y.retain_grad()
        z = long(y)
        s = z.sum()
        place.append(y)
        del y, z
        s.backward()

    def drop():
        if place:
            place.pop()
    together(backward, drop, rounds=2000)


@scenario
def gradient_is_retained_and_read_during_passes():
    p = leaf()
    y = p * 2
    s = (y * 3).sum()

    def read():
        y.retain_grad()
        if y.grad is not None:
            y.grad.clone()
        y.grad = None
    together(lambda: s.backward(retain_graph=True), read)


@scenario
def recording_is_switched_during_passes():
    p, q = leaf(), leaf()
    together(lambda: (p * q * 2).sum().backward(), lambda: q.requires_grad_(not q.requires_grad), rounds=1000)


@scenario
def weak_references_are_followed_while_a_pass_frees_their_tensors():
    """The pass drops the last handle of y without the interpreter's lock; y goes on with all it had."""
    w, c, refs, taken, seen = leaf(), leaf(), queue.Queue(), threading.Semaphore(0), []

    def slope(total, of, retain_graph=False):
        try:
            return td.autograd.grad(total, of, retain_graph=retain_graph)[0].tolist()
        except RuntimeError as error:
            assert "another backward pass" in str(error)        # both look at w * 1

    def free():
        y = w * 1
        z = (y * c).sum()
        refs.put(weakref.ref(y))
        del y
        taken.acquire(timeout=10)
        slope(z, c)

    def follow():
        y = refs.get(timeout=10)()
        taken.release()
        time.sleep(len(seen) % 5 * 1e-5)
        total = y.sum()
        time.sleep(1e-4)
        seen.append(slope(total, w, retain_graph=True))
    together(free, follow, rounds=300)
    assert seen.count([1.0] * 7) > 0 and all(g in (None, [1.0] * 7) for g in seen)


# --- readers ----------------------------------------------------------------------------

@scenario
def readers_of_a_view_whose_base_has_changed():
    """A gradient of 6 for each reader, whoever comes first."""
    p = leaf(20000)
    for _ in range(200 // SLOW):
        base = p * 1
        view = base[:]
        base.mul_(6)
        start, made = threading.Barrier(3), []

        def read():
            start.wait()
            made.append((view * 1).sum())
        together(read, read, read, rounds=SLOW)
        assert [td.autograd.grad(s, p, retain_graph=True)[0].amax().item() for s in made] == [6.0] * len(made)


# --- locks ------------------------------------------------------------------------------

@scenario
def forks_while_gradients_are_dropped():
    p, forks, keep = leaf(), [], {}

    def backward():
        (p * 2).sum().backward()
        keep[threading.get_ident()] = p.grad.detach()   # so that the next pass replaces the gradient, whose object Python has seen

    def fork():
        forks.append(None)
        child = os.fork()
        if child == 0 and len(forks) % 20:
            os._exit(0)                     # most only find out whether a fork gets through
        if child == 0:
            signal.alarm(30)                # or a child that waits for a lock would wait for ever
            q = leaf()
            (q * 2).sum().backward()
            os._exit(q.grad.tolist() != [2.0] * 7)
        assert os.waitpid(child, 0)[1] == 0
    together(fork, *[backward] * 2, rounds=400 * SLOW)


@scenario
def functional_gradients_while_gradients_are_dropped():
    p, x, bad, keep = leaf(), td.ones(5), [], [None]
    double = td.func.grad(lambda x: (x * x).sum())

    def backward():
        (p * 2).sum().backward()
        keep[0] = p.grad.detach()

    def derive():
        if double(x).tolist() != [2.0] * 5:
            bad.append(1)
    together(derive, backward, backward, rounds=600 * SLOW)
    assert not bad


@scenario
def collector_runs_during_passes():
    p = leaf()

    def cycle():
        q = leaf()
        q.register_hook(lambda g, q=q: None)
        q.me = q
        gc.collect()
    together(cycle, lambda: (p * 2).sum().backward(), rounds=100 * SLOW)


# --- in a process of its own --------------------------------------------------------

def run_alone(name):
    faulthandler.enable()
    faulthandler.dump_traceback_later(60, exit=True)
    sys.setswitchinterval(1e-5)
    right()
    gc.collect()
    before = td.memory_stats()
    SCENARIOS[name]()
    right()
    gc.collect()
    after = td.memory_stats()
    left = {k: after[k] - before[k] for k in ("live_tensors", "live_nodes", "live_objects", "bytes")}
    assert not any(left.values()), f"left behind: {left}"


@pytest.mark.parametrize("name", SCENARIOS)
def test(name):
    if name.startswith("forks") and SLOW > 1:
        pytest.skip("the sanitizers' own runtimes lose their locks in a fork")
    done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(Path(td.__file__).parents[1])})
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-6000:]}"


# --- cycles -----------------------------------------------------------------------------

def test_a_cycle_through_a_gradient_is_collected(no_leaks):
    x = leaf()
    g = td.ones(7)
    x.grad = g
    g.back = x
    gone = weakref.ref(x)
    del x, g
    gc.collect()
    assert gone() is None


def test_a_chain_of_gradients_that_refers_to_its_leaf_is_collected(no_leaks):
    x, g, h = leaf(), leaf(), td.ones(7)
    x.grad, g.grad, h.back = g, h, x
    g.register_hook(lambda grad, x=x: None)
    gone = weakref.ref(x)
    del x, g, h
    gc.collect()
    assert gone() is None


def test_cycles_are_collected_while_another_thread_is_in_training(no_leaks):
    p, over, left = leaf(), threading.Event(), []

    def train():
        while not over.is_set():
            (p * 2).sum().backward()
    thread = threading.Thread(target=train)
    thread.start()
    for _ in range(50):
        x = leaf()
        x.me = x
        gone = weakref.ref(x)
        del x
        time.sleep(0)
        gc.collect()
        left.append(gone() is not None)
    over.set()
    thread.join()
    assert not any(left)


def test_a_gradient_in_a_global_variable_is_dropped_at_the_end():
    """The last collection of all meets no wrapper whose handle was freed."""
    program = """
import functools, os, treadle as td
Mark = type("Mark", (), {"__del__": functools.partial(os.write, 1, b"dropped")})
p = td.ones(3, requires_grad=True)
(p * p).sum().backward()
p.grad.mark = Mark()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(Path(td.__file__).parents[1])})
    assert (done.returncode, done.stdout) == (0, "dropped"), done.stderr[-6000:]


def test_a_leaf_is_not_copied_into_its_own_base(no_leaks):
    """The base would own a history that owns the leaf that owns the base."""
    base = td.zeros(4, 3)
    x = base[1].requires_grad_()
    for change in (lambda: base[0].copy_(x), lambda: base.add_(x * 2), lambda: base[2].mul_(x)):
        with pytest.raises(RuntimeError, match="of which a leaf is a view .* clone that leaf"):
            change()
    base[0].copy_(td.ones(3))
    x.data = td.ones(3)             # looks elsewhere now
    base[1].mul_(x)
    base.detach_()
    x.requires_grad_(False)
    y = td.ones(3, requires_grad=True)
    base[0].copy_(y)
    base.sum().backward()
    assert y.grad.tolist() == [1, 1, 1]


if __name__ == "__main__":
    run_alone(sys.argv[1])
