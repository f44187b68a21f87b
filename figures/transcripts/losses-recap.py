import treadle as td
from treadle.nn.functional import cross_entropy
cross_entropy(td.tensor([1000.0, 0.0, 0.0]), td.tensor(0))
x = td.tensor([2.0, 1.0, 0.0], requires_grad=True)
loss = cross_entropy(x, td.tensor(0))
loss.backward()
loss.item(), x.grad
