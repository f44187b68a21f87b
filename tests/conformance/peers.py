# needs: layers
# SPDX-License-Identifier: MIT
"""How PyTorch spells an operator of ours, and where the two differ on purpose."""
import functools


# Called on both sides by this, with the module first.
SPELT = {
    "tensordot": lambda m, a, b, dims_self, dims_other: m.tensordot(a, b, (dims_self, dims_other)),
    "max_dim": lambda m, x, dim, **k: m.max(x, dim, **k),
    "min_dim": lambda m, x, dim, **k: m.min(x, dim, **k),
    "median_dim": lambda m, x, dim=-1, **k: m.median(x, dim, **k),
    "gelu_erf": lambda m, x: m.nn.functional.gelu(x),
    "gelu_tanh": lambda m, x: m.nn.functional.gelu(x, approximate="tanh"),
    "slice": lambda m, x, dim=0, start=None, end=None, step=1: x[(slice(None),) * dim + (slice(start, end, step),)],
    "vector_norm": lambda m, x, ord=2, dim=None, keepdim=False, dtype=None: m.linalg.vector_norm(x, ord, dim, keepdim, dtype=dtype),
    "repeat": lambda m, x, repeats: x.repeat(repeats),
    "im2col": lambda m, x, kernel_size, dilation, padding, stride: m.nn.functional.unfold(x, kernel_size, dilation, padding, stride),
    "convolution": lambda m, x, w, bias=None, *, stride, padding, dilation, transposed, output_padding, groups: m.convolution(
        x, w, bias, *((v * (x.ndim - 2))[:x.ndim - 2] for v in (stride, padding, dilation)), transposed,
        ((output_padding or [0]) * (x.ndim - 2))[:x.ndim - 2], groups) if hasattr(m, "ops") else m._C.convolution(
        x, w, bias, stride, padding, dilation, transposed, output_padding, groups),
    "linalg_solve": lambda m, a, b: m.linalg.solve(a, b),
    "linalg_cholesky": lambda m, x: m.linalg.cholesky(x @ x.mT + m.eye(x.shape[-1], dtype=x.dtype)),
    "linalg_qr": lambda m, x, complete=False: m.linalg.qr(x, "complete" if complete else "reduced")[1].abs(),
    "linalg_eigh": lambda m, x: m.linalg.eigh(x)[0],
    "linalg_svd": lambda m, x: m.linalg.svdvals(x),
    "linalg_pinv": lambda m, x, atol, rtol: m.linalg.pinv(x, atol=atol, rtol=rtol),
    "view_dtype": lambda m, x, dtype: x.view(dtype),
    "to_device": lambda m, x, device: x.to(device),
    "col2im": lambda m, x, output_size, kernel_size, dilation, padding, stride:
        m.nn.functional.fold(x, output_size, kernel_size, dilation, padding, stride),
}


# Found on PyTorch's side by this: operators that only we have a name for.
PEERS = {name + "_": (lambda name: lambda m: functools.partial(getattr(m.nn.functional, name), inplace=True))(name)
          for name in ("relu6", "silu", "mish", "hardsigmoid", "hardswish")}


def find(module, name):
    """The function that users of the module call; ours is at least in _C."""
    ours = getattr(getattr(module, "_C", None), name, None)
    if name in SPELT:
        return functools.partial(SPELT[name], module)
    if name in PEERS:
        return PEERS[name](module) if hasattr(module, "ops") else ours
    places = (module.nn.functional, module, module.Tensor, getattr(module, "special", None))
    for place in places[::-1] if name == "unfold" else places:
        if hasattr(place, name):
            return getattr(place, name)
    return ours if module.__name__ == "treadle" else None


# Operators that add and subtract: a unit in the last place is that of the
# largest number that goes in or comes out, since small results cancel.
SUMS = set("""sum mean prod nansum nanmean cumsum matmul mm mv bmm dot vdot inner outer addmm addmv addr baddbmm linear einsum
    tensordot matrix_power kron trace var std var_mean std_mean cosine_similarity logaddexp logsumexp logcumsumexp log_softmax
    cross_entropy lerp addcmul addcdiv index_add scatter_add scatter interpolate sum_to_size tanhshrink hardsigmoid hardswish
    col2im mse_loss normalize celu elu selu vector_norm recurrence put_points sgd_step gelu gelu_erf gelu_tanh
    digamma lgamma zeta binary_cross_entropy_with_logits kl_div gru lstm rnn_tanh rnn_relu lstm_cell gru_cell
    inverse det slogdet linalg_solve linalg_cholesky linalg_qr linalg_eigh linalg_svd linalg_pinv
    rnn_tanh_cell rnn_relu_cell convolution batch_norm layer_norm group_norm instance_norm rms_norm avg_pool1d avg_pool2d avg_pool3d""".split())
# PyTorch 1.13 ends the process if their weights do not fit.
CRASHES = ("gru", "lstm", "rnn_")
# Largest difference in ulp: float32, float64, gradients.
LIMITS = {"*": (4, 4, 64), "lstm_cell": (16, 64, 64), "sums": (16, 16, 64), "erfinv": (4, 8, 64), "digamma": (4, 16, 64)}

# Refusals of PyTorch, 1.13 or the newest, where we return a result, by its words.
REFUSALS = [
    (r"not implemented for|not supported for|is not implemented|not yet implemented|does not support bool|could not infer output dtype",
     "PyTorch has no kernel for the dtype"),
    (r"must be (Tensor|Number), not|got \((Tensor|float|int|bool), (float|int|bool|Tensor)\)",
     "we take a number where PyTorch wants a tensor, or the reverse"),
    (r"dim=list", "we take several dimensions, as PyTorch 2 does"),
    (r"did not match|expected dtype|must have the same|Found dtype|expected scalar type|Integer division with addcdiv|mixed dtype|Bad in-place call|Expected a floating|without narrowing|cast to the desired|dtypes must be the same|promoting not supported",
     "we promote operands of unlike dtypes, PyTorch refuses them"),
    (r"INTERNAL ASSERT|returned an invalid gradient|select\(\): index 0 out of range|view size is not compatible|multiplication overflow|size mismatch, got (input \()?\d",
     "PyTorch 1.13 fails by a mistake of its own"),
    (r"unexpected keyword", "an argument of ours"),
    (r"but tensor has no dimensions", "dimension 0 of a number is refused by one old function of PyTorch"),
    (r"Can't detach views|Integral inputs", "what PyTorch refuses to detach in place, or as whole numbers, is taken"),
    (r"with a bool tensor", "a bool is subtracted from a number as 0 or 1"),
    (r"is not differentiable with respect|view of a leaf|functions with out=|expects its input's|Autograd not support dtype", "PyTorch has no gradient here"),
    (r"output_size must be 2", "one size serves all dimensions"),
    (r"tensor expected for input|[Nn]on-?(empty|zero)|to be at least 1|but got: \[ torch|negative output size|exceeds dimension size|step must be nonzero|doesn't match the broadcast|narrow\(\): length|channels to be greater|HxW to be greater",
     "PyTorch refuses empty operands that have an obvious result"),
    (r"without overflow", "numbers that a dtype cannot hold are clipped (chapter views)"),
]
# (patterns of cases, kinds of difference, reason)
EXPLAINED = [
    ("*:expanded:", "raises", "only one value is written through an expanded tensor; PyTorch lets some operators write more"),
    ("all:uint8:|any:uint8:", "dtype", "all and any of uint8 are bool, as of every other dtype"),
    ("*pool*:int|*pool*:uint8|*pool*:bool|convolution:*int|batch_norm:*int*zero|batch_norm:bool*zero|instance_norm:*int*zero|instance_norm:bool*zero",
     "raises", "convolutions, averages and normalisations of whole numbers are refused"),
    ("convolution:*zero", "raises", "shapes that no forward call has are refused"),
    ("max_pool*one", "raises", "a window that does not fit is refused in one dimension as in two"),
    ("feature_*", "dtype raises", "what is dropped from whole numbers is scaled, and so promoted"),
    ("cum*_:bool:*rank0", "raises", "a number is promoted as a vector is"),
    ("digamma*", "gradient", "PyTorch's trigamma has eight digits"),
    ("group_norm:*zero", "gradient", "the gradient of nothing is 0, PyTorch's NaN"),
    ("*:int*=0.5|*:uint8*=0.5|*:bool*=0.5|*:int*=2.5|*:uint8*=2.5|hardtanh*:int*0.7|hardtanh*:uint8*0.7|*:bool*=2.5",
     "raises dtype", "a fraction for whole numbers promotes or is refused; PyTorch drops the fraction"),
    ("addmv*:int*=2.0|baddbmm*:*=2.0|addmv*:*int*=2.0|addmv*:bool*|addmv*:*mixed", "raises dtype",
     "a fraction for whole numbers promotes or is refused; PyTorch drops the fraction"),
    ("*:bool:*:zero:|*:bool:*:one:|softmax:*:zero:|log_softmax:*:zero:|bernoulli*:*zero|normal_:*zero|randn*:*zero|randn:*:size=[[]0|"
     "group_norm:*int*zero|scaled_dot_product_attention:*zero|index_add*:*zero", "raises",
     "what an operator refuses, a dtype or a shape, it refuses of no elements too"),
    ("repeat_interleave:*rank0", "returns", "dimension 0 of a number is refused by one old function of PyTorch"),
    ("nextafter*", "graph gradient", "what follows a number has no derivative; PyTorch 2 passes the gradient on"),
    ("interpolate:uint8|col2im:bool|pow:bool", "raises", "PyTorch 2 has kernels for small whole numbers that we have not"),
    ("take_along_dim:*:one:|take_along_dim:*dim=0", "raises", "an index outside is refused; PyTorch 2 goes by the shape that is broadcast"),
    ("all:*dim=[[]]|any:*dim=[[]]", "shape", "no dimensions mean all of them, as in sum; PyTorch 2 has it so but for all and any"),
    ("view_dtype:*:zero:", "returns", "PyTorch wants neighbours even where there are no elements"),
    ("view_dtype:*dtype=bool", "raises", "a byte that is neither 0 nor 1 is no bool"),
    ("avg_pool3d:*:one:*", "returns", "in ceil_mode a window may hang over, in three directions as in two"),
    ("bincount:*:zero:", "dtype", "weights give their dtype, of no elements too"),
    ("bitwise_*_shift*", "value", "a shift by less than 0 or more than the width is undefined in C, 0 here"),
    ("copy_:uint8x", "value", "numbers that a dtype cannot hold are clipped (chapter views)"),
    ("clamp*:uint8:*max=-1", "raises", "a bound that the dtype cannot hold is refused; PyTorch wraps -1 to 255"),
    ("hardsigmoid*", "gradient", "PyTorch's sixth is a float32 in its float64 rule"),
    ("hardswish:|hardshrink:*special|hardtanh:*special|softsign:*special", "gradient",
     "the slope at NaN or infinity is a convention"),
    ("softshrink:*special", "value gradient", "PyTorch 1.13 shrinks NaN to 0"),
    ("logical_*_:", "gradient", "PyTorch passes gradients through logical in-place operators, whose slope is 0"),
    ("pow*:*special:[[]2,3] 0.5", "value gradient", "(-inf)^0.5 is inf (C99); PyTorch takes the square root, NaN"),
    ("masked_select:*:transposed|masked_scatter_:*:transposed", "value gradient",
     "PyTorch 1.13 goes through a transposed tensor in the order of memory"),
    ("pixel_unshuffle:*:zero", "shape", "PyTorch 1.13 returns an empty input unchanged"),
    ("max:*special|min:*special|median:*special", "gradient", "the gradient of a NaN maximum is NaN"),
    ("median:*zero", "value", "the median of no integers is 0; PyTorch's is the least integer"),
    ("searchsorted:*special", "value", "NaN is the largest number of a sequence, as sort has it"),
    ("topk:*|kthvalue:*", "value gradient", "which of equal elements is found is not promised"),
    ("addcdiv*mixed|addcmul*mixed|addr*mixed|logaddexp2*mixed", "value returns", "parts that need only the narrower of two widths are computed in it, on one side or the other"),
    ("addmv:*zero", "shape", "a product of no columns has the shape of the product"),
    ("celu*", "gradient", "PyTorch's alpha is a float32 in its float64 rule"),
    ("*:float64:*:special", "gradient", "where NaN or infinity goes in, rules differ in which gradients become NaN"),
    ("cross_entropy:*zero", "value", "a loss over no classes is 0, PyTorch's NaN"),
    ("fmod*:*zero", "raises", "a divisor of 0 is refused before it is known that nothing is divided"),
    ("logsumexp:*int|logsumexp:bool", "raises", "logsumexp refuses whole numbers, as softmax does"),
    ("inverse:*special|slogdet:*special|linalg_solve:*special|linalg_qr:*special", "value", "of infinite elements, factorings keep and lose different ones"),
    ("linalg_solve:*special", "raises", "of infinite elements, factorings keep and lose different ones"),
    ("linalg_eigh:*int*zero|linalg_eigh:bool*zero", "raises", "whole numbers are refused, of no elements too"),
    ("linalg_qr:*:expanded|linalg_svd:*:expanded", "gradient", "of a matrix with equal columns, any basis is right and none has a gradient"),
    ("linalg_eigh:*special|linalg_svd:*special|linalg_pinv:*special", "raises", "what is not finite is refused before it is decomposed"),
    ("matrix_power*special", "value", "products of infinities depend on their order"),
    ("sign*:bool|square*:bool", "raises", "bools have no sign and no square here"),
    ("softsign:uint8*special", "value", "1 + |255| is 256 here, and 0 in PyTorch's bytes"),
    ("std*:*dim=[[]]|var*:*dim=[[]]", "gradient", "PyTorch 1.13 divides the gradient by the wrong count where dim is []"),
    ("var*:*rank0", "gradient", "the variance of one number is NaN, and so is its slope"),
    ("batch_norm:*special", "value", "infinity less a mean, scaled: PyTorch scales first"),
    ("*_loss*:*mixed|binary_cross_entropy*:*mixed|rms_norm:*mixed", "dtype", "operands of unlike widths promote; PyTorch keeps the narrower of some losses and norms"),
    ("cosine_similarity:*mixed|kl_div:*mixed|smooth_l1_loss:*mixed|binary_cross_entropy*:*mixed", "value", "parts that need only the narrower of two widths are computed in it, on one side or the other"),
    ("l1_loss:*int*|smooth_l1_loss:*int*|margin_ranking_loss:*|rnn_relu*:int*|rnn_tanh*:int*|rnn_relu*:uint8|rnn_tanh*:uint8|smooth_l1_loss:bool*", "raises",
     "losses and recurrence of whole numbers are refused"),
    ("mse_loss:*mixed", "raises", "a loss wants operands of one dtype and shape"),
    ("unique*:*special", "value shape", "equal and unordered numbers: PyTorch 1.13 sorts NaN nowhere"),
]
