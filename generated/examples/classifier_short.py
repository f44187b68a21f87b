# SPDX-License-Identifier: MIT
# Tangled from the chapter "first-cloth": edit that, not this file.
# needs: networks python
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader

td.manual_seed(0)
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(),
                    nn.Linear(256, 128), nn.ReLU(),
                    nn.Linear(128, 10))
sgd = td.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
train = DataLoader(FashionMNIST(train=True), 64, shuffle=True)
test = DataLoader(FashionMNIST(train=False), 1000)

for epoch in range(1, 6):
    for pixels, target in train:
        loss = nn.functional.cross_entropy(net(pixels), target)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    with td.no_grad():
        right = sum((net(x).argmax(1) == t).sum().item()
                    for x, t in test)
    print(f"epoch {epoch}: {right / 100:.1f} % right")
