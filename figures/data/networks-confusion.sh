# what the classifier calls the test images after two epochs: row the truth, column the name, in percent
PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader

td.manual_seed(0)
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
sgd = td.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for epoch in range(2):
    for images, labels in DataLoader(FashionMNIST(train=True), 64, shuffle=True):
        sgd.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        sgd.step()
counts = [[0] * 10 for _ in range(10)]
with td.no_grad():
    for images, labels in DataLoader(FashionMNIST(train=False), 1000):
        for truth, name in zip(labels.tolist(), net(images).argmax(1).tolist()):
            counts[truth][name] += 1
print("truth,name,percent")
for truth, row in enumerate(counts):
    for name, n in enumerate(row):
        print(f"{truth},{name},{100 * n / sum(row):.1f}")
END
