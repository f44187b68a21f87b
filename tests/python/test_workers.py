# needs: workers porting
"""Batches made ahead by processes: order, seeds, failures, endings."""
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
import treadle as td
from treadle.utils.data import (DataLoader, Dataset, IterableDataset,
                                TensorDataset, get_worker_info)


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i * i


def children():
    me = str(os.getpid())
    out = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", me], capture_output=True, text=True).stdout
    return [line for line in out.splitlines() if " ps" not in line and "R" not in line.split()[1]]


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    import gc
    gc.collect()
    import multiprocessing
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_order_does_not_depend_on_the_workers(n):
    data = TensorDataset(td.arange(23.0), td.arange(23))
    td.manual_seed(4)
    expected = [[b.tolist() for b in batch] for _ in range(2) for batch in DataLoader(data, 4, shuffle=True)]
    td.manual_seed(4)
    loader = DataLoader(data, 4, shuffle=True, num_workers=n)
    assert [[b.tolist() for b in batch] for _ in range(2) for batch in loader] == expected
    assert len(loader) == 6


class Draws(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return td.rand(1).item(), random.random(), i


def test_random_numbers_depend_on_the_batch_alone():
    seen = []
    for n in 1, 3:
        td.manual_seed(7)
        loader = DataLoader(Draws(), 2, num_workers=n)
        seen.append([[x.tolist() for x in b] for _ in range(2) for b in loader])
    assert seen[0] == seen[1]
    assert len({x for batch in seen[0] for x in batch[0]}) == 16     # no epoch repeats another
    td.manual_seed(8)
    assert [x.tolist() for x in next(iter(DataLoader(Draws(), 2, num_workers=1)))] != seen[0][0]


class Broken(Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 1:
            raise self.error
        return i


class Strange(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@pytest.mark.parametrize("error, kind", [(KeyError("key"), KeyError), (ValueError("bad"), ValueError),
                                         (Strange(1, 2), RuntimeError), (StopIteration(), RuntimeError)])
def test_an_exception_comes_with_its_traceback_and_the_next_batch_follows(error, kind):
    batches = iter(DataLoader(Broken(error), num_workers=2))
    assert next(batches).tolist() == [0]
    with pytest.raises(kind) as caught:
        next(batches)
    text = str(caught.value)
    assert "in DataLoader worker process 1.\nOriginal Traceback" in text and "raise self.error" in text
    assert [b.tolist() for b in batches] == [[2], [3]]


def test_an_exception_of_a_local_class():
    class Local(Exception):
        pass
    with pytest.raises(RuntimeError, match="Caught Local"):
        list(DataLoader(Broken(Local()), num_workers=1))


class Told(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        with open(self.path, "a") as file:
            file.write(f"{i}\n")
        return i


def test_batches_are_made_ahead_and_not_further(tmp_path):
    data = Told()
    data.path = tmp_path / "made"
    batches = iter(DataLoader(data, 2, num_workers=1, prefetch_factor=2))
    assert next(batches).tolist() == [0, 1]
    for _ in range(200):
        made = data.path.read_text().split()
        if len(made) >= 6:
            break
        time.sleep(0.05)
    time.sleep(0.2)
    assert data.path.read_text().split() == [str(i) for i in range(6)]
    assert len(list(batches)) == 5


class Slow(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        time.sleep(0.15)
        return i


def test_making_and_learning_overlap():
    began = time.monotonic()
    for _ in DataLoader(Slow(), num_workers=2):
        time.sleep(0.15)
    assert time.monotonic() - began < 0.85 * 16 * 0.15


def test_an_iterator_that_is_dropped_ends_its_workers():
    batches = iter(DataLoader(Squares(1000), num_workers=2))
    next(batches)
    pids = [p.pid for p in batches.items.processes]
    del batches
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_killed_worker_is_an_error():
    batches = iter(DataLoader(Slow(), num_workers=1))
    os.kill(batches.items.processes[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"worker \(pid \d+\) is killed by signal: SIGKILL"):
        next(batches)
    assert list(batches) == []


class Sleeper(Slow):
    def __getitem__(self, i):
        time.sleep(60)


def test_timeout():
    batches = iter(DataLoader(Sleeper(), num_workers=1, timeout=0.02))
    with pytest.raises(RuntimeError, match="timed out after 0.02 seconds"):
        next(batches)


def test_persistent_workers_stay():
    loader = DataLoader(Squares(6), 2, num_workers=2, persistent_workers=True)
    first = iter(loader)
    pids = [p.pid for p in first.items.processes]
    assert next(first).tolist() == [0, 1]                            # and abandoned
    for _ in range(2):
        again = iter(loader)
        assert [b.tolist() for b in again] == [[0, 1], [4, 9], [16, 25]]
        assert [p.pid for p in again.items.processes] == pids
    os.kill(pids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError):
        list(loader)
    assert [b.tolist() for b in loader] == [[0, 1], [4, 9], [16, 25]]
    del loader, first, again


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        share = (0, 1) if info is None else (info.id, info.num_workers)
        return itertools.islice(range(7), share[0], None, share[1])


@pytest.mark.parametrize("size", [2, None])
def test_each_worker_iterates_its_share_of_a_stream(size):
    assert get_worker_info() is None
    loader = DataLoader(Stream(), size, num_workers=2, persistent_workers=True)
    for _ in range(2):
        got = [b.tolist() if size else b for b in loader]
        assert got == ([[0, 2], [1, 3], [4, 6], [5]] if size else [0, 1, 2, 3, 4, 5, 6])
    del loader


def initialise(worker):
    if worker == 1:
        raise ValueError("not I")


def test_worker_init_fn():
    batches = iter(DataLoader(Squares(4), num_workers=2, worker_init_fn=initialise))
    assert next(batches).tolist() == [0]
    with pytest.raises(ValueError, match="not I"):
        next(batches)


def test_views_are_sent_without_what_they_do_not_show():
    big = td.arange(300000.0)
    items = list(DataLoader(TensorDataset(big), None, sampler=[5, 7], num_workers=1))
    assert [x.item() for x, in items] == [5.0, 7.0]
    assert items[0][0].untyped_storage().nbytes() == 4


class Endings(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return bytes(300000)                # more than a pipe holds


def test_workers_of_several_loaders_end_at_once():
    begun = time.monotonic()
    kept = [DataLoader(Endings(), num_workers=2, persistent_workers=True) for _ in range(2)]
    for loader in kept:
        assert len(list(loader)) == 6
    for _ in DataLoader(Endings(), num_workers=2):
        assert len(list(kept[1])) == 6
    for _ in zip(DataLoader(TensorDataset(td.ones(2)), num_workers=2), DataLoader(Endings(), num_workers=2)):
        pass
    some = 4 * (os.environ.get("TREADLE_SANITIZED") != "tsan")       # which forks no process that has threads
    threads = [threading.Thread(target=lambda: list(DataLoader(Endings(), num_workers=1))) for _ in range(some)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    del kept, loader
    assert time.monotonic() - begun < 4.5                            # one that is waited for takes five


class Uniform(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return td.rand(1).item()


def test_epochs_and_loaders_that_do_not_shuffle_draw_different_numbers():
    def seen(seed):
        td.manual_seed(seed)
        fresh = [x.item() for _ in range(3) for x in DataLoader(Uniform(), num_workers=2)]
        return fresh + [x.item() for x in DataLoader(Uniform(), num_workers=1)]
    first = seen(3)
    assert len(set(first)) == 16 and seen(3) == first and not set(seen(4)) & set(first)


class PythonDraws(Uniform):
    def __getitem__(self, i):
        return random.random()


def seed_python(worker):
    random.seed(worker)


def test_what_worker_init_fn_seeds_goes_on_from_there():
    mine = [random.Random(w) for w in (0, 1)]
    got = [x.item() for x in DataLoader(PythonDraws(), num_workers=2, worker_init_fn=seed_python)]
    assert got == pytest.approx([mine[i % 2].random() for i in range(4)])


class Cropped(Dataset):
    def __init__(self, own):
        self.crop = td.transforms.RandomCrop(2, generator=own)

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return self.crop(td.arange(10000).view(100, 100))


def test_a_generator_in_a_worker_depends_on_the_batch():
    seen = []
    for n in 1, 2:
        td.manual_seed(1)
        loader = DataLoader(Cropped(td.Generator().manual_seed(2)), 2, num_workers=n)
        seen.append([x.flatten().tolist() for _ in range(2) for x in loader])
    assert seen[0] == seen[1] and len(set(map(str, seen[0]))) == 6


def test_large_batches_and_long_requests():
    data = TensorDataset(td.arange(400000))
    total = sum(x.sum().item() for x, in DataLoader(data, 100000, num_workers=2, prefetch_factor=3))
    assert total == 399999 * 200000


PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)     # also where a shell had it ignored
from treadle.utils.data import DataLoader, Dataset
class Forever(Dataset):
    def __len__(self): return 100000
    def __getitem__(self, i):
        time.sleep(0.01)
        return i
batches = iter(DataLoader(Forever(), num_workers=2))
next(batches)
print(*[p.pid for p in batches.items.processes], flush=True)
for _ in batches: pass
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_program(how):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True,
                               env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(td.__file__))})
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert len(pids) == 2
    if how == signal.SIGINT:
        os.killpg(program.pid, how)                                  # as the key does
    else:
        program.kill()
    _, error = program.communicate(timeout=30)
    if how == signal.SIGINT:
        assert error.count("KeyboardInterrupt") == 1                 # the parent's, and none of a worker
    for pid in pids:
        for _ in range(100):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            if open(f"/proc/{pid}/stat").read().split(")")[1].split()[0] == "Z":
                break                                                # left to a parent that is no longer ours
            time.sleep(0.05)
        else:
            raise AssertionError(f"worker {pid} lives")


def test_spawned_workers():
    loader = DataLoader(TensorDataset(td.arange(5)), 2, num_workers=1, multiprocessing_context="spawn")
    assert [x.tolist() for x, in loader] == [[0, 1], [2, 3], [4]]


def test_spawned_workers_of_a_loader_with_a_generator():
    data = TensorDataset(td.arange(5))
    seen = []
    for n in 0, 1:
        loader = DataLoader(data, 5, shuffle=True, generator=td.Generator().manual_seed(3), num_workers=n,
                            multiprocessing_context="spawn" if n else None)
        seen.append([x.tolist() for _ in range(2) for x, in loader])
    assert seen[0] == seen[1]
