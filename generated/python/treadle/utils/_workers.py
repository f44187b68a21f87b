# SPDX-License-Identifier: MIT
# Tangled from the chapter "workers": edit that, not this file.
# needs: layers
"""Processes that make the batches of a loader ahead."""
import collections
import contextlib
import itertools
import multiprocessing
import os
import pickle
import queue
import random
import signal
import socket
import sys
import threading
import traceback
import weakref
from multiprocessing.reduction import ForkingPickler
from .. import _C

WorkerInfo = collections.namedtuple(
    "WorkerInfo", "id num_workers seed dataset")
_info = None


def get_worker_info():
    """In a worker its id, num_workers, seed and dataset; else None."""
    return _info


def _read_requests(pipe, line):
    try:
        while True:
            line.put(pipe.recv())
    except (EOFError, OSError):
        line.put(None)


def _seed(seed):
    _C.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2 ** 32)


def _states():
    numpy = sys.modules.get("numpy")
    return repr((_C._random_state(None), random.getstate(),
                 numpy and numpy.random.get_state()))


class _Pickler(ForkingPickler):
    def reducer_override(self, x):      # not all a view looks at
        if isinstance(x, _C.Tensor) and \
                x.untyped_storage().nbytes() > x.nbytes:
            x = x.clone()
            return x.__reduce_ex__(4)
        return NotImplemented



def _work(loader, pipe, others, info):
    """The life of a worker, until the pipe ends."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()
    _C.set_num_threads(1)
    _info, line = info, queue.SimpleQueue()
    begin, own = loader.worker_init_fn, False
    threading.Thread(target=_read_requests, args=(pipe, line),
                     daemon=True).start()
    for seed, request in iter(line.get, None):
        if not own:
            _seed(seed)
        try:
            if begin is not None:
                before = _states()
                begin(info.id)
                begin, own = None, _states() != before
            answer = _Pickler.dumps(("made", loader._answer(request)))
        except StopIteration:
            answer = _Pickler.dumps(("over", None))
        except Exception as error:
            answer = _told(error, info.id)
        try:
            pipe.send_bytes(answer)
        except OSError:
            return


def _told(error, worker):
    words = (f"Caught {type(error).__name__} in DataLoader worker "
             f"process {worker}.\nOriginal {traceback.format_exc()}")
    try:
        return _Pickler.dumps((type(error), words))
    except Exception:
        return _Pickler.dumps((RuntimeError, words))


class _Text(str):
    __repr__ = str.__str__      # for KeyError, which shows a repr


def open_answer(answer):
    """What a worker made, or the exception."""
    kind, what = answer
    if kind == "made":
        return what
    try:
        error = kind(_Text(what))
    except Exception:           # it takes other arguments
        error = RuntimeError(what)
    raise error


def _stop(owner, pipes, processes):
    if os.getpid() == owner:
        for pipe in pipes:
            with contextlib.suppress(OSError), socket.socket(
                    fileno=os.dup(pipe.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)
            pipe.close()
        for process in processes:
            process.join(5)
            process.kill()
            process.join()


class Ahead:
    """The batches of a loader, made by its workers, in order."""
    # workers: methods of an iterator over workers

    def __init__(self, loader, seed):
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.timeout, self.ahead = loader.timeout, loader.prefetch_factor
        self.persistent = loader.persistent_workers
        self.pipes, self.processes = [], []
        self.asked = collections.deque()
        self.end = weakref.finalize(self, _stop, os.getpid(), self.pipes,
                                    self.processes)
        for i in range(loader.num_workers):
            mine, theirs = context.Pipe()
            self.pipes.append(mine)
            self.processes.append(context.Process(
                target=_work, daemon=True,
                args=(loader, theirs, self.pipes, WorkerInfo(
                    i, loader.num_workers, seed + i, loader.dataset))))
            self.processes[i].start()
            theirs.close()

    def begin(self, requests, seed):
        while self.asked:               # of an epoch that was abandoned
            self._receive()
        self.requests = zip(itertools.count(seed), requests)
        for i in range(self.ahead * len(self.pipes)):
            self._ask(i % len(self.pipes))

    def _ask(self, who):
        for request in itertools.islice(self.requests, 1):
            self.asked.append(who)
            with contextlib.suppress(OSError):      # _receive says more
                self.pipes[who].send(request)

    def _receive(self):
        who = self.asked[0]
        if self.timeout and not self.pipes[who].poll(self.timeout):
            raise RuntimeError("DataLoader timed out after "
                               f"{self.timeout} seconds")
        try:
            answer = pickle.loads(self.pipes[who].recv_bytes())
        except (EOFError, OSError):
            self.asked.clear()
            process = self.processes[who]
            self.end()
            code = process.exitcode
            how = f"exited with code {code}" if code >= 0 else \
                f"is killed by signal: {signal.Signals(-code).name}"
            raise RuntimeError(f"DataLoader worker (pid {process.pid}) "
                               f"{how}") from None
        self.asked.popleft()
        return who, *answer

    def __iter__(self):
        return self

    def __next__(self):
        while self.asked:
            who, kind, answer = self._receive()
            if kind != "over":          # its part of a stream
                self._ask(who)
                return kind, answer
        if not self.persistent:
            self.end()
        raise StopIteration


def begin(loader, requests, place):
    """An iterator over the answers from that place of an epoch on."""
    seed = random.Random(f"{place['epoch']} {place['number']}"
                         ).getrandbits(60)
    passed = place["batches"]
    if loader._stream:
        requests = itertools.repeat(place["number"])
    else:
        seed += passed
    ahead = loader._ahead
    if ahead is None or not ahead.end.alive:
        loader._ahead = None
        ahead = Ahead(loader, seed)
    if loader.persistent_workers:
        loader._ahead = ahead
    ahead.begin(requests, seed)
    if loader._stream:
        collections.deque(itertools.islice(ahead, passed), 0)
    return ahead
