# how often the first of n letters is remembered after 300 steps, in per cent: plain, LSTM, LSTM whose gates begin open
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'END_OF_SCRIPT'
import treadle as td
from treadle import nn
F = nn.functional
LETTERS, WIDTH = 8, 32

def opened():
    net = nn.LSTM(WIDTH, WIDTH)
    with td.no_grad():
        net.bias_ih_l0[WIDTH:2 * WIDTH] = 3.0
    return net

def right(make, n, steps=300):
    td.manual_seed(1)
    letters, reader, out = nn.Embedding(2 * LETTERS, WIDTH), make(), nn.Linear(WIDTH, LETTERS)
    adam = td.optim.Adam([*letters.parameters(), *reader.parameters(), *out.parameters()], lr=3e-3)
    for step in range(steps + 1):
        text = td.randint(0, LETTERS, (n, 64 if step < steps else 2048))
        first = text[0].clone()
        text[0] += LETTERS
        scores = out(reader(letters(text))[0][-1])
        if step == steps:
            return f"{100 * (scores.argmax(-1) == first).float().mean().item():.1f}"
        adam.zero_grad()
        F.cross_entropy(scores, first).backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        adam.step()

print("n,rnn,lstm,open")
for n in (4, 8, 16, 32, 64):
    print(n, right(lambda: nn.RNN(WIDTH, WIDTH), n), right(lambda: nn.LSTM(WIDTH, WIDTH), n), right(opened, n), sep=",")
END_OF_SCRIPT
