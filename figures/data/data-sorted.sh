# share of 1000 test images named correctly, while the classifier sees the training images shuffled, or sorted by class
PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST

clothes = FashionMNIST(train=True)
test_images, test_labels = (t[:1000] for t in (lambda d: (d.data, d.targets))(FashionMNIST(train=False)))
test_images, test_labels = test_images.reshape(1000, 784).float() / 255, test_labels.long()
images, labels = clothes.data.reshape(60000, 784), clothes.targets.long()

def learn(order):
    td.manual_seed(0)
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    sgd = td.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    found = []
    for step in range(937):
        rows = order[64 * step:64 * step + 64]
        sgd.zero_grad()
        nn.functional.cross_entropy(net(images[rows].float() / 255), labels[rows]).backward()
        sgd.step()
        if step % 25 == 24:
            with td.no_grad():
                found.append(100 * (net(test_images).argmax(1) == test_labels).float().mean().item())
    return found

td.manual_seed(1)
shuffled, by_class = learn(td.randperm(60000)), learn(labels.argsort())
print("step,shuffled,sorted")
for i, (a, b) in enumerate(zip(shuffled, by_class)):
    print(f"{25 * i + 25},{a:.1f},{b:.1f}")
END
