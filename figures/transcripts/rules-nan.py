import treadle as td
x = td.tensor([-1., 2.], requires_grad=True)
g = td.tensor([float("inf"), 1.])
td.relu(x).backward(g)
x.grad
g * (x > 0)
