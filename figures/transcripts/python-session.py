import treadle as td
x = td.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = (x[:, 1] * 2).sum(); y
y.backward()
x.grad is x.grad, x.grad.tolist()
x[5]
td.add(x, "five")
print(td.neg.__doc__)
