# SPDX-License-Identifier: MIT
# Tangled from the chapter "saving-more": edit that, not this file.
# needs: exchange
"""Tensors in files of the format safetensors.

>>> from treadle.safetensors import save_file, load_file
>>> save_file({"w": td.ones(2)}, "w.safetensors")
>>> load_file("w.safetensors")["w"]
tensor([1., 1.])
"""
import os
from itertools import chain
from . import _C

# saving-more: class SafetensorError
class SafetensorError(Exception):
    """A file that breaks a rule of the format, or lacks a tensor."""


def _ask(function, *args):
    try:
        return function(*args)
    except (OSError, IndexError, NotImplementedError) as error:
        raise SafetensorError(str(error)) from None

# saving-more: class safe_open
class safe_open:
    """A file whose tensors are read when they are asked for.

    framework: "pt" for tensors of Treadle, "np" for arrays of NumPy.
    backend: "mmap" shares the file's pages, copied when written to;
    "pread" makes copies.
    """

    def __init__(self, filename, framework="pt", device="cpu", *,
                 backend="mmap"):
        if (framework not in ("pt", "np")
                or backend not in ("mmap", "pread")):
            raise SafetensorError(
                "safe_open: expected framework 'pt' or 'np', backend "
                f"'mmap' or 'pread', got {framework!r}, {backend!r}")
        os.stat(filename)               # FileNotFoundError says most
        self._numpy, self._device = framework == "np", device
        self._file, self._index, self._notes = _ask(
            _C._safetensors_open, os.fsdecode(filename),
            backend == "mmap")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file = None

    def keys(self):
        """Names of the tensors, sorted."""
        return sorted(self._index)

    def offset_keys(self):
        """Names of the tensors in the order of the file."""
        return list(self._index)

    def metadata(self):
        """The words about the file, or None."""
        return self._notes or None

    # saving-more: methods that make tensors
    def get_tensor(self, name):
        """The tensor of that name."""
        return self._part(name, ...)

    def get_tensors(self):
        """All tensors by name."""
        return {name: self.get_tensor(name) for name in self._index}

    def get_slice(self, name):
        """The tensor, to be read by parts: get_slice(name)[2:5, 0]."""
        self._look(name)
        return _Slice(self, name)

    def _look(self, name):
        if self._file is None:
            raise SafetensorError("safe_open: the file is closed")
        if name not in self._index:
            raise SafetensorError(f"safe_open: no tensor {name!r}")
        return self._index[name]

    def _part(self, name, index):
        self._look(name)
        x = _ask(_C._safetensors_get, self._file, name)
        x = x if index is ... else x[index].contiguous()
        return x.numpy() if self._numpy else x.to(self._device)

# saving-more: class _Slice
class _Slice:
    def __init__(self, file, name):
        self._file, self._name = file, name

    def get_shape(self):
        """The sizes of the whole tensor."""
        return list(self._file._look(self._name)[1])

    def get_dtype(self):
        """The type of the elements in the file, such as 'F32'."""
        return self._file._look(self._name)[0]

    def __getitem__(self, index):
        return self._file._part(self._name, index)

# saving-more: functions that write files of tensors
def _write(path, tensors, metadata):
    if not isinstance(tensors, dict):
        raise ValueError("save: expected a dict of names and tensors, "
                         f"got {type(tensors).__name__}")
    for name, x in tensors.items():
        if not isinstance(x, _C.Tensor):
            raise ValueError(f"save: {name!r} is invalid, expected a "
                             f"Tensor, got {type(x).__name__}")
    notes = {} if metadata is None else metadata
    if not isinstance(notes, dict):
        raise TypeError("save: expected a dict as metadata")
    return _ask(_C._safetensors_save, path, tuple(tensors.values()),
                (*tensors, *chain(*notes.items())))


def save_file(tensors, filename, metadata=None):
    """Write tensors by name; the file is the old one or all of this.

    Tensors that share memory are refused with a RuntimeError, those
    that are not contiguous are written as if they were.
    """
    _write(os.fspath(filename), tensors, metadata)


def save(tensors, metadata=None):
    """What save_file would write, as bytes."""
    return _write(None, tensors, metadata)


def _place(x):
    return (x.data_ptr(), *x.shape, *x.stride())


def save_model(model, filename, metadata=None, force_contiguous=True):
    """Write the state of a module, a shared tensor under one name."""
    kept, notes, seen = {}, dict(metadata or {}), {}
    for name, x in model.state_dict().items():
        first = seen.setdefault(_place(x), name)
        if first == name or x.numel() == 0:
            kept[name] = x
        else:
            notes.setdefault(name, first)
    save_file(kept, filename, notes or None)

# saving-more: functions that read files of tensors
def load_file(filename, device="cpu", *, backend="mmap"):
    """All tensors of a file, by name."""
    with safe_open(filename, "pt", device, backend=backend) as f:
        return f.get_tensors()


def load(data):
    """The tensors of a file whose bytes are given, by name."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("load: expected bytes, got "
                        f"{type(data).__name__}")
    data = bytes(data)
    file, index, _ = _ask(_C._safetensors_open, data, False)
    return {name: _ask(_C._safetensors_get, file, name)
            for name in index}


def load_model(model, filename, strict=True, device="cpu", *,
               backend="mmap"):
    """Read the state of a module; (missing, unexpected) names."""
    state = load_file(filename, device, backend=backend)
    own = model.state_dict()
    known = {_place(own[name]) for name in own.keys() & state.keys()}
    for name in own.keys() - state.keys():
        if _place(own[name]) in known:
            state[name] = own[name]
    return model.load_state_dict(state, strict)
