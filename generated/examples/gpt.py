# SPDX-License-Identifier: MIT
# Tangled from the chapter "attention": edit that, not this file.
# needs: layers
"""A GPT of a page: reads a text, and learns to write like it."""
import math
import sys
import treadle as td
from treadle import nn
from treadle.nn import functional as F

PLACES, WIDTH, HEADS, LAYERS = 64, 96, 4, 3
BATCH, STEPS, RATE = 16, int((sys.argv + ["2500"])[2]), 3e-3

td.manual_seed(1)
# attention: read a text as numbers
text = open(sys.argv[1], encoding="utf-8").read()
letters = sorted(set(text))
number = {letter: i for i, letter in enumerate(letters)}
data = td.tensor([number[letter] for letter in text])
learn, ask = data[:-100000], data[-100000:]

# attention: draw the weights of a GPT
def weight(rows, columns, spread=0.02):
    return (td.randn(rows, columns) * spread).requires_grad_()


def layer(last=0.02 / math.sqrt(2 * LAYERS)):
    return {"ask": weight(3 * WIDTH, WIDTH),
            "mix": weight(WIDTH, WIDTH, last),
            "up": weight(4 * WIDTH, WIDTH),
            "down": weight(WIDTH, 4 * WIDTH, last)}


table = weight(len(letters), WIDTH)
layers = [layer() for _ in range(LAYERS)]
weights = [table, *(w for each in layers for w in each.values())]


# attention: let each place look back
def heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def look(x, w):
    q, k, v = map(heads, F.linear(x, w["ask"]).chunk(3, -1))
    q, k = F.rotary_embedding(q), F.rotary_embedding(k)
    seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(seen.transpose(1, 2).flatten(2), w["mix"])


# attention: let each place think
def think(x, w):
    return F.linear(F.gelu(F.linear(x, w["up"])), w["down"])


# attention: guess the next letter at each place
def norm(x):
    return F.rms_norm(x, (WIDTH,))


def gpt(text):
    x = F.embedding(text, table)
    for w in layers:
        x = x + look(norm(x), w)
        x = x + think(norm(x), w)
    return F.linear(norm(x), table)


# attention: ask how surprised the model is
def passages(data):
    starts = td.randint(0, len(data) - PLACES - 1, (BATCH, 1))
    return data[starts + td.arange(PLACES + 1)]


def surprise(data):
    rows = passages(data)
    scores = gpt(rows[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1),
                           rows[:, 1:].flatten())


# attention: let the model write
def write(length, warmth=0.8):
    said = td.tensor([[number["\n"]]])
    with td.no_grad():
        for _ in range(length):
            scores = gpt(said[:, -PLACES:])[0, -1] / warmth
            chosen = td.multinomial(F.softmax(scores, -1), 1)
            said = td.cat([said, chosen.unsqueeze(0)], 1)
    return "".join(letters[i] for i in said[0, 1:].tolist())


print(f"{sum(w.numel() for w in weights):,} weights,",
      f"{len(learn):,} letters to learn from,",
      f"read {BATCH * PLACES * STEPS / len(learn):.1f} times")
adam = td.optim.AdamW(weights, RATE, (0.9, 0.99), weight_decay=0.1)
rate = td.optim.lr_scheduler.OneCycleLR(adam, RATE, STEPS + 1,
                                        pct_start=0.1)
for step in range(STEPS + 1):
    if step % (STEPS // 10) == 0:
        # attention: look how far it has come
        with td.no_grad():
            asked = sum(surprise(ask).item() for _ in range(20)) / 20
        print(f"step {step:4d}, surprise {asked:.2f}", flush=True)
        if step in (0, STEPS // 10, STEPS):
            print("-" * 44, write(420 if step == STEPS else 130),
                  "-" * 44, sep="\n")
    # attention: take a step
    adam.zero_grad()
    loss = surprise(learn)
    loss.backward()
    nn.utils.clip_grad_norm_(weights, 1.0)
    adam.step()
    rate.step()
