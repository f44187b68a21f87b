# needs: vocabulary layers exchange plugins kernels cuda-gemm porting
# SPDX-License-Identifier: MIT
"""Results stand where the operands do: every operator and every function made of them, on the emulated device."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import treadle as td

REFUSED = ("not implemented on device cuda", "must be values on the cpu", "step must be one float on the CPU")
FUNCTIONS = """
    t.meshgrid(v4, v3, indexing="ij")
    t.cartesian_prod(v4, v3)
    t.tril_indices(3, 3, device=v4.device)
    t.triu_indices(3, 3, device=v4.device)
    t.linspace(0, 1, 4, device=v4.device)
    t.logspace(0, 1, 4, device=v4.device)
    t.corrcoef(m34)
    t.corrcoef(v4)
    t.unique(i34)
    t.unique(i34, dim=1, return_inverse=True, return_counts=True)
    t.unique_consecutive(i4, return_inverse=True, return_counts=True)
    t.unique(m34, dim=0)
    t.histc(m34, 4)
    t.bincount(i4)
    t.nonzero(i4, as_tuple=True)
    t.bernoulli(m34, 0.5)
    t.normal(0.0, p4)
    t.multinomial(p4, 2)
    m34[i4 % 3]
    m34[[0, 1]]
    m34[m34 > 0]
    m34.new_tensor([1, 2])
    m34.new_full((2,), 3)
    F.one_hot(i4)
    F.pad(m34, (1, 1))
    F.interpolate(b235.unsqueeze(0), scale_factor=2)
    F.batch_norm(b235, None, None, training=True)
    F.scaled_dot_product_attention(b235, b235, b235, is_causal=True)
    F.cross_entropy(m34, i4[:3] % 4, label_smoothing=0.1)
    F.gumbel_softmax(m34, hard=True)
    F.dropout(m34)
    t.nn.Transformer.generate_square_subsequent_mask(3, device=v4.device)
    t.nn.GRU(5, 3, bidirectional=True).double().to(v4.device)(b235)
    t.nn.LSTM(5, 3).double().to(v4.device)(b235)
    t.nn.MultiheadAttention(5, 1).double().to(v4.device)(b235, b235, b235)
    t.nn.TransformerEncoderLayer(5, 1, 8).double().to(v4.device)(b235)
    t.func.hessian(lambda x: (x * x).sum())(v4)
    t.func.vmap(lambda x: x * 2)(v4)
    t.nn.utils.parameters_to_vector([m34, v4])
""".strip().splitlines()


def tensors(y):
    if isinstance(y, td.Tensor):
        return [y]
    return [x for part in y for x in tensors(part)] if isinstance(y, (tuple, list)) else []


def there(x):
    return x.cuda() if isinstance(x, td.Tensor) else [there(y) for y in x] if isinstance(x, list) else x


def wrong(function):
    """What a call says if it fails or leaves a result on the host; "" if it does not."""
    try:
        strays = [x for x in tensors(function()) if x.device.type != "cuda"]
    except Exception as error:
        return "" if any(text in str(error) for text in REFUSED) else f"{type(error).__name__}: {error}"
    return f"a result of shape {list(strays[0].shape)} is on the host" if strays else ""


def expressions():
    import test_vocabulary
    names = test_vocabulary.operands()
    device = {name: there(x) for name, x in names.items()}
    for text in [row[0] for row in test_vocabulary.GOLDEN if "t.tensor(" not in row[0]] + [f.strip() for f in FUNCTIONS]:
        y = eval(text.replace(".to(v4.device)", ""), dict(names))
        if tensors(y):
            yield text, wrong(lambda: eval(text, dict(device)))


def operators():
    from registry_cases import OPERATORS, REFUSALS, arguments
    for name, op in OPERATORS.items():
        for call in op.calls if name != "to_device" else []:
            args, named = arguments(op, call)
            try:
                op.function(*args, **named)
            except REFUSALS:                            # numbers drawn as no place or class should be
                continue
            if tensors([*args, *named.values()]):
                yield name, wrong(lambda: op.function(*map(there, args), **{k: there(x) for k, x in named.items()}))


@pytest.mark.parametrize("kind", ["operators", "expressions"])
def test_results_stand_where_the_operands_do(kind):
    done = subprocess.run([sys.executable, __file__, kind], capture_output=True, text=True, timeout=300, env={
        **os.environ, "TREADLE_CUDA": "emulate", "PYTHONPATH": os.pathsep.join([str(Path(td.__file__).parents[1]), *sys.path])})
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert len(answers) > 60 and [a for a in answers if a[1]] == []


if __name__ == "__main__":
    print(json.dumps(list({"operators": operators, "expressions": expressions}[sys.argv[1]]())))
