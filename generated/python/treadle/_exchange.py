# SPDX-License-Identifier: MIT
# Tangled from the chapter "exchange": edit that, not this file.
"""Trading with NumPy and others, and names that programs use."""
from copy import deepcopy as _deepcopy
from weakref import WeakValueDictionary as _WeakValues
from . import _C, Tensor
from ._tensor import _give_methods
# exchange: functions that borrow memory
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of ext_tensor, or a copy if it must be.

    ext_tensor has a method __dlpack__, or is a DLPack capsule.
    """
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = ext_tensor.__dlpack__()
    x = _C._from_dlpack(capsule, copy)
    return x if device is None else x.to(device)


def to_dlpack(tensor):
    """A DLPack capsule of the old form on the memory of tensor."""
    return tensor.__dlpack__()
# exchange: class UntypedStorage
class UntypedStorage:
    """The bytes that a tensor shares with its views."""
    __slots__ = ("_bytes", "__weakref__")

    def data_ptr(self):
        """The address of the first byte."""
        return self._bytes.data_ptr()

    def nbytes(self):
        """How many bytes there are."""
        return self._bytes.numel()

    __len__ = size = nbytes

    @property
    def device(self):
        """Where the bytes are."""
        return self._bytes.device

    def __deepcopy__(self, memo):
        return _storage_over(self._bytes.clone())

    def __reduce__(self):
        return _storage_of_bytes, (bytes(memoryview(self._bytes.cpu())),
                                   str(self.device))


_storages = _WeakValues()


def _storage_over(x):
    """The object for the storage of x, always the same."""
    key, data = _C._storage(x)
    found = _storages.get(key)
    if found is None:
        found = _storages[key] = UntypedStorage()
        found._bytes = data
    return found


def _storage_of_bytes(data, device):
    return _storage_over(_C.tensor(memoryview(data)).to(device))


def _rebuild(cls, storage, dtype, shape, strides, offset,
             requires_grad):
    """The tensor that was pickled or copied, over its storage."""
    x = _C._over_storage(storage._bytes, dtype, shape, strides, offset)
    return Tensor._make_subclass(cls, x, requires_grad)
# arrow: functions that trade columns


def _chunks(source):
    """What source lends: (schema, array) each, at least one."""
    if hasattr(source, "__arrow_c_array__"):
        return [source.__arrow_c_array__()]
    if not hasattr(source, "__arrow_c_stream__"):
        raise TypeError("from_arrow: expected an object with "
                        "__arrow_c_array__ or __arrow_c_stream__, not "
                        f"{type(source).__name__}")
    stream = source.__arrow_c_stream__()
    found = [_C._arrow_next(stream)]
    while found[-1][1] is not None:
        found.append(_C._arrow_next(stream))
    return found[:-1] or found


def from_arrow(source, columns=None, *, fill=None):
    """Tensors over the memory of an Arrow array, batch or table.

    source has a method __arrow_c_array__ or __arrow_c_stream__.  An
    array gives a tensor; a table a dict of them, of all columns or of
    those named; with columns a single name, the tensor of that column.
    Lists of fixed size give [rows, size].

    Bools, columns in several chunks and what has gaps are copied, and
    fill replaces the gaps; without it they raise ValueError.  Other
    types raise NotImplementedError.  Memory of Arrow is meant to be
    constant: write into a clone.
    """
    chunks, names = _chunks(source), []
    while (name := _C._arrow_name(chunks[0][0],
                                  len(names))) is not None:
        names.append(name)

    def column(name):
        if name is not None and names.count(name) != 1:
            raise ValueError(f"from_arrow: no column {name!r}, there "
                             f"are {names}")
        k = -1 if name is None else names.index(name)
        parts = [_C._from_arrow(*pair, k, fill) for pair in chunks]
        return _C.cat(parts, 0) if parts[1:] else parts[0]

    if isinstance(columns, str) or columns is None and not names:
        return column(columns)
    return {name: column(name)
            for name in (names if columns is None else columns)}


class to_arrow:
    """A table that others read: to_arrow({"x": x, "y": y}).

    Tensors of equal length, lent by __arrow_c_stream__; a matrix is a
    column of lists of fixed size.
    """

    def __init__(self, columns):
        self.columns = dict(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return _C._to_arrow(list(self.columns.values()),
                            tuple(self.columns))


def _of_others(data):
    """A Tensor or NumPy array for another library's, or data itself."""
    if hasattr(data, "__arrow_c_array__"):
        found = from_arrow(data)
        return found if isinstance(found, Tensor) else data
    if hasattr(data, "__array__") or hasattr(data,
                                             "__array_interface__"):
        import numpy
        return numpy.asarray(data)
    return data


Tensor._of_others = staticmethod(_of_others)


class _Methods:
    # exchange: methods that lend memory
    def __dlpack_device__(self):
        """(1, 0): the CPU; (2, i): CUDA device i."""
        return (2, self.device.index or 0) if self.is_cuda else (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None,
                   dl_device=None, copy=None):
        """A capsule on this tensor's memory, for from_dlpack."""
        if self.requires_grad:
            raise BufferError("__dlpack__: a tensor that requires grad "
                              "cannot be lent; use x.detach()")
        here = self.__dlpack_device__()
        there = here if dl_device is None else tuple(dl_device)
        if there[0] != 1 or (there != here and copy is False):
            raise BufferError(f"__dlpack__: memory of {self.device} cannot"
                              f" be lent to device {there}; use x.cpu()")
        x = self.clone() if copy and there == here else self.cpu()
        versioned = max_version is not None and max_version[0] >= 1
        return _C._to_dlpack(x, versioned, x is not self)

    # exchange: methods that copy
    def untyped_storage(self):
        """The storage, shared by all views of the same memory."""
        return _storage_over(self)

    def __reduce_ex__(self, protocol):
        return _rebuild, (self.__class__, _storage_over(self), self.dtype,
                          tuple(self.shape), self.stride(),
                          self.storage_offset(), self.requires_grad), \
            self.__dict__ or None

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError("deepcopy: only leaves can be copied; "
                               "use x.detach()")
        if id(self) not in memo:
            storage = _deepcopy(_storage_over(self), memo)
            copy = memo[id(self)] = _rebuild(
                self.__class__, storage, *self.__reduce_ex__(4)[1][2:])
            if self.grad is not None:
                copy.grad = _deepcopy(self.grad.detach(), memo)
            copy.__dict__.update(_deepcopy(self.__dict__, memo))
        return memo[id(self)]

    # arrow: methods that lend columns
    def __arrow_c_array__(self, requested_schema=None):
        """A pair of capsules, schema and array, on this memory."""
        return _C._to_arrow([self], ())

    @property
    def __array_interface__(self):
        """Address, shape, type and strides, version 3."""
        try:
            return self.numpy().__array_interface__
        except (BufferError, RuntimeError, TypeError) as error:
            raise AttributeError(f"__array_interface__: {error}") from None


_give_methods(_Methods)
