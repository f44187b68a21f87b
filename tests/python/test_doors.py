# needs: saving-more seldom
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
from treadle import nn, optim
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
