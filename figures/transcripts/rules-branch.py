import treadle as td
x = td.tensor([0., 4.], requires_grad=True)
td.where(x > 0, x.sqrt(), 0.).sum().backward()
x.grad
x.grad = None
safe = td.where(x > 0, x, 1.)
td.where(x > 0, safe.sqrt(), 0.).sum().backward()
x.grad
