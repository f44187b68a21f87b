# numbers: any
import time
import treadle as td
from treadle import nn
def seconds(n):
    net, x = nn.LSTM(64, 128), td.randn(n, 32, 64)
    start = time.perf_counter()
    y = net(x)[0].sum()
    middle = time.perf_counter()
    y.backward()
    return middle - start, time.perf_counter() - middle

for n in (32, 64, 128, 256):
    forward, backward = min(seconds(n) for _ in range(5))
    print(f"{n:3d} steps: {forward * 1e3:5.1f} ms forward, {backward * 1e3:5.1f} ms backward")

