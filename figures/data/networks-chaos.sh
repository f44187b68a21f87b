# two trainings of the classifier, in the second of which one weight differs in its last bit; largest difference of losses so far in each window of ten steps
PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader

clothes = FashionMNIST(train=True)

def losses(nudge):
    td.manual_seed(0)
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    with td.no_grad():
        w = net.parameters()
        w = next(iter(w))
        w[0, 300] *= 1 + nudge
    sgd = td.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    found = []
    for images, labels in DataLoader(clothes, 64, shuffle=True):
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        sgd.step()
        found.append(loss.item())
    return found

a, b = losses(0.0), losses(2.0 ** -23)
print("step,difference")
for i in range(0, len(a) - 9, 10):
    print(f"{i + 5},{max(abs(x - y) for x, y in zip(a[i:i + 10], b[i:i + 10])):.3g}")
END
