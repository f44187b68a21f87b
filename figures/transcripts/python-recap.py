import gc, weakref, treadle as td
p = td.ones(3, requires_grad=True)
(p * p).sum().backward()
p.grad is p.grad
p.grad.mark = "mine"
r = weakref.ref(p.grad); gc.collect() > -1, r().mark
handle = p.register_hook(lambda g: 1 / 0)

p.sum().backward()
p.grad.tolist(), p.grad.mark
p + td.ones(4)
