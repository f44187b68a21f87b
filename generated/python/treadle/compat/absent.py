# SPDX-License-Identifier: MIT
# Tangled from the chapter "porting": edit that, not this file.
"""Names that are absent, and why."""
from .. import Tensor, autograd, linalg, nn, optim, utils
from . import REASONS, find_on_demand

_ABSENT = {
    "matrices are decomposed in treadle.linalg, in fewer ways": """
        cholesky cholesky_inverse cholesky_solve eig eigvals
        geqrf householder_product ldl lobpcg lstsq lu lu_factor lu_solve
        lu_unpack matrix_exp matrix_rank ormqr pca_lowrank qr solve
        svd_lowrank symeig triangular_solve""",
    "there are no complex tensors": """angle cdouble cfloat chalf
        complex complex64 complex128 fft ifft imag istft polar
        rfft stft view_as_complex view_as_real""",
    "there are no sparse tensors": """coalesce col_indices
        crow_indices hspmm indices smm sparse sparse_coo_tensor
        sparse_csr_tensor sspaddmm to_dense to_sparse values""",
    "there are no quantised tensors": """dequantize int_repr q_scale
        q_zero_point qint8 qint32 quantization quantize_per_channel
        quantize_per_tensor quint8 intrinsic* qat* quantiz*""",
    "dimensions have no names": "align_as align_to names refine_names",
    "one process computes": """distributed is_shared multiprocessing
        share_memory_ *[pP]arallel SyncBatch* Distributed*""",
    "a layer knows its sizes when it is made": "Lazy* Uninitialized*",
    "weight_norm and spectral_norm compute weights, nothing else does":
    "parametri* stateless*",

    "a tensor keeps its memory": """resize_ resize_as_ set_ storage""",
    "programs are not exported this way": "fx hub onnx package"}
REASONS.update((name, reason) for reason, names in _ABSENT.items()
               for name in names.split())


def _absent(name, reason):
    def absent(self):
        raise AttributeError("'treadle.Tensor' object has no attribute "
                             f"{name!r}: {reason}")
    return property(absent)


# porting: let modules say why
for _module in (autograd, linalg, nn, nn.functional, nn.init, nn.utils,
                nn.utils.rnn, optim, optim.lr_scheduler, utils,
                utils.data):
    find_on_demand(_module, "what PyTorch has there is some lines of "
                            "what is here")
for _row in REASONS.items():
    if _row[0].isidentifier() and not hasattr(Tensor, _row[0]):
        setattr(Tensor, _row[0], _absent(*_row))
