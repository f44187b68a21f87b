# SPDX-License-Identifier: MIT
# Tangled from the chapter "jit": edit that, not this file.
"""td.jit: functions traced, compiled, and run as programs."""
import functools as _functools
import os as _os
import re as _re
import threading as _threading
import types as _types
import warnings as _warnings
from . import _C
from ._guards import assume as _assume, assuming as _assuming
from ._guards import is_assuming as _is_assuming
from .func import _leaves, _map
from ._grad_mode import no_grad as _no_grad

MOST_PROGRAMS = 8       # of a function, for arguments of one kind
MOST_KINDS = 64         # of arguments of a function


# jit: class record
class record:
    """Writes down what this thread computes inside `with`.

    Afterwards tape.instructions is a list of texts, one a step, and
    tape.shapes maps the names of values to their shapes.
    """
    _text = ""

    def __enter__(self):
        _C._trace_begin(False)
        return self

    def __exit__(self, kind, *exception):
        if kind is not None:
            _C._trace_end(None)
        else:
            self._text = _C._program_text(_C._trace_end(()))

    @property
    def instructions(self):
        """The steps, in order."""
        return [line for line in self._text.splitlines()
                if line.startswith("%")]

    @property
    def shapes(self):
        """{'%3': (16, 10), ...} for every value."""
        found = {}
        for line in self._text.splitlines():
            names, _, types = line.rpartition(" : ")
            shapes = _re.findall(r"\[([\d, ]*)\]", types)
            for name, shape in zip(_re.findall(
                    r"%\d+", names.split(" = ")[0]), shapes):
                found[name] = tuple(int(n) for n in shape.split(",")
                                    if n.strip())
        return found

    def __str__(self):
        return self._text


# jit: functions that take arguments apart
def _flatten(x, leaves):
    """What x is, as a key, with its tensors appended to leaves."""
    if isinstance(x, _C.Tensor):
        if x.requires_grad:
            raise RuntimeError("jit: an argument requires grad, which "
                               "a program would lose; pass x.detach()")
        leaves.append(x)
        first = next(k for k, y in enumerate(leaves) if y is x)
        return "tensor", first, tuple(x.shape), x.dtype, str(x.device)
    if isinstance(x, (list, tuple)):
        return type(x), tuple(_flatten(item, leaves) for item in x)
    if isinstance(x, dict):
        return dict, tuple((k, _flatten(v, leaves))
                           for k, v in x.items())
    try:
        hash(x)
    except TypeError:
        raise TypeError(f"jit: an argument of type {type(x).__name__} "
                        "is neither a tensor nor hashable") from None
    return type(x), repr(x) if isinstance(x, float) else x


def _tensors(tree):
    return [x for x in _leaves(tree) if isinstance(x, _C.Tensor)]


def _put(tensors, tree):
    """tree with each of its tensors replaced by the next of these."""
    return _map(lambda x: next(tensors) if isinstance(x, _C.Tensor)
                else x, tree)


# jit: class _Program
_one_trace = _threading.RLock()
_os.register_at_fork(after_in_child=_one_trace._at_fork_reinit)


def _once(tensors):
    """A tuple of these, each of them once."""
    return tuple({id(x): x for x in tensors}.values())


class _Program:
    """A traced and compiled program; call it with tensors."""

    def __init__(self, function, inputs, backend):
        with _one_trace:
            outputs = self._trace(function, inputs)
        self.outputs = len(outputs)
        self.text = _C._program_text(self.program)
        self.code, self.backend, note = _C._compile(self.program,
                                                    backend)
        if note:
            _warnings.warn(f"jit: using {self.backend}: {note}",
                           RuntimeWarning, stacklevel=4)

    def _trace(self, function, inputs):
        _C._trace_begin(True)
        try:
            fresh = {id(x): _C._trace_input(x) for x in _once(inputs)}
            with _assuming() as self.assumed:
                self.result = function([fresh[id(x)] for x in inputs])
            flat = _tensors(self.result)
            given = {id(x) for x in fresh.values()}
            outputs = _once(x for x in flat if id(x) not in given)
            self.recorded = [x.requires_grad for x in outputs]
            names = [id(x) for x in (*fresh.values(), *outputs)]
            self.places = [names.index(id(x)) for x in flat]
            self.program = _C._trace_end(outputs)
        except BaseException:
            _C._trace_end(None)
            raise
        return outputs

# jit: further methods of _Program
    def holds(self):
        """Whether all that was taken for granted is still so."""
        return _C._program_fits(self.program, None) and all(
            read() == value for read, value in self.assumed)

    def __call__(self, *inputs):
        if not self.holds():
            raise RuntimeError("jit: a parameter, the mode of a module "
                               "or an option of an optimiser has "
                               "changed since this program was "
                               "compiled; compile it again")
        return self.run(*inputs)

    def can_run(self, *inputs):
        """Whether these share no memory that the program writes."""
        return _C._program_fits(self.program, _once(inputs))

    def run(self, *inputs):
        for read, _ in self.assumed:
            _assume(read)
        given = _once(inputs)
        made = _C._execute(self.code, given, self.outputs)
        if any(self.recorded) and _C.is_grad_enabled():
            _forbid(y for y, r in zip(made, self.recorded) if r)
        return _put(((given + made)[k] for k in self.places),
                    self.result)


def _forbid(results):
    leaf = _C.empty((), requires_grad=True)
    _C._record("jit", (leaf,), tuple(results), (), _has_no_history)


def _has_no_history(*unused):
    raise RuntimeError("jit: a compiled function records no history, "
                       "so no gradient can go back through its result; "
                       "call backward() inside it")


# jit: class _Compiled
class _Compiled:
    """A function that is traced, compiled, and run as a program."""

    def __init__(self, function, backend):
        self.function, self.backend = function, backend
        self.programs = {}              # the last used stands last
        self.name = getattr(function, "__name__", "a function")
        _functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        if _is_assuming():
            return self.function(*args, **kwargs)
        leaves = []
        key = _flatten((args, kwargs), leaves)
        made = self.programs.get(key)
        if made is None:
            with _one_trace:
                result = self.function(*args, **kwargs)
            self._remember(key, self.programs.get(key, []))
            return result
        self._remember(key, made)
        program = self._held(made)
        if program is None:
            with _one_trace:
                program = self._held(made) or self._compile(
                    args, kwargs, leaves, made)
        if not program.can_run(*leaves):
            return self.function(*args, **kwargs)
        return program.run(*leaves)

# jit: further methods of _Compiled
    def _held(self, made):
        return next((p for p in list(made) if p.holds()), None)

    def _compile(self, args, kwargs, leaves, made):
        program = _Program(
            lambda fresh: self._call(args, kwargs, iter(fresh)),
            leaves, self.backend)
        made.append(program)
        self._forget_old(made)
        return program

    def _remember(self, key, made):
        self.programs.pop(key, None)
        self.programs[key] = made
        if len(self.programs) > MOST_KINDS:
            self.programs.pop(next(iter(self.programs)), None)
            _warnings.warn(f"jit: {self.name} is called with ever new "
                           "numbers or shapes, each of which needs a "
                           "program; pass numbers as tensors",
                           RuntimeWarning, stacklevel=4)

    def __get__(self, instance, owner=None):
        return self if instance is None \
            else _types.MethodType(self, instance)

    def _forget_old(self, made):
        if len(made) > MOST_PROGRAMS:
            del made[0]
            _warnings.warn(f"jit: {self.name} is compiled again and "
                           "again, since options of an optimiser, "
                           "the mode of a module or its parameters "
                           "keep changing",
                           RuntimeWarning, stacklevel=4)

    def _call(self, args, kwargs, fresh):
        args, kwargs = _put(fresh, (args, kwargs))
        return self.function(*args, **kwargs)


# jit: class _Jit
class _Jit:
    """Compile a function: @td.jit, or td.jit(f, backend="c").

    The first call with arguments of new shapes, dtypes or values runs
    as ever, the second is traced and compiled, later ones run the
    program.  It may use modules, backward() and optimisers.  Not seen:
    a branch on the value of a tensor (an error), random numbers (an
    error), and an attribute of your own that changes.  Every new
    number makes a program; the 64 last used are kept, so pass a number
    that changes as a tensor.  p.grad is left as eagerly; backward()
    through a result is an error, as a program records no history.
    Arguments that share memory the function writes to run eagerly.
    """
    record = record

    def __call__(self, function=None, *, backend=None):
        if function is None:
            return lambda f: _Compiled(f, backend)
        return _Compiled(function, backend)

    def compile(self, module, shapes, dtype=None, backend=None):
        """The forward pass of a module, for inputs of these shapes."""
        if not isinstance(shapes, (list, tuple)):
            raise TypeError("jit.compile: shapes must be a shape or a "
                            f"list of shapes, not {shapes!r}")
        if shapes and not isinstance(shapes[0], (list, tuple)):
            shapes = [shapes]
        like = [_C.empty(tuple(shape), dtype=dtype) for shape in shapes]

        def forward(inputs):
            with _no_grad():
                return module(*inputs)
        return _Program(forward, like, backend)

    def dump(self, compiled):
        """The programs of a compiled function or module, as text."""
        if isinstance(compiled, _Compiled):
            return "\n".join(p.text for made in
                             compiled.programs.values() for p in made)
        if isinstance(compiled, _Program):
            return compiled.text
        raise TypeError("dump: expected a compiled function or module, "
                        f"not {type(compiled).__name__}")


jit = _Jit()
