import treadle as td
x, w = td.ones(3, requires_grad=True), td.ones(2, requires_grad=True)
y = x.clone()
y[1:] = w
g = td.tensor([5., float("inf"), 7.])
y.backward(g)
x.grad, w.grad
g - td.cat([td.zeros(1), w.grad])
