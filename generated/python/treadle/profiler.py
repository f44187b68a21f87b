# SPDX-License-Identifier: MIT
# Tangled from the chapter "seeing": edit that, not this file.
# needs: porting
"""Where the time and the memory of a program go.

>>> with td.profiler.profile(profile_memory=True) as p:
...     step()
>>> print(p.key_averages().table(sort_by="self_cpu_time_total"))
"""
import contextlib
import copy
import enum
import json
import os
import sys
from pathlib import Path
from . import _C
from .compat import find_on_demand

# seeing: activities, and events of one's own
class ProfilerActivity(enum.Enum):
    """What can be recorded."""
    CPU = 0
    CUDA = 1


@contextlib.contextmanager
def record_function(name, args=None):
    """An event of one's own, around a block or a function."""
    if args is not None:
        raise NotImplementedError("record_function: no args are kept")
    began = _C._event_begin(name)
    try:
        yield
    finally:
        if began:
            _C._event_end()
# seeing: class FunctionEvent
class FunctionEvent:
    """Calls of one operator: times in microseconds, memory in bytes."""
    count = 1

    def __init__(self, row):
        (name, place, self.kind, start, total, own,
         self.cpu_memory_usage, self.self_cpu_memory_usage, self.again,
         self.outer, self.thread, self.block) = row
        self.name = self.key = (f"{name} (backward)" if self.kind ==
                                BACKWARD else name)
        self.start, self.cpu_time_total = start / 1000, total / 1000
        self.self_cpu_time_total = own / 1000
        self.stack = [*map(str.strip,
                           reversed((place or "").splitlines()))]

    @property
    def cpu_time(self):
        """The mean of the calls."""
        return self.cpu_time_total / self.count

    @property
    def line(self):
        """The innermost line of the program, without the package."""
        return next((f for f in self.stack
                     if not any(part in f for part in OURS)), "")


KINDS = "forward", "backward", "rule", "user", "memory"
BACKWARD, MEMORY = 1, 4
OURS = (os.path.dirname(__file__) + os.sep, '"<string>"',
        "contextlib.py")
# seeing: class EventList
class EventList(list):
    """Events, or sums of those that have one name."""

    def table(self, sort_by=None, row_limit=100):
        """The list as text, largest first."""
        if sort_by not in (None, "cpu_time", *SUMS):
            raise ValueError(f"table: sort_by must be one of {SUMS}, "
                             f"not {sort_by!r}")
        rows = self if sort_by is None else sorted(
            self, key=lambda e: -getattr(e, sort_by))
        all = sum(e.self_cpu_time_total for e in self)
        text = [HEAD] + [(
            e.name, f"{100 * e.self_cpu_time_total / (all or 1):.2f}",
            *(f"{t:.1f}" for t in (e.self_cpu_time_total,
                                   e.cpu_time_total, e.cpu_time)),
            e.cpu_memory_usage, e.self_cpu_memory_usage, e.count)
            for e in rows[:row_limit if row_limit >= 0 else None]]
        wide = max(len(row[0]) for row in text)
        return "".join(row[0].ljust(wide) + "".join(
            f"{word:>13}" for word in row[1:]) + "\n" for row in text)


SUMS = ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
        "self_cpu_memory_usage", "count")
HEAD = ("Name", "Self CPU %", "Self CPU us", "CPU total us",
        "CPU avg us", "CPU Mem", "Self CPU Mem", "# of Calls")
# seeing: class profile
class profile:
    """Records what runs between start and stop, on all threads.

    There are no schedule and no step(): begin where it matters.
    """

    def __init__(self, *, activities=None, record_shapes=False,
                 profile_memory=False, with_stack=False,
                 on_trace_ready=None):
        for activity in activities or ():
            if activity != ProfilerActivity.CPU:
                raise NotImplementedError(
                    f"profile: {activity} is not recorded")
        if record_shapes:
            raise NotImplementedError(
                "profile: record_shapes=True: shapes are not recorded")
        self._options = bool(profile_memory), bool(with_stack)
        self.on_trace_ready, self._all = on_trace_ready, None

    def start(self):
        """Begin; only one profile runs at a time."""
        _C._profile_begin(*self._options)

    def stop(self):
        """End, and call on_trace_ready."""
        self._all = [*map(FunctionEvent, _C._profile_end())]
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    # seeing: further methods of profile
    def _ended(self):
        if self._all is None:
            raise RuntimeError("profile: it has not been stopped")
        return self._all

    def events(self):
        """What ran and ended, in the order in which it began."""
        return EventList(e for e in self._ended()
                         if e.kind != MEMORY and e.cpu_time_total >= 0)

    def key_averages(self):
        """The sums over the events of one name."""
        rows = {}
        for e in map(copy.copy, self.events()):
            if e.again:
                e.cpu_time_total = e.cpu_memory_usage = 0
            row = rows.setdefault(e.key, e)
            for name in SUMS if row is not e else ():
                setattr(row, name, getattr(row, name) + getattr(e, name))
        return EventList(rows.values())

    def _moments(self):
        """Of each change of memory: it, the sum, and what is live."""
        live, bytes = {}, 0
        for e in self._ended():
            if e.kind == MEMORY:
                old = live.pop(e.block, None)
                bytes -= old.cpu_memory_usage if old else 0
                if e.cpu_memory_usage > 0:
                    live[e.block] = e
                    bytes += e.cpu_memory_usage
                yield e, bytes, live

    def memory_peak(self):
        """(bytes, [(bytes, operator, line), ...]) at the worst moment."""
        if not self._options[0]:
            raise RuntimeError("memory_peak: profile_memory is False")
        most = max((bytes for _, bytes, _ in self._moments()), default=0)
        held = {}
        live = next((live for _, bytes, live in self._moments()
                     if bytes == most), held)
        for e in live.values():
            by = self._all[e.outer] if e.outer >= 0 else None
            who = (by.name, by.line) if by else ("no operator", "")
            held[who] = held.get(who, 0) + e.cpu_memory_usage
        return most, sorted(((n, *who) for who, n in held.items()),
                            reverse=True)

    def export_chrome_trace(self, path):
        """Write what ran as JSON, for chrome://tracing."""
        pid, threads = os.getpid(), {}
        trace = [{"ph": "X", "name": e.name, "cat": KINDS[e.kind],
                  "ts": e.start, "dur": e.cpu_time_total, "pid": pid,
                  "tid": threads.setdefault(e.thread, len(threads) + 1),
                  "args": {"self us": e.self_cpu_time_total,
                           "line": e.line}} for e in self.events()]
        trace += [{"ph": "C", "name": "memory", "ts": e.start,
                   "pid": pid, "tid": 0, "args": {"bytes": bytes}}
                  for e, bytes, _ in self._moments()]
        Path(path).write_text(json.dumps(
            {"traceEvents": trace, "displayTimeUnit": "ms"}), "utf-8")

find_on_demand(sys.modules[__name__], "a profile is one block: begin "
                                      "where it matters")
