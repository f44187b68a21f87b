# numbers: any
import treadle as td
from treadle import nn
F = nn.functional
def net(norm):
    td.manual_seed(1)
    layers = [nn.Linear(2, 64)]
    for i in range(20):
        layers += [norm(64), nn.ReLU(), nn.Linear(64, 64)]
    return nn.Sequential(*layers, nn.Linear(64, 2))

def train(norm, lr, steps=200):
    model = net(norm)
    opt = td.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    x = td.rand(256, 2) * 2 - 1
    y = (x[:, 0] * x[:, 1] > 0).long()
    for step in range(steps):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    return f"{loss.item():.4f}"

norms = nn.Identity, nn.BatchNorm1d, nn.LayerNorm
for lr in (0.003, 0.03):
    print(lr, *(train(norm, lr) for norm in norms))


