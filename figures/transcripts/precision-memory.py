import treadle as td
from treadle import nn
def layer(): return nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())

net, x = nn.Sequential(*[layer() for _ in range(8)]), td.randn(4096, 256)
def kept(enabled):
    before = td.memory_stats()["bytes"]
    with td.autocast("cpu", enabled=enabled): y = net(x)
    return (td.memory_stats()["bytes"] - before) / 2**20

kept(False), kept(True)
