# how often the first of n letters is remembered after 300 steps, in per cent: LSTM, LSTM whose gates begin open, one look
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
from treadle import nn
F = nn.functional
LETTERS, WIDTH = 8, 32

class Lstm:
    def __init__(self, gates_open=False):
        self.net = nn.LSTM(WIDTH, WIDTH)
        if gates_open:
            with td.no_grad():
                self.net.bias_ih_l0[WIDTH:2 * WIDTH] = 3.0
    def __call__(self, x):
        return self.net(x.transpose(0, 1))[0][-1]
    def parameters(self):
        return self.net.parameters()

class Look:
    def __init__(self):
        self.net = nn.Linear(WIDTH, 3 * WIDTH)
    def __call__(self, x):
        q, k, v = self.net(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q[:, -1:], k, v).squeeze(1)
    def parameters(self):
        return self.net.parameters()

def right(make, n, steps=300):
    td.manual_seed(1)
    letters, reader, out = nn.Embedding(2 * LETTERS, WIDTH), make(), nn.Linear(WIDTH, LETTERS)
    weights = [*letters.parameters(), *reader.parameters(), *out.parameters()]
    opt = td.optim.Adam(weights, lr=3e-3)
    for step in range(steps + 1):
        text = td.randint(0, LETTERS, (64 if step < steps else 2048, n))
        first = text[:, 0].clone()
        text[:, 0] += LETTERS
        scores = out(reader(letters(text)))
        if step == steps:
            return (scores.argmax(-1) == first).float().mean().item()
        opt.zero_grad()
        F.cross_entropy(scores, first).backward()
        opt.step()

print("n,lstm,open,attention")
for n in (4, 8, 16, 32, 64, 128, 256):
    print(n, *(f"{100 * right(make, n):.1f}" for make in (Lstm, lambda: Lstm(True), Look)), sep=",")
END
