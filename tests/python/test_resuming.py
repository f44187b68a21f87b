# needs: workers checkpoints transforms porting
# SPDX-License-Identifier: MIT
"""Runs that are left, or killed, in the middle of an epoch whose batches workers make."""
import itertools
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import treadle as td
from treadle.transforms import Compose, Normalize, RandomCrop, RandomHorizontalFlip
from treadle.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

STAGE = Path(td.__file__).parents[1]
AUGMENT = Compose([RandomCrop(3, padding=1), RandomHorizontalFlip(), Normalize(0.5, 2.0)])


class Pictures(Dataset):
    """Each differs from all others, and is cut and mirrored by chance; now and then a coin of Python's own."""

    def __len__(self):
        return 23

    def __getitem__(self, i):
        return AUGMENT(td.arange(48.0).reshape(3, 4, 4) + 100 * i), i, random.random() if get_worker_info() else 0.0


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for i in itertools.islice(range(19), first, None, step):
            yield AUGMENT(td.arange(48.0).reshape(3, 4, 4) + 100 * i), i, td.rand(()).item()


def made(kind, workers, shuffle, persistent=False, **options):
    return DataLoader(kind(), 4, shuffle=shuffle or None, num_workers=workers, persistent_workers=persistent, **options)


def bits(batch):
    return [bytes(memoryview(part.contiguous())) for part in batch]


def rest(batches):
    return [bits(batch) for batch in batches]


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    import gc
    import multiprocessing
    gc.collect()
    assert multiprocessing.active_children() == []


MATRIX = [(kind, workers, shuffle, persistent) for kind in (Pictures, Stream) for workers in (0, 1, 3)
          for shuffle in ((False, True) if kind is Pictures else (False,)) for persistent in ((False, True) if workers else (False,))]


@pytest.mark.parametrize("kind, workers, shuffle, persistent", MATRIX,
                         ids=lambda v: v.__name__ if isinstance(v, type) else str(v))
def test_an_epoch_goes_on_to_the_same_bits(tmp_path, kind, workers, shuffle, persistent):
    """Left after 1, 4 and 5 batches of the second epoch, and gone on with by a loader that was never at work."""
    td.manual_seed(11)
    loader, saved, wanted = made(kind, workers, shuffle, persistent), {}, []
    rest(loader)
    for n, batch in enumerate(loader):
        wanted.append(bits(batch))
        td.rand(3)                                   # of a dropout, say
        if n + 1 in (1, 4, 5):
            saved[n + 1] = loader.state_dict(), td.get_rng_state()
    wanted += rest(loader)
    assert len(saved) == 3 and len(set(map(str, wanted))) == len(wanted)
    for taken, (place, numbers) in saved.items():
        td.manual_seed(99)
        random.seed(taken)
        td.save((place, numbers), tmp_path / "state")
        again = made(kind, workers, shuffle, persistent)
        if taken == 4:
            next(iter(again))                        # it was at work elsewhere before
        place, numbers = td.load(tmp_path / "state")
        again.load_state_dict(place)
        td.set_rng_state(numbers)
        assert again.state_dict() == place
        got = []
        for batch in again:
            got.append(bits(batch))
            td.rand(3)
        got += rest(again)
        assert got == wanted[taken:], f"{taken} batches before"
        del again
    del loader


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_number_of_workers_may_change_when_a_run_goes_on(shuffle):
    """The random numbers of a batch are its own, so one worker or three make the same."""
    td.manual_seed(5)
    loader = made(Pictures, 3, shuffle)
    batches = iter(loader)
    rest(itertools.islice(batches, 2))
    place, numbers = loader.state_dict(), td.get_rng_state()
    wanted = rest(batches) + rest(loader)
    again = made(Pictures, 1, shuffle, prefetch_factor=1)
    again.load_state_dict(place)
    td.set_rng_state(numbers)
    assert rest(again) + rest(again) == wanted


def test_a_state_counts_what_was_handed_out_and_not_what_was_made():
    loader = made(Pictures, 2, False, prefetch_factor=3)
    batches = iter(loader)
    next(batches)
    time.sleep(0.3)
    assert loader.state_dict()["batches"] == 1
    again = made(Pictures, 2, False)
    again.load_state_dict(loader.state_dict())
    assert next(iter(again))[1].tolist() == [4, 5, 6, 7]


class Fails(Pictures):
    def __getitem__(self, i):
        if i == 9:
            raise ValueError("a picture is spoilt")
        return super().__getitem__(i)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_batch_that_fails_is_passed_over_when_a_run_goes_on(workers):
    td.manual_seed(3)
    loader = made(Fails, workers, False)
    batches = iter(loader)
    rest(itertools.islice(batches, 2))
    with pytest.raises(ValueError, match="spoilt"):
        next(batches)
    place, numbers = loader.state_dict(), td.get_rng_state()
    wanted = rest(batches)
    again = made(Fails, workers, False)
    again.load_state_dict(place)
    td.set_rng_state(numbers)
    assert rest(again) == wanted and len(wanted) == 3


@pytest.mark.parametrize("kind", [Pictures, Stream])
def test_a_worker_that_is_killed_costs_no_batch(kind):
    """The state of the loader outlives the worker; a new loader finds the same bits."""
    td.manual_seed(8)
    loader = made(kind, 2, False, prefetch_factor=1)
    wanted = rest(loader)
    td.manual_seed(8)
    loader = made(kind, 2, False, prefetch_factor=1)
    batches = iter(loader)
    got = rest(itertools.islice(batches, 2))
    for process in batches.items.processes:
        os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by signal: SIGKILL"):
        for batch in batches:
            got.append(bits(batch))
    place = loader.state_dict()
    again = made(kind, 2, False)
    place["batches"] = len(got)                      # the one that raised was counted
    again.load_state_dict(place)
    assert got + rest(again) == wanted


RUN = textwrap.dedent("""
    import os, signal, sys, time
    sys.path.insert(0, sys.argv[1])
    import test_resuming as here, treadle as td
    kind, workers, shuffle, path, kill_at, out = getattr(here, sys.argv[2]), *map(int, sys.argv[3:5]), sys.argv[5], int(sys.argv[6]), sys.argv[7]
    td.manual_seed(3)
    net = td.nn.Sequential(td.nn.Flatten(), td.nn.Linear(27, 8), td.nn.Dropout(0.3), td.nn.Linear(8, 1))
    optim = td.optim.Adam(net.parameters(), 0.01)
    loader = here.made(kind, workers, shuffle, bool(workers))
    parts, epoch, steps = {"net": net, "optim": optim, "loader": loader}, 0, 0
    if os.path.exists(path):
        state = td.load(path)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        td.set_rng_state(state["random"])
        epoch, steps = state["epoch"], state["steps"]
    for epoch in range(epoch, 3):
        for x, i, _ in loader:
            optim.zero_grad()
            td.nn.functional.mse_loss(net(x / 500).squeeze(1), i.float() / 23).backward()
            optim.step()
            steps += 1
            if steps % 4 == 0:
                td.save({"epoch": epoch, "steps": steps, "random": td.get_rng_state(),
                         **{name: part.state_dict() for name, part in parts.items()}}, path)
            if steps == kill_at:
                if workers:
                    print(*[p.pid for p in loader._ahead.processes], flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
    td.save({"net": net.state_dict(), "optim": optim.state_dict(), "random": td.get_rng_state(), "steps": steps}, out)
""")


def flat(value):
    if isinstance(value, td.Tensor):
        return bytes(memoryview(value.detach().contiguous()))
    if isinstance(value, dict):
        return {k: flat(v) for k, v in value.items()}
    return [flat(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("kind, workers, shuffle", [("Pictures", 0, 1), ("Pictures", 3, 1), ("Pictures", 1, 0), ("Stream", 3, 0)])
def test_a_killed_run_with_workers_goes_on_to_the_same_bits(tmp_path, kind, workers, shuffle):
    def run(path, kill_at, out):
        return subprocess.run([sys.executable, "-c", RUN, os.path.dirname(__file__), kind, str(workers), str(shuffle), tmp_path / path,
                               str(kill_at), tmp_path / out], timeout=300, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(STAGE)})
    straight = run("a.pt", 0, "straight")
    assert straight.returncode == 0, straight.stderr
    killed = run("b.pt", 10, "resumed")              # the second epoch; two steps after the last checkpoint
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for pid in killed.stdout.split():                # the workers notice that nobody is there
        for _ in range(200):
            try:
                os.kill(int(pid), 0)
            except ProcessLookupError:
                break
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                break                                # its new parent has yet to look
            time.sleep(0.05)
        else:
            raise AssertionError(f"worker {pid} lives")
    resumed = run("b.pt", 0, "resumed")
    assert resumed.returncode == 0, resumed.stderr
    one, two = td.load(tmp_path / "straight"), td.load(tmp_path / "resumed")
    assert one["steps"] == two["steps"] > 12 and flat(one) == flat(two)
