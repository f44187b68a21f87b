# SPDX-License-Identifier: MIT
# Tangled from the chapter "jit": edit that, not this file.
"""td.jit: functions traced, compiled, and run as programs."""
import functools as _functools
import os as _os
import re as _re
import threading as _threading
import types as _types
import warnings as _warnings
from itertools import repeat as _repeat
from . import _C
from ._guards import assume as _assume, assumed as _assumed
from .func import _leaves, _map
from ._grad_mode import (
    no_grad as _no_grad, settings as _settings, under as _under)

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
        return _re.findall("^%.*", self._text, _re.M)

    @property
    def shapes(self):
        """{'%3': (16, 10), ...} for every value."""
        found = {}
        for names, types in _re.findall(
                "^(.*?)(?: = .*)? : (.*)$", self._text, _re.M):
            for name, shape in zip(_re.findall(r"%\d+", names),
                                   _re.findall(r"\[(.*?)\]", types)):
                found[name] = tuple(map(int, _re.findall(r"\d+",
                                                         shape)))
        return found

    def __str__(self):
        return self._text


# jit: function _put
def _put(old, new, tree):
    """tree with each of the old tensors replaced by a new one."""
    found = dict(zip(map(id, old), new))
    return _map(lambda x: found.get(id(x), x), tree)


# jit: class _Program
_one_trace = _threading.RLock()
_os.register_at_fork(after_in_child=_one_trace._at_fork_reinit)


class _Program:
    """A traced and compiled program; call it with tensors."""

    def __init__(self, function, inputs, backend, name):
        read = lambda: [setting() for setting in _settings]
        self.assumed = [(read, read())]
        with _one_trace:
            self._trace(function, inputs)
        self.leaf = _C.empty((), requires_grad=True),
        self.text = _C._program_text(self.program)
        self.code, self.backend, note = _under(
            _repeat(None), _C._compile, self.program, backend, name)
        if note:
            _warnings.warn(f"jit: using {self.backend}: {note}",
                           RuntimeWarning, stacklevel=4)

    def _trace(self, function, inputs):
        _C._trace_begin(True)
        outside = _assumed.set(self.assumed)
        try:
            fresh = [*map(_C._trace_input, inputs)]
            self.result = function(fresh)
            self.slots = [*dict.fromkeys(
                x for x in (*fresh, *_leaves(self.result))
                if isinstance(x, _C.Tensor))]
            outputs = self.slots[len(fresh):]
            self.outputs = len(outputs)
            self.recorded = [k for k, x in enumerate(outputs)
                             if x.requires_grad]
            self.program = _C._trace_end(outputs)
        except BaseException:
            _C._trace_end(None)
            raise
        finally:
            _assumed.reset(outside)

# jit: further methods of _Program
    def holds(self):
        """Whether all that was taken for granted is still so."""
        return _C._program_fits(self.program) and all(
            read() == value for read, value in self.assumed)

    def __call__(self, *inputs):
        for read, _ in self.assumed:
            _assume(read)
        if not self.holds():
            raise RuntimeError("jit: a parameter, a mode or an option "
                               "has changed; compile it again")
        return self.run(inputs)

    def run(self, inputs):
        made = _under(_repeat(None), _C._execute, self.code, inputs,
                      self.outputs)
        if self.recorded and _C.is_grad_enabled():
            _C._record("jit", self.leaf,
                       tuple(made[k] for k in self.recorded), (),
                       _has_no_history)
        return _put(self.slots, inputs + made, self.result)


def _has_no_history(*unused):
    raise RuntimeError("jit: a compiled function records no history; "
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
        if _assumed.get() is not None:
            return self.function(*args, **kwargs)
        key, given = _C._take_apart((args, kwargs))
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
                if not self._held(made):
                    self._compile(args, kwargs, given, made)
            program = self._held(made)
        if not program or not _C._program_fits(program.program, given):
            return self.function(*args, **kwargs)
        return program.run(given)

# jit: further methods of _Compiled
    def _held(self, made):
        for program in [*made]:     # others may add to it
            if program.holds():
                return program

    def _compile(self, args, kwargs, given, made):
        def function(fresh):
            new, named = _put(given, fresh, (args, kwargs))
            return self.function(*new, **named)
        program = _Program(function, given, self.backend, self.name)
        made.append(program)
        if len(made) > MOST_PROGRAMS:
            del made[0]
            _warnings.warn(f"jit: {self.name} is compiled again and "
                           "again: parameters, modes or options change",
                           RuntimeWarning, stacklevel=3)

    def _remember(self, key, made):
        self.programs.pop(key, None)
        self.programs[key] = made
        if len(self.programs) > MOST_KINDS:
            self.programs.pop(next(iter(self.programs)), None)
            _warnings.warn(f"jit: {self.name} is called with ever new "
                           "numbers or shapes; pass numbers as tensors",
                           RuntimeWarning, stacklevel=4)

    @property
    def text(self):
        """The programs that have been made."""
        return "\n".join(p.text for made in self.programs.values()
                         for p in made)

    def __get__(self, instance, owner=None):
        return self if instance is None \
            else _types.MethodType(self, instance)



# jit: class _Jit
class _Jit:
    """Compile a function: @td.jit, or td.jit(f, backend="c").

    The first call with arguments of new shapes, dtypes or values runs
    as ever, the second is traced and compiled, later ones run the
    program.  It may use modules, backward() and optimisers.  Not seen:
    a branch on a computed value (an error), random numbers (an error),
    and a variable, a list or an option of a module that changes (its
    parameters, children, hooks and mode are seen).  If it reads a
    weight, w.item(), it runs eagerly once w is another.  Every new
    number makes a program; the 64 last used are kept, so pass a number
    that changes as a tensor.  p.grad is left as eagerly; backward()
    through a result is an error, as a program records no history.
    What shares memory that the function writes to, be it arguments or
    gradients, runs eagerly, and so does an argument with gaps: give
    x.contiguous().  x.data = y is an error in a trace.
    """
    record = record

    def __call__(self, function=None, *, backend=None):
        if function is None:
            return lambda f: _Compiled(f, backend)
        return _Compiled(function, backend)

    def compile(self, module, shapes, dtype=None, backend=None):
        """The forward pass of a module, for inputs of these shapes."""
        if not isinstance(shapes, (list, tuple)):
            raise TypeError("jit.compile: expected shapes, not "
                            f"{shapes!r}")
        if shapes and not isinstance(shapes[0], (list, tuple)):
            shapes = [shapes]
        like = [_C.empty(shape, dtype=dtype) for shape in shapes]
        return _Program(_no_grad(lambda inputs: module(*inputs)), like,
                        backend, type(module).__name__)

    def dump(self, compiled):
        """The programs of a compiled function or module, as text."""
        if not isinstance(compiled, (_Compiled, _Program)):
            raise TypeError("dump: expected a compiled function or "
                            f"module, not {type(compiled).__name__}")
        return compiled.text


jit = _Jit()
