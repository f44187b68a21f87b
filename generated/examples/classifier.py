# SPDX-License-Identifier: MIT
# Tangled from the chapter "networks": edit that, not this file.
# needs: python
"""Trains a network of three layers on images of clothes or digits."""
import argparse
import sys

import treadle as td
from treadle import nn
from treadle.datasets import MNIST, FashionMNIST
from treadle.utils.data import DataLoader

# networks: train the network for an epoch, in Python
def train_epoch(net, sgd, loader, losses, limit, epoch):
    """Appends the loss of each batch to losses; stops at limit."""
    for step, (images, labels) in enumerate(loader, 1):
        if limit and len(losses) >= limit:
            break
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == len(loader):
            print(f"\repoch {epoch}  step {step}/{len(loader)}  "
                  f"loss {losses[-1]:.4f} ", end="", file=sys.stderr)
    print(file=sys.stderr)

# networks: count the correct answers, in Python
@td.no_grad()
def count_correct(net, data):
    """How many of the dataset's images the network names correctly."""
    return sum((net(images).argmax(1) == labels).sum().item()
               for images, labels in DataLoader(data, 1000))

# networks: read the options, in Python
def options():
    """The settings, as in the program in C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", metavar="FILE")
    return parser.parse_args()

# networks: run the training, in Python
def main():
    o = options()
    td.manual_seed(o.seed)
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(),
                        nn.Linear(256, 128), nn.ReLU(),
                        nn.Linear(128, 10))
    images = MNIST if o.mnist else FashionMNIST
    train = images(o.data, train=True)
    test = images(o.data, train=False)
    loader = DataLoader(train, 64, shuffle=True)
    sgd = td.optim.SGD(net.parameters(), lr=o.lr, momentum=0.9)
    losses = []
    # networks: train epoch by epoch, in Python
    for epoch in range(1, o.epochs + 1):
        before = len(losses)
        if o.steps and before >= o.steps:
            break
        train_epoch(net, sgd, loader, losses, o.steps, epoch)
        right = count_correct(net, test)
        mean = sum(losses[before:]) / len(losses[before:])
        print(f"epoch {epoch}: mean loss {mean:.4f}, "
              f"{100 * right / len(test):.2f} % of {len(test)} test images "
              "right", flush=True)
    if o.losses:
        with open(o.losses, "w", encoding="ascii") as record:
            record.writelines(f"{loss:.9g}\n" for loss in losses)


if __name__ == "__main__":
    main()
