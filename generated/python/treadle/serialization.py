# SPDX-License-Identifier: MIT
# Tangled from the chapter "checkpoints": edit that, not this file.
# needs: exchange
"""Anything of Python, with its tensors, in the files of PyTorch."""
import collections
import contextlib
import io
import itertools
import mmap as mapping
import os
import pickle
import pickletools
import stat
import struct
import sys
import zipfile
from . import _C, Size, Tensor
from ._exchange import UntypedStorage, _storage_over
from ._tensor import _CASTS, device
from .nn.module import Parameter


def _refuse(why):
    raise pickle.UnpicklingError(why)


# checkpoints: names in a pickle of PyTorch
_Typed = collections.namedtuple("_Typed", "storage dtype")
_Kind = collections.namedtuple("_Kind", "dtype")


def _tensor_v2(typed, offset, size, stride, requires_grad, hooks,
               metadata=None):
    if type(typed) is not _Typed \
            or type(typed.storage) is not UntypedStorage:
        _refuse("a tensor has no storage")
    x = _C._over_storage(typed.storage._bytes, typed.dtype, size,
                         stride, offset)
    return x.requires_grad_(requires_grad)


def _tensor_v3(storage, offset, size, stride, requires_grad, hooks,
               dtype, metadata=None):
    return _tensor_v2(_Typed(storage, dtype), offset, size, stride,
                      requires_grad, hooks)


def _parameter(data, requires_grad, hooks):
    return Tensor._make_subclass(Parameter, data, requires_grad)


_KINDS = {dtype: _Kind(dtype) for dtype in (*_CASTS.values(), None)}
_OURS = {"torch._utils _rebuild_tensor_v2": _tensor_v2,
         "torch._utils _rebuild_tensor_v3": _tensor_v3,
         "torch._utils _rebuild_parameter": _parameter,
         "torch.storage UntypedStorage": _KINDS[None],
         "torch Size": Size, "torch device": device,
         **{str(d).replace("treadle.", "torch "): d
            for d in _KINDS if d},
         **{f"torch {word}Storage": _KINDS[dtype]
            for word, dtype in _CASTS.items()}}
_THEIRS = {id(ours): name for name, ours in _OURS.items()}


# checkpoints: function _whole_file
_numbers = itertools.count()


@contextlib.contextmanager
def _whole_file(path):
    """A file to write, that takes the place of path when whole."""
    path = os.path.realpath(path)
    old = os.stat(path).st_mode if os.path.exists(path) else None
    if old is not None and not stat.S_ISREG(old):
        with open(path, "wb") as file:
            yield file
        return
    new = f"{path}.{os.getpid()}.{next(_numbers)}.new"
    try:
        with open(new, "wb") as file:
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


# checkpoints: class _Pickler
class _Pickler(pickle._Pickler):
    def __init__(self, file, protocol):
        super().__init__(file, protocol)
        self.storages = {}

    def persistent_id(self, obj):
        if type(obj) is UntypedStorage:
            obj = _Typed(obj, None)
        if type(obj) is not _Typed:
            return None
        storage, dtype = obj
        key, first = self.storages.setdefault(
            id(storage), (str(len(self.storages)), obj))
        if first.dtype is not dtype:
            raise RuntimeError("save: tensors of two types, "
                f"{first.dtype} and {dtype}, share one storage")
        return ("storage", _KINDS[dtype], key, str(storage.device),
                storage.nbytes() // (dtype.itemsize if dtype else 1))

    def reducer_override(self, obj):
        kind, plain = type(obj), collections.OrderedDict()
        if id(obj) in _THEIRS:
            return _THEIRS[id(obj)]
        if kind is Size:
            return Size, (tuple(obj),)
        if kind is device:
            return device, (str(obj),)
        if kind not in (Tensor, Parameter) or obj.__dict__:
            return NotImplemented
        if kind is Parameter:
            return _parameter, (obj.data, obj.requires_grad, plain)
        return _tensor_v2, (
            _Typed(_storage_over(obj), obj.dtype), obj.storage_offset(),
            tuple(obj.shape), obj.stride(), obj.requires_grad, plain)

    def save_global(self, obj, name=None):
        if id(obj) not in _THEIRS:
            return super().save_global(obj, name)
        name = _THEIRS[id(obj)].replace(" ", "\n")
        self.write(pickle.GLOBAL + f"{name}\n".encode())
        self.memoize(obj)


# checkpoints: function save
def _put(archive, name, data):
    entry, data = zipfile.ZipInfo(f"archive/{name}"), memoryview(data)
    entry.file_size = data.nbytes
    large = data.nbytes >= 1 << 30       # 20 bytes more in its header
    pad = -(archive.start_dir + len(entry.filename) + 34
            + 20 * large) % 64
    entry.extra = struct.pack("<2sH", b"FB", pad) + b"Z" * pad
    with archive.open(entry, "w", force_zip64=large) as file:
        file.write(data)


def save(obj, f, pickle_module=pickle, pickle_protocol=2,
         _use_new_zipfile_serialization=True):
    """Write obj, with all its tensors, to a path or an open file.

    The file is PyTorch's, and torch.load reads it if all that obj
    holds is known there.  A path holds what it held before or all of
    obj, never a part.  Tensors that share memory share it afterwards.
    """
    if pickle_module is not pickle \
            or not _use_new_zipfile_serialization:
        raise ValueError("save: only pickle writes these files, and "
                         "only as zip archives")
    with contextlib.nullcontext(f) if hasattr(f, "write") \
            else _whole_file(f) as file:
        program = io.BytesIO()
        pickler = _Pickler(program, pickle_protocol)
        pickler.dump(obj)
        with zipfile.ZipFile(file, "w") as archive:
            _put(archive, "data.pkl", program.getbuffer())
            _put(archive, "byteorder", sys.byteorder.encode())
            for key, (storage, dtype) in pickler.storages.values():
                size = dtype.itemsize if dtype else 1
                data = memoryview(storage._bytes.cpu())
                _put(archive, f"data/{key}",
                     data[:len(data) // size * size])
            _put(archive, "version", b"3\n")


# checkpoints: function that places a storage
def _place(storage, where, choice):
    if callable(choice):
        found = choice(storage, where)
        if found is not None:
            return found
        choice = None
    there = choice.get(where) if isinstance(choice, dict) else choice
    there = str(there or where)
    return storage if there == "cpu" \
        else _storage_over(storage._bytes.to(there))


# checkpoints: class _Archive
class _Archive:
    """The entries of a file of PyTorch, and the storages in them."""

    def __init__(self, file, place, mapped):
        self.choice, self.storages, self.entries = place, {}, {}
        file.seek(0)
        if file.read(4) != b"PK\3\4":
            _refuse("it is no zip archive, as PyTorch writes since 1.6")
        self.zip = zipfile.ZipFile(file)
        folders = set()
        for entry in self.zip.infolist():
            folder, _, name = entry.filename.partition("/")
            folders.add(folder)
            if not name or len(folders) > 1 or name in self.entries:
                _refuse(f"the entry {entry.filename} is not one of a "
                        "single folder")
            self.entries[name] = entry
        if "constants.pkl" in self.entries:
            _refuse("it is a program of TorchScript")
        entries, end = self.entries.values(), file.seek(0, os.SEEK_END)
        if sum(entry.file_size for entry in entries) > end or not all(
                0 <= entry.header_offset < end for entry in entries):
            _refuse("its entries overlap, or lie outside of it")
        self.map = mapped and mapping.mmap(
            file.fileno(), 0, access=mapping.ACCESS_COPY)
        # checkpoints: refuse archives of another order or version
        if "byteorder" in self.entries and self.zip.read(
                self.entry("byteorder")) != sys.byteorder.encode():
            _refuse("its numbers have the other order of bytes")
        version = self.zip.read(self.entry("version"))
        if version.strip() not in [b"%d" % v for v in range(1, 11)]:
            _refuse(f"it has the version {version[:20]!r}, not 1 to 10")

    def entry(self, name):
        entry = self.entries.get(name) or _refuse(f"it has no {name}")
        if entry.compress_type or entry.flag_bits & 1:
            _refuse(f"the entry {name} is compressed or encrypted")
        return entry

    # checkpoints: fetch a storage from the archive
    def read(self, entry, align):
        if self.map:
            lengths = struct.unpack_from("<2H", self.map,
                                         entry.header_offset + 26)
            begin = entry.header_offset + 30 + sum(lengths)
            data = memoryview(self.map)[begin:begin + entry.file_size]
            if len(data) != entry.file_size:
                _refuse("it ends too early")
            x = _C.from_numpy(data)
            return x.clone() if begin % align else x
        x = _C.empty(entry.file_size, dtype=_C.uint8)
        data, piece = memoryview(x), 1 << 20
        with self.zip.open(entry) as file:
            for at in range(0, len(data), piece):
                data[at:at + piece] = file.read(piece)
        return x

    def storage(self, pid):
        """The storage that the pickle refers to, each read once."""
        if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage" \
                or type(pid[1]) is not _Kind or type(pid[4]) is not int:
            _refuse("it refers to something that is no storage")
        _, (dtype,), key, where, n = pid
        size = dtype.itemsize if dtype else 1
        entry = self.entry(f"data/{key}")
        if entry.file_size != n * size:
            _refuse(f"data/{key} has {entry.file_size} bytes, not {n} "
                    f"elements of {size}")
        if key not in self.storages:
            self.storages[key] = _place(
                _storage_over(self.read(entry, size)), where, self.choice)
        return _Typed(self.storages[key], dtype) if dtype \
            else self.storages[key]


# checkpoints: function that runs a pickle of weights
# checkpoints: what a pickle of weights may name
_PLAIN = {str, int, float, bool, bytes, type(None), type(_C.float32)}


def _keys(keys):
    for key in keys:
        if not _PLAIN.issuperset(map(type, key) if type(key) is tuple
                                 else [type(key)]):
            _refuse(f"a {type(key).__name__} cannot be a key")
    return keys


def _made(kind):
    return lambda items=(): kind(_keys(items))


def _bytes(text="", encoding="latin1"):
    return text.encode({"latin1": "latin1"}[encoding])


_SAFE = {**_OURS, "_codecs encode": _bytes, "builtins bytes": _bytes,
         "builtins bytearray": lambda data=b"": bytearray(b"" + data),
         "builtins complex": complex,
         "collections OrderedDict": lambda: collections.OrderedDict(),
         "collections Counter": _made(collections.Counter),
         "builtins set": _made(set),
         "builtins frozenset": _made(frozenset)}


# checkpoints: instructions of a pickle of weights
_AS_EVER = """PROTO STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1
    BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINSTRING EMPTY_LIST
    EMPTY_TUPLE EMPTY_DICT EMPTY_SET GLOBAL BINPUT LONG_BINPUT BINGET
    LONG_BINGET TUPLE TUPLE1 TUPLE2 TUPLE3 BINPERSID""".split()
_CHANGES = {"APPEND": 1, "SETITEM": 2, "REDUCE": 1, "NEWOBJ": 1,
            "BUILD": 1, "APPENDS": 0, "SETITEMS": 0}
def _change(machine, name):
    items = [machine.stack.pop() for _ in range(_CHANGES[name])]
    items = items[::-1] or machine.pop_mark()
    below, what = machine.stack[-1], name.rstrip("S")
    if what in ("REDUCE", "NEWOBJ") and type(items[0]) is tuple:
        machine.stack[-1] = below(*items[0])
    elif what == "APPEND" and type(below) is list:
        below.extend(items)
    elif what == "SETITEM" and isinstance(below, dict):
        for key, value in zip(_keys(items[::2]), items[1::2]):
            below[key] = value
    elif what != "BUILD" or type(below) is not collections.OrderedDict:
        _refuse(f"weights_only is set, and {name} does not fit "
                f"{type(items[0]).__name__}")
class _Instructions(dict):
    def __init__(self):
        for name in (*_AS_EVER, *_CHANGES):
            code = getattr(pickle, name)[0]
            self[code] = _step(name, pickle._Unpickler.dispatch[code])

    def __missing__(self, code):
        _refuse("weights_only is set, and the file uses "
                + pickletools.code2op[chr(code)].name)


def _step(name, plain):
    def step(machine):
        try:
            _change(machine, name) if name in _CHANGES \
                else plain(machine)
        except IndexError:
            _refuse(f"{name} finds too little on the stack")
    return step


# checkpoints: class _Weights
class _Weights(pickle._Unpickler):
    """A machine for weights, which runs nothing else."""
    dispatch = _Instructions()

    def find_class(self, module, name):
        name = f"{module} {name}"
        found = _SAFE.get(name.replace("__builtin__", "builtins"))
        if found is None:
            _refuse("weights_only is set, and the file asks for "
                    f"{name.replace(' ', '.')}, which is neither a "
                    "tensor nor a container; weights_only=False would "
                    "run it")
        return found


# checkpoints: function load
class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        found = _OURS.get(f"{module} {name}")
        return super().find_class(module, name) if found is None \
            else found


def load(f, map_location=None, pickle_module=None, *, weights_only=True,
         mmap=False, **pickle_load_args):
    """What td.save or torch.save wrote to a path or an open file.

    map_location says where tensors go: a device, a dictionary from
    devices to devices, or a function (storage, device) -> storage.
    With mmap the tensors of a path lie in the file, which is read as
    they are used; writing to them does not change it.  With
    weights_only=False the file may run any program.

    Raises pickle.UnpicklingError for a file that is damaged, or that
    holds what weights_only does not let through.
    """
    if pickle_module not in (None, pickle):
        raise ValueError("load: only pickle reads these files")
    given = hasattr(f, "read")
    if mmap and given:
        raise ValueError("load: mmap needs a path, not a file")
    with contextlib.nullcontext(f) if given \
            else open(os.fspath(f), "rb") as file:
        # checkpoints: read the archive, and say which file is wrong
        try:
            archive = _Archive(file, map_location, mmap)
            program = io.BytesIO(archive.zip.read(archive.entry("data.pkl")))
            machine = _Weights(program, encoding="latin1") if weights_only \
                else _Unpickler(program, **pickle_load_args)
            machine.persistent_load = archive.storage
            return machine.load()
        except (OSError, MemoryError):
            raise
        except Exception as error:
            name = getattr(file, "name", "the file")
            raise pickle.UnpicklingError(f"load: {name}: {error}") from error
