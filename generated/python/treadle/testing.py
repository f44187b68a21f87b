# SPDX-License-Identifier: MIT
# Tangled from the chapter "porting": edit that, not this file.
# needs: vocabulary
"""Comparisons that say where two results differ."""
from . import (_C, Tensor, as_tensor as _as_tensor,
               unravel_index as _unravel)

# porting: function assert_close
_BOUNDS = {_C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5),
           _C.float32: (1.3e-6, 1e-5), _C.float64: (1e-7, 1e-7)}


def assert_close(actual, expected, *, rtol=None, atol=None,
                 equal_nan=False, check_device=True, check_dtype=True,
                 msg=None, **_):
    """Raise AssertionError unless both are close, item by item."""
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: give both rtol and atol, or "
                         "neither")
    how = dict(rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg,
               check_device=check_device, check_dtype=check_dtype)
    if isinstance(expected, (dict, list, tuple)):
        keys = expected if isinstance(expected, dict) \
            else range(len(expected))
        if len(actual) != len(expected) or isinstance(expected, dict) \
                and actual.keys() != expected.keys():
            raise AssertionError(msg or "The items are others: "
                                 f"{actual!r} and {expected!r}")
        for key in keys:
            assert_close(actual[key], expected[key], **how)
        return
    if not isinstance(expected, Tensor):
        check_dtype = False
    a, b = _as_tensor(actual), _as_tensor(expected)
    for what in ["shape"] + ["dtype"] * check_dtype \
            + ["device"] * check_device:
        x, y = getattr(a, what), getattr(b, what)
        if x != y:
            raise AssertionError(msg or f"The values for attribute "
                                 f"{what!r} do not match: {x} != {y}.")
    # porting: compare element by element and report
    if rtol is None:
        rtol, atol = map(max, zip(*(_BOUNDS.get(x.dtype, (0, 0))
                                    for x in (a, b))))
    x, y = (v.detach().cpu().double() for v in (a, b))
    off = (x - y).abs()
    close = (a == b).cpu() if rtol == atol == 0 \
        else _C.isclose(x, y, rtol, atol, equal_nan)
    if close.all():
        return
    wrong = close.logical_not()
    lines = [f"Mismatched elements: {int(wrong.sum())} / {a.numel()}"]
    for name, size, most in (("absolute", off, atol),
                             ("relative", off / y.abs(), rtol)):
        size = _C.where(wrong, size, -1.0)
        place = (*map(int, _unravel(size.argmax(), a.shape)),)
        lines.append(f"Greatest {name} difference: "
                     f"{size.max().item()} at index {place} (up to "
                     f"{most} allowed)")
    raise AssertionError(msg or "Tensors are not close!\n\n"
                         + "\n".join(lines))
