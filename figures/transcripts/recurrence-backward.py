# numbers: within 1e-3
import treadle as td
from treadle import nn
_ = td.manual_seed(0)
y, last = nn.RNN(1, 1, bidirectional=True)(td.tensor([[1.], [0.], [0.]]).unsqueeze(1))
backward = y[:, 0, 1].tolist()
print("ends as", last[1].item())
print("right  ", backward)
print("wrong  ", backward[::-1])
