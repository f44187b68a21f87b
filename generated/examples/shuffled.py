# SPDX-License-Identifier: MIT
# Tangled from the chapter "convolution": edit that, not this file.
# needs: layers
"""Do networks notice that the pixels of all pictures are shuffled?"""
import sys
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader
F = nn.functional


def pictures(train, n):
    x, y = next(iter(DataLoader(FashionMNIST(train=train), n)))
    return x.flatten(1), y


def matrix():
    return nn.Sequential(nn.Linear(784, 64), nn.ReLU(),
                         nn.Linear(64, 10))


# convolution: a network that looks through windows
def windows():
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 5 * 5, 10))


def right(make, order, epochs=8):
    td.manual_seed(0)
    net = make()
    (x, y), (x2, y2) = learn, ask
    adam = td.optim.Adam(net.parameters(), lr=2e-3)
    for i in list(range(0, len(y), 64)) * epochs:
        adam.zero_grad()
        F.cross_entropy(net(x[i:i + 64, order]), y[i:i + 64]).backward()
        adam.step()
    with td.no_grad():
        hits = net(x2[:, order]).argmax(1) == y2
    return 100 * hits.float().mean().item()


td.manual_seed(0)
learn, ask = pictures(True, 6000), pictures(False, 2000)
make = windows if "windows" in sys.argv else matrix
for name, order in (("as they are", td.arange(784)),
                    ("shuffled", td.randperm(784))):
    print(f"pictures {name:12} {right(make, order):.1f} % right")
print(sum(w.numel() for w in make().parameters()), "weights")
