# What a module costs beside a small addition: microseconds each, the least of seven batches.
PYTHONPATH=${BUILD:-build}/python TREADLE_THREADS=1 ${PYTHON:-/usr/bin/python3} - <<'PYTHON'
import timeit
import treadle as td
from treadle import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out, self.plain = nn.Linear(1, 16), nn.Linear(16, 1), 1.0

    def forward(self, x):
        return self.out(self.hidden(x).relu())


net, a = Net(), td.ones(4)
x = td.linspace(-1, 1, 64).view(64, 1)
opt = optim.SGD(net.parameters(), lr=0.01)


def step():
    opt.zero_grad()
    ((net(x) - x) ** 2).mean().backward()
    opt.step()


step()
print("what,us")
for what, call in (("small addition", lambda: a + a), ("plain attribute", lambda: net.plain), ("a parameter", lambda: net.out),
                   ("list of parameters", lambda: list(net.parameters())), ("step of SGD", opt.step), ("step of training", step)):
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    print(f"{what},{min(timer.repeat(7, max(1, count // 5))) / max(1, count // 5) * 1e6:.3f}")
PYTHON
