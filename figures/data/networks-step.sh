# numbers: within 1e-3
# what is alive after each call of one training step of the classifier, beside the parameters
PYTHONPATH=${BUILD:-build}/python "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
from treadle import nn

td.manual_seed(0)
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
sgd = td.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
images, labels = td.rand(64, 784), td.randint(0, 10, (64,))

def step(say):
    start = td.memory_stats()["bytes"], td.live_node_count()
    def tell(name):
        if say:
            print(f"{name},{(td.memory_stats()['bytes'] - start[0]) / 1e3:.0f},{td.live_node_count() - start[1]}")
    tell("before")
    sgd.zero_grad()
    tell("clear")
    scores = net(images)
    tell("forward")
    loss = nn.functional.cross_entropy(scores, labels)
    tell("loss")
    loss.backward()
    tell("backward")
    sgd.step()
    tell("step")

print("call,kilobytes,nodes")
step(False)
step(True)
END
