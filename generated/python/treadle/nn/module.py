# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Module, the base of every network, and Parameter."""
from collections import OrderedDict, namedtuple
from .._guards import assume
from .._grad_mode import no_grad
from .. import _C, Tensor
from .._tensor import _destination
# strangers: imports of modules
from ._hooks import Handle, call


# layers: class Parameter
class Parameter(Tensor):
    """A tensor that a Module registers and an optimiser updates."""

    def __new__(cls, data=(), requires_grad=True):
        if not isinstance(data, Tensor):
            data = _C.tensor(data)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()


def zero_grads(parameters, set_to_none=True):
    """Forget the gradients, or set them to zero."""
    for p in parameters:
        if set_to_none:
            p.grad = None
        elif (grad := p.grad) is not None:
            grad.detach().zero_()


def options_of(given):
    """The arguments of a constructor that are kept by their names."""
    return {k: v for k, v in given.items() if k[0] != "_" and k not in (
        "self", "params", "bias", "device", "dtype")}

# layers: class Module

class Module:
    """Base class: assign parameters and modules, define forward."""

    def __init__(self):
        self.__dict__.update({name: OrderedDict() for name in (
            "_parameters", "_buffers", "_modules",
            "_forward_pre_hooks", "_forward_hooks", "_backward_hooks"
        )}, _transient=set(), training=True)

    def _begin(self, given, **shapes):
        Module.__init__(self)
        self.__dict__.update(options_of(given))
        self._add_parameters(given, shapes)
        if shapes:
            self.reset_parameters()

    # layers: call a module
    def forward(self, *args, **named):
        raise NotImplementedError(
            f"{type(self).__name__} does not define forward")

    def __call__(self, *args, **named):
        assume(lambda: (self.training, *map(_C._addresses, (
            self._parameters, self._buffers, self._modules,
            self._forward_pre_hooks, self._forward_hooks,
            self._backward_hooks))))
        # strangers: further ways to call a module
        if self._forward_pre_hooks or self._forward_hooks \
                or self._backward_hooks:
            return call(self, args, named)
        return self.forward(*args, **named)

    # layers: attributes of a module
    def __setattr__(self, name, value):
        kind = "_parameters" if isinstance(value, Parameter) else \
            "_modules" if isinstance(value, Module) else \
            next((kind for kind in _KINDS
                  if name in self.__dict__.get(kind, ())), None)
        if kind is None:
            return object.__setattr__(self, name, value)
        self.__put(kind, name, value, None if kind == "_modules" else
                   type(self), "{!r} as {} {!r} ({} or None expected)")

    def __forget(self, name, but=None):
        self.__dict__.pop(name, None)
        for kind in _KINDS:
            if self.__dict__.get(kind, but) is not but:
                self.__dict__[kind].pop(name, None)
                if kind == "_buffers":
                    self._transient.discard(name)

    def __put(self, kind, name, value, seen,
              wrong="{!r} object to {} {!r} ({} or None required)"):
        what, wanted, words = _KINDS[kind]
        home = self.__dict__.get(kind)
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. "
                            f"Got {_typename(name)}")
        if home is None:
            raise AttributeError(f"cannot assign {what} before "
                                 "Module.__init__() call")
        if seen is not None:
            if "." in name:
                raise KeyError(f'{what} name can\'t contain ".", got: '
                               f'{name}')
            if not name:
                raise KeyError(f'{what} name can\'t be empty string ""')
            if hasattr(seen, name) and name not in home:
                raise KeyError(f"attribute {name!r} already exists")
        if value is not None and not isinstance(value, wanted):
            raise TypeError("cannot assign " + wrong.format(
                _typename(value), what, name, words))
        self.__forget(name, home)
        home[name] = value

    def __getattr__(self, name):
        for kind in _KINDS:
            if name in self.__dict__.get(kind, ()):
                return self.__dict__[kind][name]
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        getattr(self, name)
        self.__forget(name)

    def __dir__(self):
        return [*super().__dir__(), *self._parameters, *self._modules,
                *self._buffers]

    def register_parameter(self, name, param):
        """Register a Parameter, or None as a place for one."""
        self.__put("_parameters", name, param, self)

    def _add_parameters(self, given, shapes):
        """Register parameters; what has no shape keeps a place."""
        for name, shape in shapes.items():
            self.register_parameter(name, Parameter(_C.empty(
                shape, dtype=given["dtype"], device=given["device"]))
                if isinstance(shape, tuple) else None)

    def register_buffer(self, name, tensor, persistent=True):
        """Register a tensor that is saved (if persistent), not trained."""
        self.__put("_buffers", name, tensor, self)
        (self._transient.discard if persistent
         else self._transient.add)(name)

    def add_module(self, name, module):
        """Register a child under a name that need not be an identifier."""
        if not isinstance(module, (Module, type(None))):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self.__put("_modules", name, module, self)

    register_module = add_module
    # layers: walks over a module
    def named_modules(self, memo=None, prefix="",
                      remove_duplicate=True):
        """Pairs (dotted name, module), this one first."""
        memo = set() if memo is None else memo
        if self in memo and remove_duplicate:
            return
        memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path,
                                               remove_duplicate)

    def _named(self, kind, prefix, recurse, once=True):
        # each-once: exercise each-once
        seen = set()
        modules = self.named_modules(prefix=prefix,
                                     remove_duplicate=once) \
            if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in getattr(module, kind).items():
                if value is None or once and value in seen:
                    continue
                seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True):
        """Pairs (dotted name, parameter), each parameter once."""
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse=True):
        """All parameters, each once."""
        return (p for _, p in self.named_parameters("", recurse))

    def named_buffers(self, prefix="", recurse=True):
        """Pairs (dotted name, buffer)."""
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse=True):
        """All buffers."""
        return (b for _, b in self.named_buffers("", recurse))

    def modules(self):
        """This module and all below it."""
        return (m for _, m in self.named_modules())

    def named_children(self):
        """Pairs (name, module) directly below."""
        return ((n, m) for n, m in self._modules.items()
                if m is not None)

    def children(self):
        """The modules directly below."""
        return (m for _, m in self.named_children())
    # layers: state of a module
    def state_dict(self, destination=None, prefix="", keep_vars=False):
        """An OrderedDict of dotted names and (shared) tensors."""
        state = OrderedDict() if destination is None else destination
        for path, module in self.named_modules(remove_duplicate=False):
            path = prefix + path + "." if path else prefix
            for name, value in (*module._parameters.items(),
                                *module._buffers.items()):
                if value is not None and name not in module._transient:
                    state[path + name] = value if keep_vars \
                        else value.detach()
        return state

    def load_state_dict(self, state, strict=True, assign=False):
        """Copy tensors of `state` into the parameters and buffers.

        With assign these take the memory of the tensors, uncopied.
        """
        own = self.state_dict(keep_vars=True)
        missing = [n for n in own if n not in state]
        unexpected = [n for n in state if n not in own]
        pairs = [(n, x, state[n]) for n, x in own.items() if n in state]
        # layers: list everything that is wrong with a state
        wrong = []
        for n, mine, theirs in pairs:
            if not isinstance(theirs, Tensor):
                wrong.append(f"no tensor for {n}: got {_typename(theirs)}")
            elif mine.shape != theirs.shape:
                wrong.append(f"size mismatch for {n}: expected "
                             f"{list(mine.shape)}, got {list(theirs.shape)}")
        for kind, names in (("missing", missing), ("unexpected", unexpected)):
            if strict and names:
                wrong.append(f"{kind} keys: " + ", ".join(names))
        if wrong:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}:"
                               "\n\t" + "\n\t".join(wrong))
        with no_grad():
            for _, mine, theirs in pairs:
                if assign:
                    mine.data = theirs.detach()
                else:
                    mine.copy_(theirs.detach())
        return IncompatibleKeys(missing, unexpected)
    # layers: changes to a whole module
    def train(self, mode=True):
        """Training behaviour, here and below; returns the module."""
        for module in self.modules():
            object.__setattr__(module, "training", bool(mode))
        return self

    def eval(self):
        """Evaluation behaviour, here and below."""
        return self.train(False)

    def zero_grad(self, set_to_none=True):
        """Forget the gradients, or set them to zero."""
        zero_grads(self.parameters(), set_to_none)

    def requires_grad_(self, requires_grad=True):
        """Switch recording for all parameters."""
        for p in self.parameters():
            p.requires_grad = requires_grad
        return self

    def apply(self, function):
        """Call function(module) below and then here."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self
    def _apply(self, change):
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.data = change(tensor.data)
            grad = tensor.grad
            if grad is not None:
                grad.data = change(grad.data)
        return self

    def to(self, *what, dtype=None, device=None, non_blocking=False,
           memory_format=None):
        """Floating tensors in another dtype, all on another device."""
        _, dtype, device = _destination(what, dtype, device)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError("to: a module can only have a floating dtype, "
                            f"not {dtype}")
        return self._apply(lambda x: x.to(
            dtype=dtype if x.is_floating_point() else None, device=device))

    cuda, cpu = Tensor.cuda, Tensor.cpu
    float, double = Tensor.float, Tensor.double
    # layers: printing of a module
    _printed, _usual, _dims = "", {}, 0

    def extra_repr(self):
        """One line about this module, for printing."""
        shown = [(name if name[-1] == "=" else "")
                 + repr(self._shown(name.rstrip("=")))
                 for name in self._printed.split()]
        for name, usual in self._usual.items():
            value = self._shown(name)
            if value not in (usual, (usual,) * self._dims):
                shown.append(f"{name}={value}")
        return ", ".join(shown)

    def _shown(self, name):
        value = getattr(self, name)
        return value if name != "bias" else \
            not (value is None or value is False)

    def _texts(self):
        return ((name, repr(m)) for name, m in self._modules.items())

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") * bool(extra) + [
            f"({name}): " + text.replace("\n", "\n  ")
            for name, text in self._texts()]
        if len(lines) > 1 or self._modules:
            extra = "\n  ".join(["", *lines]) + "\n"
        return f"{type(self).__name__}({extra})"
    # strangers: further methods of Module
    def register_forward_pre_hook(self, hook, *, prepend=False,
                                  with_kwargs=False):
        """Call hook(module, args) first; it may return other args."""
        return Handle(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def register_forward_hook(self, hook, *, prepend=False,
                              with_kwargs=False):
        """Call hook(module, args, result); it may return another."""
        return Handle(self._forward_hooks, hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call hook(module, grad_input, grad_output) in backward.

        It may return other gradients for the arguments.
        """
        return Handle(self._backward_hooks, hook, prepend)

    register_backward_hook = register_full_backward_hook
    def get_submodule(self, target):
        """The module below, by its dotted path."""
        return self._get("_modules", target) if target else self

    def _get(self, kind, target):
        path, _, name = target.rpartition(".")
        home = self.get_submodule(path)
        found = getattr(home, kind).get(name)
        if found is None:
            raise AttributeError(f"{type(home).__name__} has no attribute "
                                 f"`{name}` in {kind}")
        return found

    def get_parameter(self, target):
        """The parameter with this dotted path."""
        return self._get("_parameters", target)

    def get_buffer(self, target):
        """The buffer with this dotted path."""
        return self._get("_buffers", target)

    def _get_name(self):
        return type(self).__name__
    half, bfloat16 = Tensor.half, Tensor.bfloat16

    def type(self, dst_type):
        """Every tensor in another type."""
        return self._apply(lambda x: x.type(dst_type))

    def share_memory(self):
        """Nothing changes: threads share everything anyway."""
        return self


_KINDS = {"_parameters": ("parameter", Parameter, "nn.Parameter"),
          "_modules": ("module", Module, "nn.Module"),
          "_buffers": ("buffer", Tensor, "Tensor")}


def _typename(x):
    kind = type(x)
    return kind.__qualname__ if kind.__module__ == "builtins" \
        else f"{kind.__module__}.{kind.__qualname__}"


class IncompatibleKeys(namedtuple(
        "IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    def __repr__(self):
        return super().__repr__() if any(self) \
            else "<All keys matched successfully>"
