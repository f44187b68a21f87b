# SPDX-License-Identifier: MIT
# Tangled from the chapter "folds": edit that, not this file.
# needs: kernels cuda-gemm plugins networks python
import sys
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader

device = sys.argv[1]
td.manual_seed(0)
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(),
                    nn.Linear(256, 128), nn.ReLU(),
                    nn.Linear(128, 10)).to(device)
sgd = td.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
train = DataLoader(FashionMNIST(train=True), 64, shuffle=True)

for step, (pixels, target) in enumerate(train):
    scores = net(pixels.to(device))
    loss = nn.functional.cross_entropy(scores, target.to(device))
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
    if step == 20:
        break
