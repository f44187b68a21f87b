# SPDX-License-Identifier: MIT
# Tangled from the chapter "trainings": edit that, not this file.
# needs: models seeing
"""The command treadle: train, eval, sample, bench, inspect, info."""
import argparse
import math
import os
import pickle
import platform
import re
import signal
import sys
import time
import zipfile
import zlib
from inspect import signature
from . import (Tensor, __version__, cpu_info, cuda, get_num_threads,
               load, manual_seed, no_grad, save_file, set_num_threads)
from .programs import TASKS, Loop, find
from .safetensors import SafetensorError, safe_open
from .svg import curves


# trainings: functions of commands
def checkpoint(o):
    return os.path.join(o.out or os.path.join("runs", o.name),
                        "checkpoint.pt")


def begun(o, resume):
    """A loop with the given options, or with those of a checkpoint."""
    given = {name: value for name, value in vars(o).items()
             if value is not None
             and name in signature(Loop).parameters}
    if resume:
        path = checkpoint(o)
        state = load(path, map_location="cpu")
        if not isinstance(state, dict) \
                or not isinstance(state.get("options"), dict):
            raise ValueError(f"{path} is no checkpoint of a training")
        given = {**state["options"], **given}
    loop = Loop(**{**given, "task": o.name})
    if resume:
        loop.load_state_dict(state)
    return loop


def train(o):
    """Train a task, or go on with it."""
    path, caught = checkpoint(o), []
    folder = os.path.dirname(path)
    if os.path.exists(path) and not o.resume:
        raise FileExistsError(f"{path} is there already: --resume goes "
                              "on with it, --out takes another folder")
    loop = begun(o, o.resume)
    os.makedirs(folder, exist_ok=True)

    def note(number, frame):
        caught.append(number)
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    # trainings: train until it is over or asked to stop
    def show(text):
        print(text, flush=True)
        write_log(folder, loop.history)
    if not loop.run(path, o.save_every, lambda: caught, show):
        print(f"stopped at step {loop.step}; --resume goes on")
        return 128 + caught[0]
    save_file(loop.model.state_dict(),
              os.path.join(folder, "model.safetensors"))


def write_log(folder, history):
    """The numbers of all epochs as a table, and losses as a picture."""
    rows = [["epoch", *history[0]]] + [
        [i, *row.values()] for i, row in enumerate(history, 1)]
    with open(os.path.join(folder, "log.csv"), "w") as file:
        for row in rows:
            print(*row, sep=",", file=file)
    curves(os.path.join(folder, "curves.svg"), {
        name: [row[name] for row in history]
        for name in ("train", "loss")})


def evaluate(o):
    """Measure a trained task on its test data."""
    for name, value in begun(o, True).evaluate().items():
        print(f"{name} {value:.4f}")


def sample(o):
    """Let a trained task go on writing."""
    seed, o.seed = o.seed, None
    loop = begun(o, True)
    if seed is not None:
        manual_seed(seed)
    loop.model.eval()
    with no_grad():
        print(loop.task.sample(o.length, o.temperature))


def bench(o):
    """Time the steps of a task."""
    loop, times = begun(o, False), []
    for batch in loop.loader:
        start = time.perf_counter()
        loop.learn(*batch)
        times.append(time.perf_counter() - start)
        if len(times) == o.steps:
            break
    took = 1e3 * sorted(times)[len(times) // 2]
    print(f"{o.name}: {took:.2f} ms a step of "
          f"{loop.options['batch_size']}, {get_num_threads()} threads")


def info(o):
    """Tell the version, the devices, and where the data lies."""
    print(f"treadle {__version__}, Python {platform.python_version()}, "
          f"{platform.machine()}, {get_num_threads()} threads, "
          f"{cuda.device_count()} CUDA devices, {cpu_info()}")
    for name, kind in TASKS.items():
        try:
            print(f"{name:13} {find(o.data, *kind.names)}")
        except FileNotFoundError as error:
            print(f"{name:13} {error}")


HEADER = re.compile(r"\{'descr': (.+), 'fortran_order': (?:True|False),"
                    r" 'shape': \(([\d, ]*)\)")


def array(name, file, room):
    """What the header of an array of NumPy says of it."""
    start = file.read(8)
    wide = 2 if start[6:7] == b"\1" else 4
    n = int.from_bytes(file.read(wide), "little")
    found = n < 10000 and start[:6] == b"\x93NUMPY" \
        and HEADER.match(file.read(n).decode("latin1"))
    if not found:
        raise ValueError(f"inspect: {name} is no array of NumPy")
    kind, shape = found[1].strip("'"), [
        int(size) for size in re.findall(r"\d+", found[2])]
    # trainings: compare the array with its room
    room -= 8 + wide + n
    if re.fullmatch(r"[<>|=][biufc]\d+", kind):
        size = int(kind[2:]) * math.prod(shape)
        if size > room:
            raise ValueError(f"inspect: {name} is cut off")
        room = size
    return name, kind, shape, room


def leaves(name, value):
    """Tensors in dictionaries and lists, by their paths."""
    if isinstance(value, Tensor):
        yield (name, str(value.dtype)[8:],
               value.shape, value.numel() * value.element_size())
    elif isinstance(value, (dict, list, tuple)):
        for key, inner in value.items() if isinstance(value, dict) \
                else enumerate(value):
            yield from leaves(f"{name}.{key}" if name else str(key),
                              inner)


def tensors(path):
    """(name, dtype, shape, bytes) of each tensor in a file."""
    kind = os.path.splitext(path)[1]
    if kind == ".safetensors":
        with safe_open(path) as file:
            for name in file.offset_keys():
                x = file.get_slice(name)
                kind, shape = x.get_dtype(), x.get_shape()
                bits = re.search(r"\d+|$", kind).group() or 8
                yield (name, kind, shape,
                       int(bits) * math.prod(shape) // 8)
    elif kind in (".pt", ".pth"):
        yield from leaves("", load(path, map_location="cpu"))
    elif kind == ".npy":
        with open(path, "rb") as file:
            yield array(path, file, os.path.getsize(path))
    elif kind == ".npz":
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as file:
                    yield array(entry.filename[:-4], file,
                                entry.file_size)
    else:
        raise ValueError(f"inspect: {path} is none of .safetensors, "
                         ".pt, .pth, .npy, .npz")


def inspect(o):
    """List the tensors of a file."""
    count = total = 0
    for name, dtype, shape, size in tensors(o.file):
        print(f"{name:32} {dtype:8} {str(list(shape)):16} {size:11,}")
        count, total = count + 1, total + size
    print(f"{count} tensors, {total:,} bytes")


# trainings: function options
def count(text):
    if int(text) < 1:
        raise ValueError(f"{text} is not at least 1")
    return int(text)


def amount(text):
    if not float(text) >= 0:
        raise ValueError(f"{text} is not at least 0")
    return float(text)


# trainings: table of commands and options
KINDS = {
    count: "epochs batch-size threads save-every length steps",
    amount: "lr temperature", int: "seed", str: "data out device"}
DEFAULTS = {"save-every": 200, "length": 400, "temperature": 0.8,
            "steps": 20}
COMMANDS = {
    "train": (train, "NAME epochs batch-size lr seed data out device "
              "threads save-every resume compile"),
    "eval": (evaluate, "NAME data out device threads"),
    "sample": (sample, "NAME length temperature seed data out threads"),
    "bench": (bench, "NAME steps batch-size data device threads "
              "compile"),
    "inspect": (inspect, "FILE"), "info": (info, "data threads")}


def options(args):
    """What the words behind the command say."""
    parser = argparse.ArgumentParser("treadle", epilog="treadle FILE "
        "runs a program that was written for PyTorch.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (run, takes) in COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__)
        command.set_defaults(run=run)
        for word in takes.split():
            # trainings: let the command take the word
            kinds = [kind for kind, words in KINDS.items()
                     if word in words.split()]
            if kinds:
                command.add_argument("--" + word, type=kinds[0],
                                     default=DEFAULTS.get(word))
            elif word.islower():
                command.add_argument("--" + word, action="store_true",
                                     default=None)
            else:
                command.add_argument(word.lower(), metavar=word,
                                     choices=TASKS if word == "NAME" else None)
    return parser.parse_args(args, argparse.Namespace(
        out=None, seed=None, threads=None))


def main(args):
    """Run a command; its status."""
    o = options(args)
    try:
        if o.threads:
            set_num_threads(o.threads)
        return o.run(o)
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error,
            SafetensorError, pickle.UnpicklingError,
            zipfile.BadZipFile) as error:
        sys.stderr.write(f"treadle: {error}\n")
        return 1
