# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""Gradients: backward, grad, gradcheck, functions of one's own."""
from itertools import chain, product
from .. import _C, Tensor
from .._forms import _spread
from .._grad_mode import no_grad, enable_grad, set_grad_enabled
# package: function to make a tuple of tensors


def _tuple(x):
    return () if x is None else \
        (x,) if isinstance(x, Tensor) else tuple(x)


def _sums_to(shape, size):
    """Whether shape is size, broadcast."""
    return len(size) <= len(shape) and all(
        s in (1, n) for s, n in zip(reversed(size), reversed(shape)))
# package: functions backward and grad


def backward(tensors, grad_tensors=None, retain_graph=None,
             create_graph=False, grad_variables=None, inputs=None):
    """Add to .grad of every leaf the derivative of the tensors.

    With inputs, only to .grad of those.
    """
    if grad_tensors is None:
        grad_tensors = grad_variables
    wanted = _tuple(inputs)
    if inputs is not None and not wanted:
        raise RuntimeError("'inputs' argument to backward() cannot be "
                           "empty.")
    _C._grad(_tuple(tensors), wanted, _tuple(grad_tensors),
             create_graph if retain_graph is None else retain_graph,
             create_graph, False, True)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None,
         create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """Derivatives of the outputs by the inputs, as a tuple.

    No .grad is touched.  An input that no output depends on is an
    error, or None if allow_unused, or zeros if materialize_grads.
    """
    if is_grads_batched:
        raise NotImplementedError("is_grads_batched: use func.vjp")
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads=True excludes "
                         "allow_unused=False")
    inputs = _tuple(inputs)
    got = _C._grad(_tuple(outputs), inputs, _tuple(grad_outputs),
                   create_graph if retain_graph is None
                   else retain_graph, create_graph,
                   allow_unused or materialize_grads, False)
    return _filled(got, inputs) if materialize_grads else got


def _filled(got, like):
    return tuple(_C.zeros_like(x) if g is None else g
                 for g, x in zip(got, like))
# package: class FunctionCtx


class FunctionCtx:
    """What forward leaves for backward."""
    _saved = _constant = _dirty = saved_tensors = ()
    materialize = True

    def save_for_backward(self, *tensors):
        """Keep tensors; backward finds them in saved_tensors."""
        self._saved = tensors

    def set_materialize_grads(self, value):
        """Whether absent gradients arrive as zeros (the default)."""
        self.materialize = value

    def mark_non_differentiable(self, *tensors):
        """Results through which no gradient flows."""
        self._constant = tensors

    def mark_dirty(self, *tensors):
        """Arguments that forward changes in place and returns."""
        self._dirty = tensors
# package: class Function


class Function:
    """An operator of your own: forward, backward, apply."""

    @classmethod
    def apply(cls, *args):
        ctx = FunctionCtx()
        tensors = tuple(a if isinstance(a, Tensor) else None
                        for a in args)
        ctx.needs_input_grad = tuple(
            a is not None and a.requires_grad for a in tensors)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                results = cls.forward(ctx, *args)
            else:
                results = cls.forward(*args)
                cls.setup_context(ctx, args, results)
        outputs = _spread(results, 1)
        # package: refuse results that are no tensors
        for output in outputs:
            if not isinstance(output, Tensor):
                raise TypeError(f"{cls.__name__}.forward must return "
                                f"Tensors, not {type(output).__name__}")
        if _C.is_grad_enabled() and any(ctx.needs_input_grad):
            saved, constant, dirty = (ctx._saved, ctx._constant,
                                      ctx._dirty)
            ctx._saved = ctx._constant = ctx._dirty = ()
            fixed = [any(o is c for c in constant) for o in outputs]
            # package: refuse marks that make no sense
            for what, marked in (("save_for_backward", saved),
                                 ("mark_non_differentiable", constant),
                                 ("mark_dirty", dirty)):
                for i, x in enumerate(marked):
                    if not isinstance(x, (Tensor, type(None))):
                        raise TypeError(f"{what} can only take tensors, but "
                                        f"argument {i} is of type "
                                        f"{type(x).__name__}")
            if not all(any(d is o for o in outputs) for d in dirty):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were "
                    "not returned")
            outputs = tuple(
                o.detach() if any(o is a for a in tensors)
                and not any(o is d for d in dirty)
                or any(o is p for p in outputs[:k]) else o
                for k, o in enumerate(outputs))
            # package: record the function over its results
            kinds = [(o.shape, o.dtype, o.device) for o in outputs]
            shapes = [None if a is None else a.shape for a in tensors]

            def run(saved_tensors, grads, needs):
                ctx.saved_tensors = saved_tensors
                ctx.needs_input_grad = tuple(map(bool, needs))
                if ctx.materialize:
                    grads = [_C.zeros(shape, dtype=dtype, device=device)
                             if g is None else g
                             for g, (shape, dtype, device) in zip(grads, kinds)]
                try:
                    grads = _spread(cls.backward(ctx, *grads), 1)
                finally:
                    ctx.saved_tensors = ()
                # package: check the gradients that came back
                n = len(shapes)
                while len(grads) > n and grads[-1] is None:
                    grads = grads[:-1]
                if len(grads) != n:
                    raise RuntimeError(
                        f"{cls.__name__}.backward returned {len(grads)} gradients, "
                        f"expected {n}, one for each argument")
                for k, (g, shape) in enumerate(zip(grads, shapes)):
                    if g is not None and not isinstance(g, Tensor):
                        raise TypeError(
                            f"{cls.__name__}.backward must return Tensors or None, "
                            f"not {type(g).__name__}")
                    if g is None or shape is None:
                        continue
                    if not _sums_to(g.shape, shape):
                        raise RuntimeError(
                            f"Function {cls.__name__}Backward returned an invalid "
                            f"gradient at index {k} - got {list(g.shape)} but expected "
                            f"shape compatible with {list(shape)}")
                return grads

            _C._record(cls.__name__, tensors,
                       tuple(None if f else o for o, f
                             in zip(outputs, fixed)), saved, run)
        return outputs if isinstance(results, (tuple, list)) \
            else outputs[0]

    @staticmethod
    def forward(*unused):
        raise NotImplementedError("a Function must define forward and "
                                  "backward")
    backward = setup_context = forward
# package: function gradcheck


def gradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=1e-3,
              raise_exception=True):
    """Compare the gradients of func at inputs with differences.

    Inputs that require grad, one at least, must be float64.  Raises
    RuntimeError where they disagree, or returns False if not
    raise_exception.
    """
    inputs = _tuple(inputs)
    checked = [k for k, x in enumerate(inputs)
               if isinstance(x, Tensor) and x.requires_grad]
    for k in checked:
        if inputs[k].dtype is not _C.float64:
            raise ValueError(f"gradcheck: input {k} is "
                             f"{inputs[k].dtype}, expected "
                             "treadle.float64")
    if not checked:
        raise ValueError("gradcheck: no input requires a gradient")
    try:
        for o, output in enumerate(_tuple(func(*inputs))):
            for k in checked if output.dtype.is_floating_point else ():
                _compare(func, inputs, o, k, eps, atol, rtol)
    except RuntimeError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, eps=1e-6, atol=1e-5,
                  rtol=1e-3, raise_exception=True):
    """Compare the second derivatives of func with differences.

    Seeds are grad_outputs, or random ones; see gradcheck.
    """
    inputs = _tuple(inputs)
    outputs = [o for o in _tuple(func(*inputs)) if o.requires_grad]
    seeds = _tuple(grad_outputs) or map(_C.randn_like, outputs)
    seeds = tuple(s.detach().requires_grad_() for s in seeds)
    n = len(inputs)

    @enable_grad()
    def gradients(*values):
        made = [o for o in _tuple(func(*values[:n])) if o.requires_grad]
        wanted = [v for v in values[:n]
                  if isinstance(v, Tensor) and v.requires_grad]
        grads = grad(made, wanted, values[n:], create_graph=True,
                     allow_unused=True)
        return tuple(v * 0 if g is None else g
                     for v, g in zip(wanted, grads))

    return gradcheck(gradients, inputs + seeds, eps, atol, rtol,
                     raise_exception)


def _compare(func, inputs, o, k, eps, atol, rtol):
    def output():
        return _tuple(func(*inputs))[o].reshape(-1)

    x, columns = inputs[k], []
    (rows,), = functional.rows([output()], [x], False)
    with no_grad():
        flat = x.detach()
        for i in product(*map(range, x.shape)):
            here, ends = flat[i].item(), []
            for step in (eps, -eps):
                flat[i] = here + step
                ends.append(output().tolist())
            flat[i] = here
            columns.append([(u - d) / (2 * eps)
                            for u, d in zip(*ends)])
    for at, (u, v) in enumerate(zip(rows.reshape(-1).tolist(),
                                    chain(*zip(*columns)))):
        if not abs(u - v) <= atol + rtol * abs(v):
            i, j = divmod(at, x.numel())
            raise RuntimeError(
                f"gradcheck: output {o}[{i}] by input {k}[{j}]: "
                f"gradient {u:.9g}, difference {v:.9g}")
# functional: further names of autograd
from . import anomaly_mode, function, functional, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .._grad_mode import inference_mode
# strangers: further names of autograd


class _Boxes(type):
    def __instancecheck__(cls, x):
        return isinstance(x, Tensor)

    def __call__(cls, data, requires_grad=False, volatile=False):
        if not isinstance(data, Tensor):
            raise TypeError("Variable data has to be a tensor, but got "
                            f"{type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_Boxes):
    """A leaf over the memory of a tensor."""
