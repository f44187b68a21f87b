# SPDX-License-Identifier: MIT
# Tangled from the chapter "functional": edit that, not this file.
"""Functions of functions: grad, vjp, jvp, Jacobians, Hessians."""
import copy
import functools
from . import _C, Tensor
from ._forms import _spread
from ._grad_mode import enable_grad, is_grad_enabled
from .autograd import _filled
from .autograd.functional import columns, fresh, pull, push, rows
# functional: functions that walk over trees of tensors


def _leaves(tree):
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (tuple, list)):
        return [tree]
    return [leaf for branch in tree for leaf in _leaves(branch)]


def _map(function, tree):
    """A tree of this form with what the function makes of leaves."""
    if isinstance(tree, dict):
        made = copy.copy(tree)
        made.update((k, _map(function, v)) for k, v in tree.items())
        return made
    if isinstance(tree, (tuple, list)):
        made = [_map(function, branch) for branch in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") \
            else type(tree)(made)
    return function(tree)


def _rebuild(tree, made):
    made = iter(_filled(made, _leaves(tree)))
    return _map(lambda leaf: next(made), tree)
# functional: function begin of a level


def _begin(func, args, argnums, has_aux=False, named={}):
    """Call func with fresh inputs: inputs, out, beyond, results."""
    outside = is_grad_enabled()
    args, many = list(args), isinstance(argnums, (tuple, list))
    numbers = argnums if many else (argnums,)
    # functional: refuse numbers of arguments that are not there
    for k in numbers:
        if not -len(args) <= k < len(args):
            raise RuntimeError(f"Got argnum={k}, but only {len(args)} "
                               "positional inputs")
    chosen = _map(lambda x: fresh(x, outside),
                  tuple(args[k] for k in numbers))
    for k, x in zip(numbers, chosen):
        args[k] = x
    with enable_grad():
        made = func(*args, **named)
    if has_aux and not (isinstance(made, tuple) and len(made) == 2):
        raise RuntimeError("with has_aux, f must return a tuple "
                           "(output, aux)")
    out = made[0] if has_aux else made
    for o in _leaves(out):
        if not isinstance(o, Tensor):
            raise RuntimeError("Expected f to return only tensors, got "
                               f"unsupported type {type(o)}")
    beyond = outside and _C._leads_beyond(tuple(_leaves(out)),
                                          tuple(_leaves(chosen)))
    # functional: cut the results off from our inputs
    results = made if beyond else _map(
        lambda x: x.detach() if isinstance(x, Tensor) else x, made)
    results = tuple(results) if has_aux else (results,)
    return chosen if many else chosen[0], out, beyond, results
# functional: functions that transform functions


def _slope(outs, ins, create):
    return [pull(outs, ins, [_C.ones_like(outs[0])], create)]


def _derived(blocks, func, argnums, has_aux, valued=False):
    @functools.wraps(func)
    def wrapper(*args, **named):
        chosen, out, beyond, results = _begin(
            func, args, argnums, has_aux, named)
        if blocks is _slope and getattr(out, "ndim", None) != 0:
            raise RuntimeError(
                "Expected f(*args) to return a scalar tensor, got "
                + str(getattr(out, "shape", type(out))))
        made = blocks(_leaves(out), _leaves(chosen), beyond)
        made = _rebuild(out, [_rebuild(chosen, row) for row in made])
        if valued:
            return made, results if has_aux else results[0]
        return (made, results[1]) if has_aux else made
    return wrapper


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives (gradient, value) of func."""
    return _derived(_slope, func, argnums, has_aux, True)


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of func."""
    return _derived(_slope, func, argnums, has_aux)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that gives the Jacobian of func, by rows."""
    return _derived(rows, func, argnums, has_aux)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of func, by columns."""
    return _derived(columns, func, argnums, has_aux)


def hessian(func, argnums=0):
    """A function that gives the Hessian of func."""
    return jacfwd(jacrev(func, argnums), argnums)


def vjp(func, *primals, has_aux=False):
    """(output, function of cotangents that pulls them back)."""
    chosen, out, beyond, results = _begin(
        func, primals, (*range(len(primals)),), has_aux)
    outs, ins = _leaves(out), _leaves(chosen)

    def pull_back(cotangents, retain_graph=True, create_graph=None):
        seeds = _leaves(cotangents)
        if len(seeds) != len(outs):
            raise RuntimeError(f"Expected {len(outs)} cotangents, one "
                               f"for each output, got {len(seeds)}")
        record = is_grad_enabled() and (
            beyond or any(s.requires_grad for s in seeds))
        got = _rebuild(chosen, pull(outs, ins, seeds, record))
        return got[0] if len(got) == 1 else got

    return results[0], pull_back, *results[1:]


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(output, the Jacobian at primals times tangents)."""
    for name, x in (("primals", primals), ("tangents", tangents)):
        if not isinstance(x, tuple):
            raise RuntimeError(f"jvp: expected {name} to be a tuple, "
                               f"got {type(x)}")
    chosen, out, beyond, results = _begin(
        func, primals, (*range(len(primals)),), has_aux)
    outs, along = _leaves(out), _leaves(tangents)
    if len(along) != len(_leaves(chosen)):
        raise RuntimeError("jvp: expected primals and tangents of the "
                           "same structure")
    record = is_grad_enabled() and (
        beyond or any(t.requires_grad for t in along))
    got = push(outs, _leaves(chosen), along, record)
    if strict and None in got:
        raise RuntimeError("jvp: an output does not depend on any "
                           "input")
    return results[0], _rebuild(out, got), *results[1:]


def functional_call(module, parameter_and_buffer_dicts, args=None,
                    kwargs=None, *, tie_weights=True, strict=False):
    """module(*args) with the tensors of a dictionary as its own.

    A tensor that the module has under several names is replaced under
    all of them if tie_weights; strict wants one for each of its names.
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        given = {k: x for part in given for k, x in part.items()}
    own = dict(p for kind in ("_parameters", "_buffers")
               for p in module._named(kind, "", True, once=False))
    if tie_weights:
        new = {id(own[k]): x for k, x in given.items() if k in own}
        given = {**{k: new[id(x)] for k, x in own.items()
                    if id(x) in new}, **given}
    missing = [k for k in own if k not in given]
    if strict and missing:
        raise RuntimeError("functional_call: missing keys: "
                           + ", ".join(missing))
    args = args if isinstance(args, tuple) else \
        () if args is None else (args,)
    kept = []
    try:
        for name, x in given.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            home = owner._parameters if last in owner._parameters \
                else owner._buffers
            kept.append((home, last, home[last]))
            home[last] = x
        return module(*args, **(kwargs or {}))
    finally:
        for home, last, x in reversed(kept):
            home[last] = x
# porting: functions that transform functions


def vmap(func, in_dims=0, out_dims=0, randomness="different"):
    """func for every slice of its arguments, the results stacked.

    This is a loop, one call for each slice.  Random numbers differ from
    slice to slice, or not, if randomness is "same", and are refused if
    it is "error".
    """
    if randomness not in ("different", "same", "error"):
        raise ValueError("Only allowed values for randomness are "
            f"'error', 'different', or 'same'. Got {randomness}")

    @functools.wraps(func)
    def each(*args, **named):
        dims = _spread(in_dims, len(args))
        if len(dims) != len(args) or any(
                d is not None and not (isinstance(x, Tensor)
                                       and -x.ndim <= d < x.ndim)
                for x, d in zip(args, dims)):
            raise ValueError("vmap: in_dims must name a dimension of "
                             "each tensor, and None for the rest")
        sizes = {x.shape[d] for x, d in zip(args, dims)
                 if d is not None}
        if len(sizes) != 1 or sizes == {0}:
            raise ValueError("vmap: expected one size above 0 to map "
                             f"over, got {sorted(sizes)}")
        state, results = _C._random_state(None), []
        for i in range(*sizes):
            if randomness == "same":
                _C._random_state(None, *state)
            results.append(func(*(
                x if d is None else x.select(d, i)
                for x, d in zip(args, dims)), **named))
        if randomness == "error" and state != _C._random_state(None):
            raise RuntimeError("vmap: called random operation while in "
                               "randomness error mode")
        if not isinstance(results[0], tuple):
            return _C.stack(results, out_dims)
        return tuple(map(_C.stack, map(list, zip(*results)),
                         _spread(out_dims, len(results[0]))))
    return each
