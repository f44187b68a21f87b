#!/usr/bin/env python3
"""Writes the seeds beside this file: small files of every kind that is read.

The fuzzers (tests/c/test_seeds.c and tests/python/test_seeds.py) begin with
them.  A file that once broke a reader joins them under a name that begins
with `was-`; those are not written here.
"""
import gzip
import io
import json
import pickle
import random
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path

HERE = Path(__file__).resolve().parent
draw = random.Random(12)


def seed(name, content):
    (HERE / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def idx(*shape, kind=8):
    size = 1
    for n in shape:
        size *= n
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, kind, len(shape), *shape) + draw.randbytes(size)


def safetensors(header, data, pad=8):
    text = header if isinstance(header, str) else json.dumps(header)
    text += " " * (-len(text) % pad)
    return struct.pack("<Q", len(text)) + text.encode() + data


def packed(content):
    return gzip.compress(content, mtime=0)


# IDX: plain, packed, in two streams, of other types
seed("images.idx", idx(3, 5, 7))
seed("labels.idx", idx(11))
seed("nothing.idx", idx(0, 28, 28))
seed("deep.idx", idx(1, 2, 1, 2, 1, 2, 1, 2))
seed("floats.idx", struct.pack(">BBBBI", 0, 0, 13, 1, 2) + struct.pack(">2f", 1, 2))
seed("packed.idx", packed(idx(4, 3, 2)))
whole = idx(4, 3, 2)
seed("members.idx", packed(whole[:9]) + packed(whole[9:]))

# CSV
seed("numbers.csv", "a,b,c\n1,2.5,-3e4\n4,,6\n")
seed("quotes.csv", 'name,size,note\r\n"Smith, J.",1.5,"he said ""no"""\r\nJones,,\r\n')
seed("lines.csv", 'a,"b\nc"\n"1\r\n2",""""\n\n3,4')
seed("marked.csv", "\ufeffx\n1\n\n\n2\n")
seed("limits.csv", "9223372036854775807,1e999,nan\n-9223372036854775808,-1e-999,inf\n0x1p3, 7 ,1e\n")
seed("packed.csv", packed(b"x,y\n1,2\n3,4\n"))

# CIFAR-10: two records of 1 + 3072 bytes, of few different bytes
record = bytes([7]) + bytes(range(0, 256, 8)) * 96
seed("two.cifar", record + bytes([0]) + record[1:])
seed("packed.cifar", packed(record * 3))

# safetensors
floats = struct.pack("<6f", *range(6))
seed("two.safetensors", safetensors(OrderedDict([
    ("__metadata__", {"format": "pt", "what": "a seed"}),
    ("w", {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}),
    ("n", {"dtype": "I64", "shape": [], "data_offsets": [24, 32]})]), floats + struct.pack("<q", -5)))
seed("kinds.safetensors", safetensors({
    "b": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}, "h": {"dtype": "F16", "shape": [1], "data_offsets": [3, 5]},
    "z": {"dtype": "BF16", "shape": [0, 9], "data_offsets": [5, 5]}, "u": {"dtype": "U8", "shape": [1, 1], "data_offsets": [5, 6]},
    "d": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [6, 8]}}, bytes([1, 0, 1, 0, 60, 9, 1, 2]), 1))
seed("words.safetensors", safetensors('{"\\u00e9\\ud83d\\ude00\\n\\"":{"shape":[1],"dtype":"U8","data_offsets":[0,1]},'
                                      ' "__metadata__":{"":"\\\\"} }', b"x"))
seed("empty.safetensors", safetensors({}, b""))

# Arrow: what test_seeds.c makes structures of; a level is a format, zero, and 8 bytes
def level(text, length, offset=0, gaps=0, buffers=2, children=0, flags=0, name=1):
    return text.encode() + b"\0" + struct.pack("<BBbBBBBB", length, offset, gaps, buffers, children, flags, name, 0)


for letter in "fglicCsbe":
    seed(f"column-{letter}.arrow", level(letter, 9, 2))
seed("gaps.arrow", level("f", 20, 3, -1, flags=1))
seed("table.arrow", level("+s", 5, 1, 0, 1, 2) + level("l", 7, 1) + level("b", 8, 0, 2, flags=1))
seed("lists.arrow", level("+w:2", 3, 1, 0, 1, 1) + level("+w:3", 12, 1, 0, 1, 1) + level("i", 60, 4))
seed("text.arrow", level("+s", 2, 0, 0, 1, 1) + level("u", 2, 0, 0, 3))


# .pt: the files of PyTorch, without PyTorch
class Storage:
    def __init__(self, kind, key, numel):
        self.id = ("storage", kind, key, "cpu", numel)


class Named:
    """Pickles as a global of the module torch, without importing it."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Pickler(pickle._Pickler):
    def persistent_id(self, obj):
        return obj.id if isinstance(obj, Storage) else None

    def save_named(self, obj):
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())

    dispatch = {**pickle._Pickler.dispatch, Named: save_named}


class Tensor:
    def __init__(self, storage, offset, shape, strides):
        self.given = storage, offset, shape, strides, False, OrderedDict()


def save_tensor(self, obj):
    self.save_reduce(Rebuild, obj.given)


Rebuild = Named("torch._utils", "_rebuild_tensor_v2")


def reduce(self, func, args, **rest):
    self.save(func)
    self.save(args)
    self.write(pickle.REDUCE)


Pickler.dispatch[Tensor] = lambda self, obj: reduce(self, Rebuild, obj.given)


def pt(content, storages, folder="archive", extra=()):
    out, text = io.BytesIO(), io.BytesIO()
    Pickler(text, 2).dump(content)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        def put(name, data):
            z.writestr(zipfile.ZipInfo(f"{folder}/{name}", (2026, 11, 23, 0, 0, 0)), data)
        put("data.pkl", text.getvalue())
        for name, data in extra:
            put(name, data)
        for key, data in storages.items():
            put(f"data/{key}", data)
        put("version", b"3\n")
    return out.getvalue()


kinds = {name: Named("torch", f"{name}Storage") for name in ("Float", "Long", "Bool", "Half", "BFloat16")}
w = Storage(kinds["Float"], "0", 6)
seed("tensor.pt", pt(Tensor(w, 0, (2, 3), (3, 1)), {"0": floats}))
seed("state.pt", pt(OrderedDict([("w", Tensor(w, 0, (3, 2), (1, 3))), ("b", Tensor(w, 2, (2,), (2,))),
                                 ("n", Tensor(Storage(kinds["Long"], "1", 1), 0, (), ()))]),
                    {"0": floats, "1": struct.pack("<q", 7)}, "state", [("byteorder", b"little")]))
seed("mixed.pt", pt({"step": 3, "rate": 0.5, "names": ["a", None, True], "t": (Tensor(Storage(kinds["Bool"], "0", 3), 0, (3,), (1,)),
                     Tensor(Storage(kinds["Half"], "1", 2), 1, (1,), (1,))), "big": 1 << 70},
                    {"0": b"\1\0\1", "1": b"\0\x3c\0\x40"}))
