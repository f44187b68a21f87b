import treadle as td
from treadle import nn
net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
def tell(part, x, y): print(type(part).__name__, y.dtype)

for part in net: _ = part.register_forward_hook(tell)

with td.autocast("cpu"):
    y = net(td.randn(2, 4))
    loss = nn.functional.cross_entropy(y, td.tensor([0, 2]))

loss.dtype
loss.backward()
net[0].weight.grad.dtype
