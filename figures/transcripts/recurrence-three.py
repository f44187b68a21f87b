import treadle as td
x = td.tensor([1.0, 0.0, 0.0], dtype=td.float64, requires_grad=True)
u = td.tensor(0.5, dtype=td.float64, requires_grad=True)
h, states = td.zeros((), dtype=td.float64), []
for t in range(3):
    h = td.tanh(x[t] + u * h)
    states.append(round(h.item(), 4))

states
h.backward()
u.grad, x.grad
