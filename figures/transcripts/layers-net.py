import treadle as td
from treadle import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(1, 16)
        self.out = nn.Linear(16, 1)
    def forward(self, x):
        return self.out(self.hidden(x).relu())

net = Net(); net
for name, p in net.named_parameters(): print(name, list(p.shape))

net.out.weight = td.zeros(1, 16)
bad = {"hidden.weight": td.zeros(2, 2), "hiden.bias": td.zeros(16)}
net.load_state_dict(bad)
