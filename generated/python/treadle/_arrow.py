# SPDX-License-Identifier: MIT
# Tangled from the chapter "arrow": edit that, not this file.
"""Columns of tables, and arrays that describe themselves."""
from . import _C
from ._C import Tensor
from ._tensor import _give_methods
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
        if name is not None and name not in names:
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
        return _C._to_arrow(tuple(self.columns),
                            list(self.columns.values()))


def _of_others(data):
    """A Tensor or NumPy array for another library's array, or None."""
    if hasattr(data, "__arrow_c_array__"):
        found = from_arrow(data)
        return found if isinstance(found, Tensor) else None
    if hasattr(data, "__array__") or hasattr(data,
                                             "__array_interface__"):
        import numpy
        return numpy.asarray(data)
    return None


Tensor._of_others = staticmethod(_of_others)


class _Methods:
    # arrow: methods that lend columns
    def __arrow_c_array__(self, requested_schema=None):
        """A pair of capsules, schema and array, on this memory."""
        return _C._to_arrow(None, [self])

    @property
    def __array_interface__(self):
        """Address, shape, type and strides, version 3."""
        try:
            return self.numpy().__array_interface__
        except (BufferError, RuntimeError, TypeError) as error:
            raise AttributeError(f"__array_interface__: {error}") from None


_give_methods(_Methods)
