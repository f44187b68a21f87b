import treadle as td
w = td.tensor([1., 2.], requires_grad=True)
y = td.stack([w, w, w])
first, last = y[0], y[2]
y[0] = 10 * w
last.mul_(w)
y.sum().backward()
w.grad
first.tolist(), first.requires_grad
