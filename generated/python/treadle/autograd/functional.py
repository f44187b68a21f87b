# SPDX-License-Identifier: MIT
# Tangled from the chapter "functional": edit that, not this file.
"""Jacobians, Hessians and their products with vectors."""
from .. import _C, Tensor, stack, zeros_like
from .._tensor import _choose
from . import _filled, enable_grad, grad
# functional: functions pull and push


def fresh(x, keep):
    """x as an input of its own; with keep, recorded if x is."""
    if not isinstance(x, Tensor):
        raise TypeError("expected Tensors as inputs, not "
                        f"{type(x).__name__}")
    if keep and x.requires_grad:
        return x.view(x.shape)
    return x.detach().requires_grad_()


def pull(outs, ins, seeds, create):
    """Seeds at the outputs times the Jacobian, or None, per input."""
    used = [(o, s) for o, s in zip(outs, seeds)
            if o is not None and o.requires_grad]
    if not used:
        return [None] * len(ins)
    outs, seeds = zip(*used)
    return grad(outs, ins, seeds, retain_graph=True,
                create_graph=create, allow_unused=True)


def lift(outs, ins):
    """Dummies at the outputs, and their pull, recorded."""
    dummies = [zeros_like(o).requires_grad_() for o in outs]
    return dummies, pull(outs, ins, dummies, True)


def push(outs, ins, tangents, create):
    """The Jacobian times directions at the inputs, or None."""
    dummies, pulled = lift(outs, ins)
    return pull(pulled, dummies, tangents, create)
# functional: functions rows and columns


def _units(x):
    """Tensors like x with a one in each place in turn."""
    for i in range(x.numel()):
        unit = zeros_like(x).flatten()
        unit[i] = 1
        yield unit.reshape(x.shape)


def _joined(parts, like, shape):
    parts = _filled(parts, [like] * len(parts))
    if not parts:
        return _C.zeros(shape, dtype=like.dtype, device=like.device)
    return stack(parts, 0).reshape(shape)


def rows(outs, ins, create, strict=False):
    """For each output its Jacobian by each input, row by row."""
    made = []
    for i, out in enumerate(outs):
        pulled = [pull([out], ins, [v], create) for v in _units(out)]
        for row in pulled if strict else ():
            if None in row:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is "
                    f"independent of input {row.index(None)}")
        made.append([_joined(parts, x, (*out.shape, *x.shape))
                     for x, *parts in zip(ins, *pulled)])
    return made


def columns(outs, ins, create, strict=False):
    """For each output its Jacobian by each input, by columns."""
    dummies, pulled = lift(outs, ins)
    made = rows(_filled(pulled, ins), dummies, create)
    return [[made[k][o].movedim([*range(x.ndim)], [*range(-x.ndim, 0)])
             for k, x in enumerate(ins)] for o in range(len(outs))]
# functional: functions that check what a function is given


def _as_tuple(name, what, x):
    """(x as a tuple, whether it is one), or TypeError."""
    many = isinstance(x, tuple)
    for item in x if many else (x,):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"The {what} given to {name} must be a Tensor or a "
                f"tuple of Tensors, not {type(item if many else x)}")
    return x if many else (x,), many


def _call(name, func, inputs, create, strict):
    """Run func on fresh inputs: (ins, tuple?), (outs, tuple?)."""
    ins, many = _as_tuple(name, "inputs", inputs)
    ins = tuple(fresh(x, create) for x in ins)
    with enable_grad():
        out = func(*ins)
    outs, several = _as_tuple(
        name, "outputs of the user-provided function", out)
    for i, o in enumerate(outs):
        if strict and not o.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not "
                "require gradients, as strict wants")
    return (ins, many), (outs, several)


def _vector(name, v, like, tuple_like):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None for one element")
        return [_C.ones_like(like[0])]
    v, many = _as_tuple(name, "v", v)
    if len(v) != len(like) or many != tuple_like:
        raise RuntimeError("v is a tuple of invalid length: should be "
                           f"{len(like)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.shape != b.shape:
            entry = f"Entry {i} in v" if many else "v"
            raise RuntimeError(f"{entry} has invalid size: should be "
                               f"{b.shape} but got {a.shape}.")
    return v


def _answer(got, like, many, create, strict):
    for i, g in enumerate(got):
        if strict and (g is None or create and not g.requires_grad):
            raise RuntimeError("The output of the user-provided "
                               f"function is independent of input {i}")
    got = tuple(g if create else g.detach()
                for g in _filled(got, like))
    return got if many else got[0]
# functional: functions of autograd.functional


def _product(name, sentence, times, given=0, found=0):
    """given: v belongs to the inputs (0) or results (1); found: ..."""
    def product(func, inputs, v=None, create_graph=False,
                strict=False):
        sides = _call(name, _single(name, func) if times is _curve
                      else func, inputs, create_graph, strict)
        (ins, _), (outs, several) = sides
        v = _vector(name, v, *sides[given])
        got = times(outs, ins, v, create_graph)
        return (_answer(outs, outs, several, create_graph, False),
                _answer(got, *sides[found], create_graph, strict))
    product.__name__ = product.__qualname__ = name
    product.__doc__ = sentence
    return product


vjp = _product(
    "vjp", """(outputs, v times the Jacobian of func at inputs).""",
    pull, given=1)
jvp = _product(
    "jvp", """(outputs, the Jacobian of func at inputs times v).""",
    push, found=1)


def jacobian(func, inputs, create_graph=False, strict=False,
             vectorize=False, strategy="reverse-mode"):
    """The Jacobian of func at inputs: J[output][input]."""
    (ins, many), (outs, several) = _call("jacobian", func, inputs,
                                         create_graph, strict)
    blocks = _choose("strategy", strategy, {
        "forward-mode": columns, "reverse-mode": rows}, RuntimeError)
    made = tuple(_answer(row, row, many, create_graph, strict) for row
                 in blocks(outs, ins, create_graph, strict))
    return made if several else made[0]


def _single(name, func):
    def single(*inputs):
        out = func(*inputs)
        if not isinstance(out, Tensor) or out.numel() != 1:
            raise RuntimeError(f"The function given to {name} should "
                               "return a Tensor of one element")
        return out.reshape(())
    return single


def hessian(func, inputs, create_graph=False, strict=False,
            vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of func, a function with one number as result."""
    def gradient(*ins):
        return jacobian(_single("hessian", func),
                        ins if isinstance(inputs, tuple) else ins[0],
                        create_graph=True)
    return jacobian(gradient, inputs, create_graph, strict, vectorize,
                    outer_jacobian_strategy)


def _curve(outs, ins, v, create):
    slope = pull(outs, ins, [_C.ones_like(outs[0])], True)
    return pull(slope, ins, v, create)


vhp = _product(
    "vhp", """(output, v times the Hessian of func at inputs).""",
    _curve)
hvp = _product(
    "hvp", """(output, the Hessian of func at inputs times v).""",
    _curve)
