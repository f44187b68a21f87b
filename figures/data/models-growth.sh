# numbers: within 1e-3
# million multiplications for writing letters, with the sizes of the GPT of a page, without a cache and with one
PYTHONPATH=${BUILD:-build}/python ${PYTHON:-/usr/bin/python3} - <<'PYTHON'
import treadle as td
from treadle import models, nn

F, work = nn.functional, 0
inside, attention, scores = nn.Linear.forward, F.scaled_dot_product_attention, F.linear


def forward(layer, x):
    global work
    work += x.numel() * layer.out_features
    return inside(layer, x)


def look(q, k, *rest):
    global work
    work += 2 * q.numel() * k.shape[-2]
    return attention(q, k, *rest)


def score(x, w):
    global work
    work += x.numel() * len(w)
    return scores(x, w)


nn.Linear.forward, F.scaled_dot_product_attention, F.linear = forward, look, score
model = models.GPT(models.GPTConfig(65, 257, 96, 3, 4, positions="rotary", norm="rms", bias=False)).eval()
print("letters,without,with")
for letters in 8, 16, 32, 64, 128, 256:
    row = []
    for kept in False, True:
        work = 0
        model.generate(td.zeros(1, 1, dtype=td.int64), letters, use_cache=kept)
        row.append(f"{work / 1e6:.2f}")
    print(letters, *row, sep=",")
PYTHON
