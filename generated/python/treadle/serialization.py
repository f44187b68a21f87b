# SPDX-License-Identifier: MIT
# Tangled from the chapter "porting": edit that, not this file.
# needs: exchange
"""Anything of Python, with its tensors, in a file."""
import contextlib
import functools
import os
import pickle
from . import _C
from ._exchange import _storage_of_bytes


# porting: function save
def save(obj, f, pickle_module=pickle, pickle_protocol=4,
         _use_new_zipfile_serialization=True):
    """Write obj, with all its tensors, to a path or an open file.

    A path holds what it held before or all of obj, never a part.
    """
    if hasattr(f, "write"):
        return pickle_module.dump(obj, f, pickle_protocol)
    path = os.path.abspath(f)
    new = f"{path}.{os.getpid()}.new"
    try:
        with open(new, "wb") as file:
            pickle_module.dump(obj, file, pickle_protocol)
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


# porting: class _Unpickler
_SAFE = {"collections": "OrderedDict", "treadle": "Tensor Size",
         "builtins": "set frozenset bytearray complex",
         "treadle._tensor": "device", "treadle.nn.module": "Parameter",
         "treadle._exchange": "_rebuild _storage_of_bytes"}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, place, safe, **options):
        super().__init__(file, **options)
        self.place, self.safe = place, safe

    def find_class(self, module, name):
        if self.safe and not (
                name in _SAFE.get(module, "").split()
                or module == "treadle"
                and isinstance(getattr(_C, name, None), _C.dtype)):
            raise pickle.UnpicklingError(
                f"weights_only is set, and the file asks for {module}."
                f"{name}, which is neither a tensor nor a container")
        found = super().find_class(module, name)
        return functools.partial(self.place, found) \
            if found is _storage_of_bytes else found


# porting: function load
def load(f, map_location=None, pickle_module=None, *,
         weights_only=False, **pickle_load_args):
    """What save() wrote to a path or an open file.

    map_location says where tensors go: a device, a dictionary from
    devices to devices, or a function (storage, device) -> storage.  A
    file can run any program, unless weights_only is set.
    """
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return load(file, map_location, pickle_module,
                        weights_only=weights_only, **pickle_load_args)

    def place(rebuild, data, device):
        if callable(map_location):
            return map_location(rebuild(data, "cpu"), device) \
                or rebuild(data, device)
        there = map_location.get(device, device) \
            if isinstance(map_location, dict) else map_location
        return rebuild(data, str(there or device))
    try:
        if pickle_module is not None:
            return pickle_module.load(f, **pickle_load_args)
        return _Unpickler(f, place, weights_only,
                          **pickle_load_args).load()
    except (pickle.UnpicklingError, EOFError, UnicodeDecodeError,
            IndexError, KeyError, AttributeError) as error:
        name = getattr(f, "name", "the file")
        raise RuntimeError(f"load: {name} is no file of treadle.save: "
                           f"{error}") from error
