# needs: porting saving-more
"""PyTorch's files that somebody spoilt, and files of weights, read by Python.

Each seed in tests/seeds is read as it is, and then changed at random places,
over and over: the bytes of the archive, or those of its pickle, packed again
with checksums that are right.  Whatever the bytes are, the answer is an object
or an exception that says something, in bounded time and memory, and no code of
the file runs.  TREADLE_FUZZ=300 goes on for as many seconds with .pt files, and
half as many with those that the fuzzers in C read, too.
"""
import io
import os
import random
import signal
import time
import warnings
import zipfile
from pathlib import Path

import pytest

import treadle as td
from treadle.safetensors import SafetensorError, load

SEEDS = Path(__file__).resolve().parents[1] / "seeds"
SECONDS, START = float(os.environ.get("TREADLE_FUZZ", 0)), int(os.environ.get("TREADLE_SEED", 1))
NUMBERS = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = [b"cbuiltins\neval\n", b"cos\nsystem\n", b"ctorch\nFloatStorage\n", b"ctorch._utils\n_rebuild_tensor_v2\n",
         b"X\x01\x00\x00\x00a", b"K\x01", b"J\xff\xff\xff\xff", b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", b"(", b")", b"t", b"R",
         b"}", b"]", b"s", b"u", b"a", b"e", b"N", b"Q", b"b", b".", b"q\x00", b"h\x00", b"h\x05", b"\x85", b"\x86", b"\x87", b"0", b"2",
         b"\x81", b"r\xff\xff\xff\x7f", b"ccollections\nOrderedDict\n", b"\x93", b"c__builtin__\nset\n", b"G\x7f\xf0\0\0\0\0\0\0"]


def changed(draw, data, words=WORDS):
    """The bytes, different in one place."""
    at, how = draw.randrange(len(data) + 1), draw.randrange(8)
    to = min(len(data), at + draw.randrange(1, 40))
    if how == 0:
        return data[:at] + bytes([draw.randrange(256)]) + data[at + 1:]
    if how == 1:
        return data[:at]
    if how == 2:
        return data[:at] + data[to:]
    if how == 3:
        other = draw.randrange(len(data) + 1)
        return data[:other] + data[at:to] + data[other:]
    if how == 4:
        size, order = draw.choice([1, 2, 4, 8]), draw.choice(["little", "big"])
        return data[:at] + (draw.choice(NUMBERS) % 256**size).to_bytes(size, order) + data[at + size:]
    if how == 5:
        return data[:at] + bytes(b ^ 1 << draw.randrange(8) for b in data[at:at + 1]) + data[at + 1:]
    return data[:at] + draw.choice(words) + data[at:]


def packed_again(draw, data):
    """An archive with the same entries, the pickle or a name or bytes changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new, warnings.catch_warnings():
        warnings.simplefilter("ignore")     # the same name twice
        names = old.namelist()
        which = draw.choice([names[0]] * 5 + names)
        for name in names:
            content = old.read(name)
            if name == which:
                for _ in range(draw.choice([1, 1, 2, 3, 6])):
                    content = changed(draw, content)
                if draw.random() < 0.1:
                    name = changed(draw, name.encode(), [b"/", b"..", b"data/0", b"data.pkl"]).decode("latin1") or "x"
            new.writestr(zipfile.ZipInfo(name), content, draw.choice([0, 0, 0, 8]))
    return out.getvalue()


def elements(found):
    """Reads all that a file gave."""
    if isinstance(found, td.Tensor):
        assert len(bytes(memoryview(found.contiguous().flatten().view(td.uint8)))) == found.numel() * found.element_size()
    elif isinstance(found, dict):
        for key, value in found.items():
            elements(key), elements(value)
    elif isinstance(found, (list, tuple, set)):
        for value in found:
            elements(value)


def fuzz(kind, read, refused, change, share=1):
    seeds = [p.read_bytes() for p in sorted(SEEDS.glob(f"*.{kind}"))]
    assert len(seeds) > 2
    draw, until, done, good = random.Random(START), time.monotonic() + SECONDS * share, 0, 0
    while time.monotonic() < until if SECONDS else done < 400:
        data = seeds[done] if done < len(seeds) else change(draw, draw.choice(seeds))
        Path("input").write_bytes(data)
        signal.alarm(30)
        try:
            elements(read(data))
            good += 1
        except refused as error:
            assert str(error), (type(error), data)
        finally:
            signal.alarm(0)
        done += 1
    assert 0 < good < done
    print(f"{kind}: {done} inputs, {good} read")


# pickle.load refuses in all of these ways
REFUSED = (RuntimeError, ValueError, OSError, EOFError, KeyError, IndexError, TypeError, AttributeError, MemoryError,
           zipfile.BadZipFile, __import__("pickle").UnpicklingError, OverflowError, UnicodeError, NotImplementedError)


@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
def test_files_of_pytorch(tmp_path, monkeypatch, mapped):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "system", lambda *_: pytest.fail("the file ran a command"))

    def read(data):
        Path("file").write_bytes(data)
        return td.load("file", mmap=True) if mapped else td.load(io.BytesIO(data))

    fuzz("pt", read, REFUSED, lambda draw, data: packed_again(draw, data) if draw.random() < 0.8 else changed(draw, data), 0.5)


def test_files_of_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [b"{", b"}", b'"', b"[", b"]", b":", b",", b"\\u0000", b"\\ud800", b"-1", b"1e3", b'"__metadata__":{},']
    fuzz("safetensors", load, SafetensorError, lambda draw, data: changed(draw, data, words), 0.25)


def test_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(data):
        Path("file").write_bytes(data)
        return td.datasets.read_csv("file", header=len(data) % 2)

    words = [b'"', b'""', b",", b"\n", b"\r\n", b"\xef\xbb\xbf", b"nan", b"1e400", "é".encode(), b"\xff"]
    fuzz("csv", read, (OSError, ValueError), lambda draw, data: changed(draw, data, words), 0.25)
