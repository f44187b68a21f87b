# needs: saving-more seldom models
# SPDX-License-Identifier: MIT
"""The door of C: what Python has and C has not, by name; and layers of both that exchange their weights.

A layer of C is called through ctypes, its settings by the names in treadle/arguments.h; Python saves the weights and the inputs,
C loads the weights and computes.
"""
import ctypes
import os
import re
from pathlib import Path

import pytest
import treadle as td
from treadle import models, nn, optim
from treadle.nn import init
from treadle.optim import lr_scheduler
from treadle.safetensors import load_file, save_file

HERE = Path(td.__file__).parent
HEADERS = Path(__file__).parents[2] / "generated/include/treadle"
C = ctypes.CDLL(str(HERE / "libtreadle.so"))


def text(name):
    return re.sub(r"/\*.*?\*/", "", (HEADERS / name).read_text(), flags=re.S)


class Dims(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int), ("at", ctypes.c_int64 * 8)]


class Number(ctypes.Structure):
    _fields_ = [("given", ctypes.c_bool), ("value", ctypes.c_int64)]


class Real(ctypes.Structure):
    _fields_ = [("given", ctypes.c_bool), ("value", ctypes.c_double)]


class Tensors(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int), ("at", ctypes.c_void_p)]


class More(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p * 4)]


KINDS = {"TENSOR": ctypes.c_void_p, "SIZE": ctypes.c_int64, "NUMBER": Number, "REAL": Real, "FLAG": ctypes.c_bool,
         "SIZES": Dims, "TEXT": ctypes.c_char_p, "TENSORS": Tensors}


class Args(ctypes.Structure):
    _fields_ = [(name, KINDS[kind]) for kind, name in re.findall(r"^(\w+)\((\w+)\)", text("arguments.h"), re.M)] + [
        ("dtype", ctypes.c_int), ("device", ctypes.c_int * 2), ("more", ctypes.c_void_p)]


KEPT = []       # texts are borrowed as long as a module lives


def args(**given):
    made = Args()
    KEPT.append(made)
    for name, value in given.items():
        kind = dict(Args._fields_)[name]
        if kind is Dims:
            value = (value,) if isinstance(value, int) else value
            value = Dims(len(value), (ctypes.c_int64 * 8)(*value))
        elif kind in (Number, Real):
            value = kind(True, value)
        elif kind is ctypes.c_char_p:
            value = value.encode()
        setattr(made, name, value)
    return made


for name in ("td_safetensors_open", "td_safetensors_get", "td_forward", "td_forward_with", "td_error_message"):
    getattr(C, name).restype = ctypes.c_char_p if name == "td_error_message" else ctypes.c_void_p
for name in ("td_failed", "td_train", "td_load_module", "td_save_module", "td_safetensors_save"):
    getattr(C, name).restype = ctypes.c_bool


class Saved(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("tensor", ctypes.c_void_p)]


def right():
    if C.td_failed():
        message = C.td_error_message().decode()
        C.td_error_clear()
        raise RuntimeError(message)


def made(constructor, *values):
    function = getattr(C, f"td_{constructor}_module")
    function.restype = ctypes.c_void_p
    module = function(*values)
    right()
    return ctypes.c_void_p(module)


def run_c(folder, module, inputs, training=False, results=0):
    """What the module of C computes from tensors of Python, through files."""
    names = [f"x{i}" for i in range(len(inputs))]
    save_file({n: x.contiguous() for n, x in zip(names, inputs) if x is not None}, folder / "in.safetensors")
    C.td_scope_begin()
    try:
        C.td_train(module, training)
        file = ctypes.c_void_p(C.td_safetensors_open(str(folder / "in.safetensors").encode(), False))
        handles = [None if x is None else C.td_safetensors_get(file, n.encode()) for n, x in zip(names, inputs)]
        more = More((ctypes.c_void_p * 4)(*handles[1:]))
        y = C.td_forward_with(module, ctypes.c_void_p(handles[0]), ctypes.byref(more))
        right()
        out = [y, *filter(None, more.at[:results])]
        table = (Saved * len(out))(*((f"y{i}".encode(), h) for i, h in enumerate(out)))
        C.td_safetensors_save(str(folder / "out.safetensors").encode(), table, len(out), None)
        right()
    finally:
        C.td_scope_end()
        C.td_error_clear()
    found = load_file(folder / "out.safetensors")
    return [found[f"y{i}"] for i in range(len(out))]


def x(*shape):
    return td.randn(*shape)


CASES = {   # name: module of Python, constructor of C, its settings, inputs
    "Conv1d": lambda: (nn.Conv1d(4, 6, 3, 2, 1, groups=2), dict(in_channels=4, out_channels=6, kernel_size=3, stride=2,
                                                               padding=1, groups=2), [x(3, 4, 11)]),
    "Conv2d": lambda: (nn.Conv2d(4, 6, (3, 5), padding=(1, 2), dilation=(2, 1), bias=False),
                       dict(in_channels=4, out_channels=6, kernel_size=(3, 5), padding=(1, 2), dilation=(2, 1), no_bias=True),
                       [x(2, 4, 9, 8)]),
    "ConvTranspose1d": lambda: (nn.ConvTranspose1d(4, 6, 3, 2, output_padding=1),
                                dict(in_channels=4, out_channels=6, kernel_size=3, stride=2, output_padding=1), [x(2, 4, 5)]),
    "ConvTranspose2d": lambda: (nn.ConvTranspose2d(4, 6, 3, 2, 1, groups=2), dict(
        in_channels=4, out_channels=6, kernel_size=3, stride=2, padding=1, groups=2), [x(4, 5, 7)]),
    "LayerNorm": lambda: (nn.LayerNorm((3, 5), eps=0.1), dict(normalized_shape=(3, 5), eps=0.1), [x(2, 3, 5)]),
    "RMSNorm": lambda: (nn.RMSNorm(5), dict(normalized_shape=5), [x(2, 3, 5)]),
    "GroupNorm": lambda: (nn.GroupNorm(2, 6), dict(num_groups=2, num_channels=6), [x(2, 6, 5)]),
    "BatchNorm1d": lambda: (nn.BatchNorm1d(5, momentum=0.3), dict(num_features=5, momentum=0.3), [x(7, 5)]),
    "BatchNorm2d": lambda: (nn.BatchNorm2d(5), dict(num_features=5), [x(3, 5, 2, 4)]),
    "BatchNorm3d": lambda: (nn.BatchNorm3d(2, affine=False), dict(num_features=2, no_affine=True), [x(3, 2, 2, 4, 3)]),
    "InstanceNorm1d": lambda: (nn.InstanceNorm1d(4), dict(num_features=4), [x(3, 4, 5)]),
    "InstanceNorm2d": lambda: (nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
                               dict(num_features=4, affine=True, track_running_stats=True), [x(3, 4, 5, 2)]),
    "InstanceNorm3d": lambda: (nn.InstanceNorm3d(4), dict(num_features=4), [x(3, 4, 5, 2, 3)]),
    **{f"{kind}Pool{n}d": lambda kind=kind, n=n: (
        getattr(nn, f"{kind}Pool{n}d")(3, 2, 1), dict(kernel_size=3, stride=2, padding=1), [x(2, 3, *(7, 8, 6)[:n])])
       for kind in ("Max", "Avg") for n in (1, 2, 3)},
    **{f"Adaptive{kind}Pool{n}d": lambda kind=kind, n=n: (
        getattr(nn, f"Adaptive{kind}Pool{n}d")((3, 2, 4)[:n]), dict(output_size=(3, 2, 4)[:n]), [x(2, 3, *(7, 8, 6)[:n])])
       for kind in ("Max", "Avg") for n in (1, 2, 3)},
    **{f"{kind}Pad{n}d": lambda kind=kind, n=n: (
        getattr(nn, f"{kind}Pad{n}d")(tuple(range(1, 2 * n + 1)), *[0.5] * (kind == "Constant")),
        dict(padding=tuple(range(1, 2 * n + 1)), **({"value": 0.5} if kind == "Constant" else {})), [x(2, 3, *(7, 8, 9)[:n])])
       for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)},
    **{name: lambda name=name: (getattr(nn, name)(), {}, [x(3, 4, 5)]) for name in (
        "ReLU6 SELU SiLU Mish Hardswish Hardsigmoid ELU CELU LeakyReLU GELU Softplus Hardshrink Softshrink Sigmoid Tanh LogSigmoid "
        "Softsign Tanhshrink Hardtanh Softmax LogSoftmax Flatten Identity Dropout Dropout1d Dropout2d Dropout3d AlphaDropout "
        "FeatureAlphaDropout".split())},
    "Threshold": lambda: (nn.Threshold(0.1, 20), dict(threshold=0.1, value=20), [x(3, 4)]),
    "PReLU": lambda: (nn.PReLU(4), dict(num_parameters=4), [x(3, 4)]),
    "Unflatten": lambda: (nn.Unflatten(1, (2, 3)), dict(dim=1, sizes=(2, 3)), [x(3, 6)]),
    "PixelShuffle": lambda: (nn.PixelShuffle(2), dict(upscale_factor=2), [x(2, 8, 3, 5)]),
    "PixelUnshuffle": lambda: (nn.PixelUnshuffle(2), dict(downscale_factor=2), [x(2, 3, 4, 6)]),
    "Upsample": lambda: (nn.Upsample(scale_factor=1.5, mode="bilinear"), dict(scale_factor=1.5, mode="bilinear"),
                         [x(2, 3, 5, 4)]),
    "Embedding": lambda: (nn.Embedding(7, 3, padding_idx=2), dict(num_embeddings=7, embedding_dim=3, padding_idx=2),
                          [td.tensor([[1, 2, 6]])]),
    "RNN": lambda: (nn.RNN(3, 4, nonlinearity="relu"), dict(input_size=3, hidden_size=4, nonlinearity="relu"), [x(5, 2, 3)]),
    "LSTM": lambda: (nn.LSTM(3, 4, 2, bidirectional=True), dict(input_size=3, hidden_size=4, num_layers=2, bidirectional=True),
                     [x(5, 2, 3), x(4, 2, 4), x(4, 2, 4)]),
    "GRU": lambda: (nn.GRU(3, 4, 2, bias=False, batch_first=True), dict(input_size=3, hidden_size=4, num_layers=2, no_bias=True,
                                                                       batch_first=True), [x(2, 5, 3)]),
    "RNNCell": lambda: (nn.RNNCell(3, 4), dict(input_size=3, hidden_size=4), [x(2, 3), x(2, 4)]),
    "LSTMCell": lambda: (nn.LSTMCell(3, 4), dict(input_size=3, hidden_size=4), [x(2, 3), x(2, 4), x(2, 4)]),
    "GRUCell": lambda: (nn.GRUCell(3, 4, bias=False), dict(input_size=3, hidden_size=4, no_bias=True), [x(2, 3)]),
    "MultiheadAttention": lambda: (nn.MultiheadAttention(6, 2), dict(embed_dim=6, num_heads=2),
                                   [x(4, 2, 6), x(5, 2, 6), x(5, 2, 6), td.ones(4, 5, dtype=td.bool).triu(2)]),
    "TransformerEncoderLayer": lambda: (nn.TransformerEncoderLayer(6, 2, 8, activation="gelu", norm_first=True), dict(
        d_model=6, nhead=2, dim_feedforward=8, activation="gelu", norm_first=True), [x(4, 2, 6), x(4, 4)]),
    "TransformerDecoderLayer": lambda: (nn.TransformerDecoderLayer(6, 2, 8, batch_first=True), dict(
        d_model=6, nhead=2, dim_feedforward=8, batch_first=True), [x(2, 4, 6), x(2, 5, 6), x(4, 4), x(4, 5)]),
    "PositionalEncoding": lambda: (nn.PositionalEncoding(6, 9), dict(d_model=6, max_len=9), [x(4, 2, 6)]),
    "LearnedPositionalEncoding": lambda: (nn.LearnedPositionalEncoding(6, 9, batch_first=True), dict(
        d_model=6, max_len=9, batch_first=True), [x(2, 4, 6)]),
    "SwiGLU": lambda: (nn.SwiGLU(3, 5), dict(in_features=3, hidden_features=5), [x(2, 3)]),
}
RECURRENT = {"RNN": 1, "LSTM": 2, "GRU": 1, "LSTMCell": 2}
ROWS = dict(re.findall(r"(?:TD_PLAIN|TD_WITH|LAYER|TD_DROP|TD_RNN)\((\w+), (\w+)", text("layer_rows.h")))


def constructor(name):
    base = re.sub(r"[123]d$", "", name)
    if name in ROWS:
        return ROWS[name]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def python(module, name, inputs):
    if name == "MultiheadAttention":
        return [module(*inputs[:3], attn_mask=inputs[3], need_weights=False)[0]]
    if name in ("LSTM", "LSTMCell"):
        y = module(inputs[0], tuple(inputs[1:]))
        return [y[0], *y[1]] if name == "LSTM" else list(y)
    y = module(*inputs)
    return list(y) if name in RECURRENT else [y]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("training", [False, True])
def test_layers_exchange_weights(name, training, tmp_path):
    td.manual_seed(3)
    module, settings, inputs = CASES[name]()
    training = training and "Dropout" not in name
    for p in module.parameters():
        p.data.add_(td.randn_like(p) * 0.1)
    module.train(training)
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    if name.startswith("Transformer"):
        settings["dropout"] = 0.0
    c = made(constructor(name), args(**settings))
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    assert C.td_load_module(c, str(tmp_path / "w.safetensors").encode()) or right()
    found = run_c(tmp_path, c, inputs, training, RECURRENT.get(name, 0))
    with td.no_grad():
        wanted = python(module, name, inputs)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert a.shape == b.shape
        td.testing.assert_close(a, b.detach(), rtol=1e-6, atol=1e-6)
    # and back: what C saves, training's counts included, Python loads
    assert C.td_save_module(c, str(tmp_path / "back.safetensors").encode()) or right()
    back = load_file(tmp_path / "back.safetensors")
    assert back.keys() == module.state_dict().keys()
    for key, value in module.state_dict().items():
        td.testing.assert_close(back[key], value.detach(), rtol=1e-6, atol=1e-6)
    C.td_release(c)


# ---- what is refused ------------------------------------------------------------------

@pytest.mark.parametrize("name, settings, inputs, message", [
    ("conv2d", dict(in_channels=3, out_channels=4), None, "Conv2d: kernel_size is missing"),
    ("conv2d", dict(in_channels=3, out_channels=4, kernel_size=3, num_heads=2), None, "Conv2d: there is no num_heads"),
    ("conv2d", dict(in_channels=3, out_channels=4, kernel_size=3, groups=2), None, "Conv2d: 3 and 4 channels in 2 groups"),
    ("conv2d", dict(in_channels=3, out_channels=4, kernel_size=(3, 3, 3)), None, "a window of 3 dimensions"),
    ("conv2d", dict(in_channels=3, out_channels=4, kernel_size=3, output_padding=1), None, "there is no output_padding"),
    ("conv2d", dict(in_channels=3, out_channels=4, kernel_size=3), (3, 5), "Conv2d: expected 4 dimensions, or 3 without batch, not 2"),
    ("tanh", dict(dtype=2), None, "Tanh: has no dtype, no device"),
    ("linear_of_nobody", None, None, None),
    ("layer_norm", {}, None, "LayerNorm: normalized_shape is missing"),
    ("rms_norm", dict(normalized_shape=5, no_bias=True), None, "RMSNorm: there is no no_bias"),
    ("batch_norm2d", dict(num_features=3), (2, 3, 4), "BatchNorm2d: expected 4 dimensions, not 3"),
    ("pixel_shuffle", {}, None, "upscale_factor is missing"),
    ("upsample", {}, (2, 3, 4, 5), "Upsample: expected .* either size or scale_factor"),
    ("lstm", dict(input_size=3, hidden_size=-4), None, "hidden_size -4 and num_layers 1 must be positive"),
    ("rnn", dict(input_size=3, hidden_size=4, nonlinearity="cosine"), None, "nonlinearity 'cosine' tanh or relu"),
    ("lstm", dict(input_size=3, hidden_size=4, nonlinearity="relu"), None, "LSTM: there is no nonlinearity"),
    ("gru", dict(input_size=3, hidden_size=4), (5, 3), "GRU: expected 3 dimensions, not 2"),
    ("multihead_attention", dict(embed_dim=5, num_heads=2), None, "embed_dim 5 must be divisible by num_heads 2"),
    ("multihead_attention", dict(embed_dim=4, num_heads=2), (5, 4), "expected 3 dimensions, not 2 and 2"),
    ("transformer_encoder_layer", dict(d_model=4, nhead=2, activation="tanh"), None, "activation must be relu or gelu, not tanh"),
    ("positional_encoding", dict(d_model=5), None, "d_model must be even, not 5"),
    ("positional_encoding", dict(d_model=4, max_len=2), (3, 4), "3 positions, but max_len is 2"),
    ("embedding", dict(num_embeddings=5, embedding_dim=2, padding_idx=7), None, "index 7"),
])
def test_settings_are_refused_by_name(name, settings, inputs, message, tmp_path):
    if settings is None:
        assert not hasattr(C, f"td_{name}_module")
        return
    live = td.memory_stats()["live_tensors"]
    given = args(**settings)
    with pytest.raises(RuntimeError, match=message):
        module = made(name, given)
        run_c(tmp_path, module, [x(*inputs)])
    if inputs is None:
        assert td.memory_stats()["live_tensors"] == live


def test_operators_take_their_arguments_by_name(tmp_path):
    C.td_group_norm.restype = ctypes.c_void_p
    C.td_scope_begin()
    C.td_ones.restype = ctypes.c_void_p
    one = C.td_ones(Dims(2, (ctypes.c_int64 * 8)(2, 4)), Tensors())
    assert C.td_group_norm(ctypes.c_void_p(one), args(num_groups=2)) and not C.td_failed()
    for given, message in ((args(), "group_norm: num_groups is missing"), (args(num_groups=2, stride=1), "there is no stride")):
        assert not C.td_group_norm(ctypes.c_void_p(one), given)
        with pytest.raises(RuntimeError, match=message):
            right()
    C.td_scope_end()


# ---- what C has not ---------------------------------------------------------------------

SPECIAL = {"Linear": "linear", "ReLU": "relu", "Sequential": None, "ModuleList": None, "ModuleDict": None, "ParameterList": None,
           "ParameterDict": None}
ABSENT = {
    "composed in Python, of operators that C has": "Bilinear CosineSimilarity PairwiseDistance GLU Fold Unfold Softmax2d "
    "LocalResponseNorm MaxUnpool1d MaxUnpool2d MaxUnpool3d Conv3d ConvTranspose3d EmbeddingBag CTCLoss",
    "a list of layers that its owner calls": "TransformerEncoder TransformerDecoder Transformer",
    "a loss is a function in C": "MSELoss L1Loss SmoothL1Loss HuberLoss NLLLoss CrossEntropyLoss BCELoss BCEWithLogitsLoss "
    "KLDivLoss SoftMarginLoss HingeEmbeddingLoss PoissonNLLLoss MultiMarginLoss MarginRankingLoss CosineEmbeddingLoss "
    "TripletMarginLoss GaussianNLLLoss",
    "a base, of which none is made": "Module RNNBase RNNCellBase",
    "Adadelta is composed in Python, LBFGS calls its closure many times": "Adadelta LBFGS",
    "an expression of C, see the chapter on schedules": "LambdaLR MultiplicativeLR ChainedScheduler SequentialLR "
    "ReduceLROnPlateau",
    "td_fill_, td_copy_ and td_eye do it": "constant_ zeros_ ones_ eye_",
    "seldom": "dirac_ sparse_",
}
KNOWN = {name for names in ABSENT.values() for name in names.split()}


def missing(names, found):
    lacking = {name for name in names if not found(name)}
    unsaid = lacking - KNOWN
    assert not unsaid, f"C has no {sorted(unsaid)}"
    return lacking


def test_every_layer_is_in_c_or_on_the_list():
    layers = [name for name, kind in vars(nn).items() if isinstance(kind, type) and issubclass(kind, nn.Module) and name[0] != "_"]
    assert len(layers) > 100
    lacking = missing(layers, lambda name: name in SPECIAL or hasattr(C, f"td_{constructor(name)}_module"))
    assert hasattr(C, "td_linear_module") and hasattr(C, "td_relu_module") and hasattr(C, "td_parts")
    assert not lacking - KNOWN
    for name in CASES:
        assert name in vars(nn)
    made_in_c = set(layers) - lacking - set(SPECIAL)
    assert made_in_c == set(CASES), made_in_c ^ set(CASES)


def test_every_optimiser_schedule_and_initialiser_is_in_c_or_on_the_list():
    missing([n for n, kind in vars(optim).items() if isinstance(kind, type) and kind is not optim.Optimizer],
            lambda name: hasattr(C, "td_" + name.lower()))
    header = text("schedules.h")

    def snake(name):
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.replace("LR", "Lr")).lower()
    missing([n for n, kind in vars(lr_scheduler).items() if isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler)
             and kind is not lr_scheduler.LRScheduler and n[0] != "_"],
            lambda name: f"TD_RATE({snake(name)}," in header)
    missing([n for n in vars(init) if n.endswith("_") and n[0] != "_"], lambda name: hasattr(C, "td_" + name))
    assert hasattr(C, "td_gain") and hasattr(C, "td_print")


# ---- schedules and first values -----------------------------------------------------------

SCHEDULES = {
    "StepLR": ("td_step_lr(.1, t, 3, .5)", dict(step_size=3, gamma=.5)),
    "MultiStepLR": ("td_multi_step_lr(.1, t, (double[]){ 2, 5, 5 }, 3, .5)", dict(milestones=[2, 5, 5], gamma=.5)),
    "ExponentialLR": ("td_exponential_lr(.1, t, .9)", dict(gamma=.9)),
    "ConstantLR": ("td_constant_lr(.1, t, .25, 4)", dict(factor=.25, total_iters=4)),
    "LinearLR": ("td_linear_lr(.1, t, .2, .9, 6)", dict(start_factor=.2, end_factor=.9, total_iters=6)),
    "PolynomialLR": ("td_polynomial_lr(.1, t, 7, 2)", dict(total_iters=7, power=2)),
    "CosineAnnealingLR": ("td_cosine_annealing_lr(.1, t, 8, .01)", dict(T_max=8, eta_min=.01)),
    "CosineAnnealingWarmRestarts": ("td_cosine_annealing_warm_restarts(.1, t, 3, 2, .01)", dict(T_0=3, T_mult=2, eta_min=.01)),
    "LinearWarmup": ("td_linear_warmup(.1, t, 4, 11)", dict(warmup_steps=4, total_steps=11)),
    "WSD": ("td_wsd(.1, t, 3, 4, 5, .2)", dict(warmup_steps=3, stable_steps=4, decay_steps=5, min_lr_ratio=.2)),
    "OneCycleLR": ("td_one_cycle_lr(.5, t, 16, .3, 25, 1e4)", dict(max_lr=.5, total_steps=16, cycle_momentum=False)),
}


def test_schedules_are_those_of_python(tmp_path):
    import shutil
    import subprocess
    compiler = os.environ.get("TREADLE_CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler")
    lines = "\n".join(f"double s{i}(int t) {{ return {call}; }}" for i, (call, _) in enumerate(SCHEDULES.values()))
    (tmp_path / "s.c").write_text(f"#include <treadle/schedules.h>\n{lines}\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-std=c11", "-I", HEADERS.parent, "-o", tmp_path / "s.so", tmp_path / "s.c",
                    "-lm"], check=True)
    compiled = ctypes.CDLL(str(tmp_path / "s.so"))
    for i, (name, (_, options)) in enumerate(SCHEDULES.items()):
        optimiser = optim.SGD([td.zeros(1, requires_grad=True)], 0.1)
        schedule = getattr(lr_scheduler, name)(optimiser, **options)
        function = getattr(compiled, f"s{i}")
        function.restype = ctypes.c_double
        for t in range(15):
            assert function(t) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-9, abs=1e-15), (name, t)
            optimiser.step()
            schedule.step()


def test_initialisers_fill_as_they_say(tmp_path):
    module = made("embedding", args(num_embeddings=60, embedding_dim=7))
    C.td_trunc_normal_.argtypes = [ctypes.c_void_p] + [ctypes.c_double] * 4
    C.td_orthogonal_.argtypes = [ctypes.c_void_p, ctypes.c_double]
    weight = (ctypes.c_void_p * 1)()
    C.td_parameters(module, weight, 1)

    def now():
        assert C.td_save_module(module, str(tmp_path / "w").encode()) or right()
        return load_file(tmp_path / "w")["weight"]

    def fill(function, *numbers):                       # Python's tensors are no business of a scope of C
        C.td_scope_begin()
        function(weight[0], *numbers)
        C.td_scope_end()
    fill(C.td_trunc_normal_, 1.0, 2.0, 0.0, 2.5)
    w = now()
    assert 0 <= w.min() and w.max() <= 2.5 and 0.6 < w.std() < 0.8 and 1.1 < w.mean() < 1.4
    fill(C.td_orthogonal_, 3.0)
    td.testing.assert_close(now().T @ now(), 9 * td.eye(7), rtol=0, atol=1e-4)
    right()
    C.td_release(module)
    module = made("embedding", args(num_embeddings=6, embedding_dim=50))
    C.td_parameters(module, weight, 1)
    fill(C.td_orthogonal_, 1.0)
    td.testing.assert_close(now() @ now().T, td.eye(6), rtol=0, atol=1e-5)
    C.td_manual_seed(ctypes.c_uint64(5))
    fill(C.td_orthogonal_, 1.0)
    td.manual_seed(5)
    assert (now() == init.orthogonal_(td.zeros(6, 50))).all()
    C.td_release(module)


def test_a_tensor_prints_itself(capfd):
    C.td_full.restype = ctypes.c_void_p
    C.td_scope_begin()
    C.td_ones.restype = ctypes.c_void_p
    one = C.td_ones(Dims(1, (ctypes.c_int64 * 8)(3)), Tensors())
    C.td_print(ctypes.c_void_p(one))
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "tensor([1., 1., 1.])\n"
    C.td_scope_end()


# ---- models -----------------------------------------------------------------------------

def gpt(**given):
    sizes = dict(vocab_size=13, n_positions=9, n_embd=12, n_layer=3, n_head=2)
    flags = {("positions", "rotary"): "rotary", ("norm", "rms"): "rms", ("bias", False): "no_bias", ("tied", False): "untied"}
    settings = {flags.get(item, item[0]): True if item in flags else item[1] for item in given.items()}
    return models.GPT(models.GPTConfig(**sizes, **given)), "gpt", {**sizes, **settings}, [td.randint(0, 13, (2, 7))]


MODELS = {   # name: model of Python, constructor of C, its settings, inputs
    "MLP": lambda: (models.MLP(7, 5, 6, 3), "mlp", dict(sizes=(7, 5, 6, 3)), [x(2, 4, 7)]),
    "MLP with gelu": lambda: (models.MLP(7, 5, 3, activation=nn.GELU), "mlp", dict(sizes=(7, 5, 3), activation="gelu"), [x(4, 7)]),
    "CNN": lambda: (models.CNN(), "cnn", {}, [x(3, 784)]),
    "CNN, smaller": lambda: (models.CNN(4, (3, 5), 6), "cnn", dict(classes=4, channels=(3, 5), hidden=6), [x(2, 1, 28, 28)]),
    "ResNet-20": lambda: (models.resnet20(), "resnet", {}, [x(2, 3, 32, 32)]),
    "ResNet with projections": lambda: (models.ResNet(2, 7, 5, True), "resnet",
                                        dict(blocks=2, classes=7, width=5, projection=True), [x(3, 3, 13, 9)]),
    "ResNet without": lambda: (models.ResNet(1, 2, 3), "resnet", dict(blocks=1, classes=2, width=3), [x(3, 3, 11, 10)]),
    "Forecaster": lambda: (models.Forecaster(), "forecaster", {}, [x(3, 6, 1)]),
    "Forecaster, deeper": lambda: (models.Forecaster(3, 5, 2, 4), "forecaster",
                                   dict(input_size=3, hidden_size=5, num_layers=2, horizon=4), [x(3, 6, 3)]),
    "GPT": lambda: gpt(),
    "GPT of today": lambda: gpt(positions="rotary", norm="rms", activation="swiglu", bias=False, base=50.0),
    "GPT with the rest": lambda: gpt(activation="gelu", tied=False, n_inner=20, eps=0.1, positions="rotary"),
}


def changed(module):
    for p in module.parameters():
        p.data.add_(td.randn_like(p) * 0.1)
    return module


def taken_over(module, c, folder):
    save_file(module.state_dict(), folder / "w.safetensors")
    assert C.td_load_module(c, str(folder / "w.safetensors").encode()) or right()


def given_back(module, c, folder):
    """What C saves Python loads, under the same names."""
    assert C.td_save_module(c, str(folder / "back.safetensors").encode()) or right()
    back = load_file(folder / "back.safetensors")
    assert list(back) == list(load_file(folder / "w.safetensors")) and back.keys() == module.state_dict().keys()
    module.load_state_dict(back)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("training", [False, True])
def test_models_exchange_weights(name, training, tmp_path):
    td.manual_seed(3)
    module, kind, settings, inputs = MODELS[name]()
    changed(module).train(training)
    c = made(kind, args(**settings))
    taken_over(module, c, tmp_path)
    with td.no_grad():
        wanted = module(*inputs)
    found, = run_c(tmp_path, c, inputs, training)
    td.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    # weights that were C's, which running means of a training are now, answer the same in Python
    other = changed(MODELS[name]()[0]).eval()
    given_back(other, c, tmp_path)
    with td.no_grad():
        td.testing.assert_close(other(*inputs), run_c(tmp_path, c, inputs)[0], rtol=1e-5, atol=1e-5)
    C.td_release(c)


@pytest.mark.parametrize("name", MODELS)
def test_models_begin_with_the_same_weights(name, tmp_path):
    td.manual_seed(5)
    module, kind, settings, _ = MODELS[name]()
    C.td_manual_seed(ctypes.c_uint64(5))
    c = made(kind, args(**settings))
    assert C.td_save_module(c, str(tmp_path / "w").encode()) or right()
    found = load_file(tmp_path / "w")
    for key, value in module.state_dict().items():
        assert (found[key] == value).all(), key
    C.td_release(c)


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("GPT")])
def test_a_gpt_of_c_remembers_what_it_has_read(name, tmp_path):
    td.manual_seed(3)
    module, kind, settings, (ids,) = MODELS[name]()
    c = made(kind, args(**settings))
    taken_over(changed(module), c, tmp_path)
    with td.no_grad():
        wanted = module(ids)
    memory, start, scores = td.zeros(0), 0, []
    for n in 3, 1, 2, 1:
        y, memory = run_c(tmp_path, c, [ids[:, start:start + n], memory], results=1)
        scores.append(y)
        start += n
        assert memory.shape == (6, 2, 2, start, 6)
    td.testing.assert_close(td.cat(scores, 1), wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError, match="GPT: expected .* and 9 places at most, not 10"):
        run_c(tmp_path, c, [ids[:, :3], memory])
    C.td_release(c)


@pytest.mark.parametrize("name, settings, inputs, message", [
    ("mlp", dict(sizes=7), None, "MLP: expected 2 sizes at least"),
    ("mlp", dict(sizes=(7, 2, 3), activation="tanh"), None, "activation must be relu or gelu, not tanh"),
    ("mlp", {}, None, "MLP: sizes is missing"),
    ("cnn", dict(channels=(3, 4, 5)), None, "CNN: expected 2 channels, not 3"),
    ("cnn", dict(num_layers=2), None, "CNN: there is no num_layers"),
    ("cnn", {}, (3, 783), "783"),
    ("resnet", {}, (3, 784), "expected 4 dimensions"),
    ("resnet", dict(width=-1), None, "-1"),
    ("forecaster", dict(hidden_size=-1), None, "hidden_size -1"),
    ("forecaster", {}, (3, 5), "LSTM: expected 3 dimensions, not 2"),
    ("gpt", dict(vocab_size=5, n_positions=5, n_embd=5, n_layer=1, n_head=2), None, "n_embd 5 must be divisible by n_head 2"),
    ("gpt", dict(vocab_size=5, n_positions=5, n_embd=4, n_layer=101, n_head=2), None, "n_layer at most 100"),
    ("gpt", dict(vocab_size=5, n_positions=5, n_embd=4, n_layer=1), None, "n_head is missing"),
    ("gpt", dict(vocab_size=5, n_positions=5, n_embd=4, n_layer=1, n_head=2, activation="tanh"), None, "not tanh"),
    ("gpt", dict(vocab_size=5, n_positions=5, n_embd=4, n_layer=1, n_head=2), (5,), "GPT: expected .*, not 1 dimensions"),
])
def test_settings_of_models_are_refused_by_name(name, settings, inputs, message, tmp_path):
    live = td.memory_stats()["live_tensors"]
    with pytest.raises(RuntimeError, match=message):
        module = made(name, args(**settings))
        run_c(tmp_path, module, [x(*inputs)])
    if inputs is None:
        assert td.memory_stats()["live_tensors"] == live
