# test accuracy in per cent of one network, trained with the right rule of a quotient and with one that lacks a sign
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import treadle as td
from treadle import nn
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader
F = nn.functional


class Quotient(td.autograd.Function):
    sign = -1

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g / b, Quotient.sign * g * a / b / b


def normalised(h):
    return Quotient.apply(h, ((h * h).mean(1, True).sqrt() + 1e-5).expand(h.shape))


def course(sign):
    Quotient.sign = sign
    td.manual_seed(1)
    a, b, c = nn.Linear(784, 64), nn.Linear(64, 64), nn.Linear(64, 10)
    sgd = td.optim.SGD([p for m in (a, b, c) for p in m.parameters()], lr=0.1, momentum=0.9)

    def net(x):
        return c(F.relu(normalised(b(F.relu(normalised(a(x.flatten(1))))))))

    step, all_right = 0, []
    test = list(DataLoader(FashionMNIST(train=False), 1000))
    for x, t in DataLoader(FashionMNIST(train=True), 64, shuffle=True):
        if step % 75 == 0:
            with td.no_grad():
                all_right.append(sum((net(x).argmax(1) == t).sum().item() for x, t in test) / 100)
        if step == 900:
            return all_right
        sgd.zero_grad()
        F.cross_entropy(net(x), t).backward()
        sgd.step()
        step += 1


right, wrong = course(-1), course(1)
print("step,right,wrong")
for k, (r, w) in enumerate(zip(right, wrong)):
    print(f"{75 * k},{r:.1f},{w:.1f}")
END
