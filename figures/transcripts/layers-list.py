import treadle as td
from treadle import nn, optim
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]

optim.SGD(Deep().parameters(), lr=0.1)
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = self.first

net = Twice()
len(list(net.parameters())), len(net.state_dict())
