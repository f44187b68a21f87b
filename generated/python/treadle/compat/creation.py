# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Second ways to make tensors."""
from .. import _C, Tensor
from .._exchange import from_dlpack
from .spelling import _like, randint as _randint
# dialect: names that make tensors


def asarray(obj, *, dtype=None, device=None, copy=None,
            requires_grad=False):
    """obj as a tensor; shares its memory unless it must not or cannot.

    copy=True always copies; copy=False is a ValueError where it must.
    """
    lent = True
    try:
        if isinstance(obj, Tensor):
            x = obj if requires_grad else obj.detach()
        elif hasattr(obj, "__dlpack__"):
            x = from_dlpack(obj, copy=False)
        else:
            x = _C.from_numpy(obj)
    except (TypeError, ValueError, BufferError):
        x, lent = _C.tensor(obj), False
    y = x.to(dtype=dtype, device=device)
    lent = lent and y is x
    if copy is False and not lent:
        raise ValueError("the data must be copied, and "
                         "copy is False")
    y = y.clone() if copy and lent else y
    return y.requires_grad_(requires_grad)


def frombuffer(buffer, *, dtype, count=-1, offset=0,
               requires_grad=False):
    """count elements of dtype at byte `offset` of a buffer."""
    data, size = memoryview(buffer).cast("B"), dtype.itemsize
    rest = len(data) - offset
    n = rest // size if count < 0 else count
    if count == 0 or not 0 < rest <= len(data) or n * size > rest \
            or count < 0 and rest % size:
        raise ValueError(f"{'all' if count < 0 else count} items "
                         f"of {size} bytes at {offset} of "
                         f"{len(data)} bytes")
    data = data[offset:offset + n * size]
    x = _C.tensor(data) if data.readonly else _C.from_numpy(data)
    x = x if x.data_ptr() % size == 0 else x.clone()
    if dtype is _C.bool and x.max() > 1:
        x = x.clamp(max=1)
    return _C._over_storage(x, dtype, (n,), (1,), 0) \
        .requires_grad_(requires_grad)


def randint_like(input, low, high=None, **named):
    """Integers of [low, high) in the shape of input."""
    return _like(_randint)(input, low, high, input.shape, **named)


def normal(mean, std=1.0, size=None, *, generator=None, **named):
    """Normal numbers, of given size or in the shape of mean and std."""
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"std = {std} is negative")
    if size is not None:
        return _C.randn(size, generator=generator, **named) * std + mean
    return _C.randn_like(mean + std, generator=generator) * std + mean


def scalar_tensor(s, **named):
    """A tensor of rank 0."""
    named["dtype"] = named.get("dtype") or _C._default_dtype(None)
    return _C.tensor(s, **named)


def logspace(start, end, steps, base=10.0, **named):
    """Powers of base whose exponents are evenly spaced."""
    wide = _C.linspace(start, end, steps, dtype=_C.float64)
    named["dtype"] = named.get("dtype") or _C._default_dtype(None)
    grad = named.pop("requires_grad", False)
    exact = base ** wide
    if not named["dtype"].is_floating_point:
        _C.tensor(exact[:1].tolist() + exact[-1:].tolist(), **named)
    return exact.to(**named).requires_grad_(grad)
