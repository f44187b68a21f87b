# needs: jit
# SPDX-License-Identifier: MIT
"""Threads that do anything to shared tensors, at random, for TREADLE_STRESS seconds.

Numbers are not asked for where writers race; memory, locks and counts are.  By hand, for instance
    python tests/python/test_stress.py --seconds 60 --threads 4 --seed 7 --without fork,jit_c
    python tests/python/test_stress.py --only backward,grad_none
"""
import _thread
import argparse
import ctypes
import faulthandler
import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from pathlib import Path

import treadle as td

SANITIZED = os.environ.get("TREADLE_SANITIZED")
OPERATIONS = {}
HARMLESS = ("modified in place", "another backward pass", "was freed", "already been", "does not require")


class Boom(Exception):
    """What a hook of ours raises."""


class Interrupted(BaseException):
    """What arrives from outside, like Ctrl-C."""


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


class World:
    """What the threads share."""

    def __init__(self):
        self.leaves = [td.ones(n, requires_grad=True) for n in (3, 7, 20000)]
        self.switch = td.ones(5, requires_grad=True)
        self.optimisers = [td.optim.SGD(self.leaves, lr=1e-4, momentum=0.5), td.optim.Adam(self.leaves, lr=1e-5)]
        self.hooks, self.retained, self.views, self.kept, self.asleep = [], [], [], None, None
        self.compiled, self.serial = {}, itertools.count()
        self.linear, self.forks = td.nn.Linear(4, 2), 0


def some(world, rng):
    return rng.choice(world.leaves)


def value(p):
    return ((p * 2).exp() * 1e-9).sum()


# --- gradients of leaves -----------------------------------------------------------------

@operation
def backward(world, rng):
    value(some(world, rng)).backward()


@operation
def backward_all(world, rng):
    sum(value(p) for p in world.leaves).backward()


@operation
def grad_function(world, rng):
    td.autograd.grad(value(some(world, rng)), world.leaves, allow_unused=True)


@operation
def grad_none(world, rng):
    some(world, rng).grad = None


@operation
def grad_set(world, rng):
    p = some(world, rng)
    p.grad = td.zeros_like(p)


@operation
def grad_read(world, rng):
    g = some(world, rng).grad
    if g is not None:
        g.mark = 1
        (g.clone() * 2).sum().item()


@operation
def grad_detach(world, rng):
    p = some(world, rng)
    g = p.grad
    if g is not None:
        world.kept = g.detach()


@operation
def grad_zero(world, rng):
    g = some(world, rng).grad
    if g is not None:
        g.zero_()


@operation
def step(world, rng):
    rng.choice(world.optimisers).step()


@operation
def zero_grad(world, rng):
    rng.choice(world.optimisers).zero_grad(set_to_none=rng.random() < 0.5)


@operation
def requires_grad(world, rng):
    world.switch.requires_grad_(rng.random() < 0.5)
    (world.switch * some(world, rng)[0]).sum().backward()


@operation
def layer(world, rng):
    world.linear(td.ones(3, 4)).sum().backward()
    if rng.random() < 0.3:
        world.linear.zero_grad()


# --- hooks and watchers -----------------------------------------------------------------

@operation
def hook(world, rng):
    p = some(world, rng)
    add = p.register_hook if rng.random() < 0.5 else p.register_post_accumulate_grad_hook
    world.hooks.append(add(lambda x: None))
    while len(world.hooks) > 4:
        take(world.hooks).remove()


@operation
def hook_that_raises(world, rng):
    def wrong(x):
        raise Boom
    p = some(world, rng)
    add = p.register_hook if rng.random() < 0.5 else p.register_post_accumulate_grad_hook
    handle = add(wrong)
    try:
        value(p).backward()
    finally:
        handle.remove()


@operation
def retain(world, rng):
    y = some(world, rng) * 2
    y.retain_grad()
    s = (y.exp() * 1e-9).sum()
    world.retained.append(y)
    del y
    s.backward()


@operation
def retained_drop(world, rng):
    y = take(world.retained)
    if y is not None and rng.random() < 0.5:
        y.grad


def take(items):
    try:
        return items.pop(0)
    except IndexError:
        return None


# --- readers ----------------------------------------------------------------------------

@operation
def view_made(world, rng):
    """A leaf, and a view of what was changed after the view was made: slope 3."""
    p = td.ones(20000, requires_grad=True)
    base = p * 1
    view = base[:10000] if rng.random() < 0.5 else base.reshape(100, 200).t()
    base.mul_(3)
    world.views = [*world.views[-3:], (p, view, threading.Lock())]


@operation
def view_read(world, rng):
    for p, view, alone in world.views:
        total = (view * 1).sum()
        assert view.requires_grad and not view.is_leaf
        with alone:             # two passes over one graph are refused
            g, = td.autograd.grad(total, p, retain_graph=True)
        assert g[0].item() == 3, f"a view's slope is {g[0].item()}, expected 3"


@operation
def weak_made(world, rng):
    """The graph holds the last share of a tensor whose wrapper sleeps, and lets go of it in the pass."""
    y = some(world, rng) * 2
    total = (y * y).sum() * 1e-9
    world.asleep = weakref.ref(y)
    del y
    total.backward()


@operation
def weak_read(world, rng):
    for _ in range(20):
        y = world.asleep and world.asleep()
        if y is not None:
            assert y.dim() == 1 and (y.detach() * 1).numel() == y.numel()


# --- functions of functions -----------------------------------------------------------------

@operation
def func(world, rng):
    x = td.ones(5)
    f = rng.choice([lambda x: (x * x).sum(), lambda x: (x ** 2).sum() * some(world, rng).detach()[0] ** 0])
    assert td.func.grad(f)(x).tolist() == [2.0] * 5
    out, pull = td.func.vjp(lambda x: x * 3, x)
    assert pull(x * 2).tolist() == [6.0] * 5
    assert td.func.jvp(lambda x: x * 3, (x,), (x,))[1].tolist() == [3.0] * 5


def compiled(world, backend, which):
    """One function for all threads, replaced now and then by a new one."""
    key = backend, which
    if key not in world.compiled:
        world.compiled[key] = td.jit(lambda x: (x * which + 1).exp().log().sum(), backend=backend)
    return world.compiled[key]


def run_compiled(world, rng, backend, kinds):
    which = rng.randrange(kinds)
    f = compiled(world, backend, which)
    for _ in range(3):
        assert abs(f(td.ones(4)).item() - 4 * (which + 1)) < 1e-3
    if rng.random() < 0.2:
        world.compiled.pop((backend, which), None)


@operation
def jit(world, rng):
    run_compiled(world, rng, "interpreter", 5)


@operation
def jit_c(world, rng):
    if rng.random() < 0.1:
        run_compiled(world, rng, "c", 3)


@operation
def jit_step(world, rng):
    p = td.ones(4, requires_grad=True)
    sgd = td.optim.SGD([p], lr=0.5)

    def descend(x):
        sgd.zero_grad()
        loss = (p * x).sum()
        loss.backward()
        sgd.step()
        return loss
    f = td.jit(descend, backend="interpreter")
    for _ in range(3):
        f(td.ones(4))
    assert p.tolist() == [-0.5] * 4


# --- the process ----------------------------------------------------------------------

@operation
def collect(world, rng):
    q = td.ones(3, requires_grad=True)
    q.me = q
    q.register_hook(lambda g, q=q: None)
    (q * 2).sum().backward()
    del q
    gc.collect()


@operation
def fork(world, rng):
    if rng.random() > 0.05:
        return
    child = os.fork()
    if child == 0:
        in_child()
    status = status_of(child)
    assert status in (0, None), f"the child of a fork ended with {status}"
    world.forks += 1


def in_child():
    """A pass, a step, a look at the result, by whoever called fork; a sanitizer's runtime allows no thread more."""
    signal.alarm(120)                   # should the parent be killed
    wrong = True
    try:
        if SANITIZED:
            td.set_num_threads(1)
        for n in (3, 20000):
            q = td.ones(n, requires_grad=True)
            sgd = td.optim.SGD([q], lr=0.5)
            (q * 2).sum().backward()
            sgd.step()
            assert q.grad[n // 2].item() == 2 and q[n // 2].item() == 0
        assert td.func.grad(lambda x: (x * x).sum())(td.ones(5)).tolist() == [2.0] * 5
        wrong = False
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(wrong)


def status_of(child):
    """How it ended, or None if it waits for what the sanitizer lost."""
    until, looks = time.monotonic() + 60, 0
    while time.monotonic() < until and looks < 100:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
        if time.monotonic() > until - 58:
            looks = looks + 1 if is_in_the_sanitizer(child) else 0
    if looks < 100:
        os.kill(child, signal.SIGUSR1)              # where is it?
        time.sleep(1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None if looks == 100 else "no status: it does not finish"


def is_in_the_sanitizer(child):
    """Whether a process of one thread is in the sanitizer's runtime.

    That locks its allocator, and in a fork may lose the lock to a thread that does not come along: the child sleeps or
    spins for ever. It is stopped for the look: of a process that runs the system does not say where.
    """
    if not SANITIZED:
        return False
    os.kill(child, signal.SIGSTOP)
    if os.waitid(os.P_PID, child, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code != os.CLD_STOPPED:
        return False                                # it has ended
    where = Path(f"/proc/{child}/syscall").read_text().split()[-1]
    threads = len(os.listdir(f"/proc/{child}/task"))
    os.kill(child, signal.SIGCONT)
    for line in Path("/proc/self/maps").read_text().splitlines() if threads == 1 else ():
        low, high = (int(n, 16) for n in line.split()[0].split("-"))
        if low <= int(where, 16) < high:
            return f"lib{SANITIZED}.so" in line
    return False


@operation
def interrupt(world, rng):
    """Exceptions from outside into a thread of passes."""
    if rng.random() > 0.1:
        return
    p = some(world, rng)
    victim = Victim(p)
    ident = _thread.start_new_thread(victim.run, ())        # not Thread, whose own locks an exception may leave closed
    for k in range(5):
        wait_for(lambda: len(victim.ready) > k)
        time.sleep(rng.random() * 0.01)
        assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Interrupted)) == 1
    wait_for(lambda: len(victim.ready) > 5)
    victim.over = True
    wait_for(lambda: victim.ended)
    assert p.requires_grad


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "an exception was lost on its way"
        time.sleep(0.001)


class Victim:
    """A thread that is ready for one more exception each time it says so."""

    def __init__(self, p):
        self.p, self.ready, self.over, self.ended = p, [], False, False

    def run(self):
        while not self.over:
            try:
                self.ready.append(None)
                self.passes()
            except Interrupted:
                pass
        self.p, self.ended = None, True
        stay()

    def passes(self):
        while not self.over:
            try:
                value(self.p).backward()
            except (Boom, RuntimeError):
                pass


# --- the program ----------------------------------------------------------------------

def stay():
    """Under the thread sanitizer, which takes what glibc frees of an ended thread for a race, no thread ends."""
    if SANITIZED == "tsan":
        threading.Event().wait()


class Worker(threading.Thread):
    """A thread that works."""

    def __init__(self, *args):
        super().__init__(daemon=SANITIZED == "tsan")
        self.args, self.done = args, threading.Event()

    def run(self):
        work(*self.args)
        self.args = None
        self.done.set()
        stay()


def work(world, names, seed, until, failures):
    rng = random.Random(seed)
    td.manual_seed(seed)
    while time.monotonic() < until and not failures:
        name = rng.choice(names)
        try:
            OPERATIONS[name](world, rng)
        except Boom:
            pass
        except Exception as error:
            if not any(words in str(error) for words in HARMLESS):
                failures.append(f"in {name}: {traceback.format_exc()}")


def counts():
    gc.collect()
    stats = td.memory_stats()
    return {k: stats[k] for k in ("live_tensors", "live_nodes", "live_objects", "bytes")}


def alone():
    """What one thread computes is right."""
    p = td.ones(3, requires_grad=True)
    calls = []
    p.register_hook(calls.append)
    ((p * 2) ** 2).sum().backward()
    assert p.grad.tolist() == [8.0] * 3 and len(calls) == 1 and td.is_grad_enabled()


def stress(seconds, threads, seed, names):
    alone()
    for name in ("jit", "jit_step", "func", "layer"):           # what is made only once
        OPERATIONS[name](World(), random.Random(0))
    before, failures, until = counts(), [], time.monotonic() + seconds
    world = World()
    pool = [Worker(world, names, seed * 100 + k, until, failures) for k in range(threads)]
    for t in pool:
        t.start()
    for t in pool:
        t.done.wait() if t.daemon else t.join()
    del world
    alone()
    after = counts()
    if before != after:
        failures.append(f"counts were {before}, are {after}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--without", default="")
    args = parser.parse_args()
    names = [n for n in args.only.split(",") if n] or [n for n in OPERATIONS if n not in args.without.split(",")]
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    faulthandler.dump_traceback_later(args.seconds + 60, exit=True)
    sys.setswitchinterval(1e-4)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TREADLE_CACHE"] = cache
        os.environ.pop("LD_PRELOAD", None)          # a sanitizer is for this process, not for cc
        failures = stress(args.seconds, args.threads, args.seed, names)
    for text in failures:
        print(text)
    sys.exit(bool(failures))


def test_threads_at_random():
    seconds, seed = float(os.environ.get("TREADLE_STRESS", 4)), os.environ.get("TREADLE_SEED", "1")
    for threads in (2, 4):
        done = subprocess.run([sys.executable, __file__, "--seconds", str(seconds / 2), "--threads", str(threads),
                               "--seed", seed], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(Path(td.__file__).parents[1])})
        assert done.returncode == 0, (f"TREADLE_SEED={seed}, {threads} threads: ended with {done.returncode}\n"
                                      f"{done.stdout[-4000:]}{done.stderr[-6000:]}")


if __name__ == "__main__":
    main()
