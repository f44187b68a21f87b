# mean loss of each fifty steps of the classifier, one epoch, under five rules
PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import math
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader

clothes = FashionMNIST(train=True)
STEPS = 900

def losses(make, falls=False):
    td.manual_seed(0)
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    rule, rate = make(net.parameters())
    found = []
    while True:
        for images, labels in DataLoader(clothes, 64, shuffle=True):
            for group in rule.param_groups:
                group["lr"] = rate * (1 + math.cos(math.pi * len(found) / STEPS)) / 2 if falls else rate
            rule.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            rule.step()
            found.append(loss.item())
            if len(found) == STEPS:
                return [sum(found[i:i + 50]) / 50 for i in range(0, STEPS, 50)]

sgd, adam = td.optim.SGD, td.optim.Adam
columns = [losses(lambda p: (sgd(p, lr=0.02), 0.02)),
           losses(lambda p: (sgd(p, lr=0.02, momentum=0.9), 0.02)),
           losses(lambda p: (adam(p, lr=0.001), 0.001)),
           losses(lambda p: (adam(p, lr=0.001), 0.001), falls=True),
           losses(lambda p: (adam(p, lr=0.02), 0.02))]
print("step,plain,momentum,adam,falling,fast")
for i, row in enumerate(zip(*columns)):
    print(50 * i + 25, *(f"{x:.4f}" for x in row), sep=",")
END
