import treadle as td
x = td.rand(5, requires_grad=True)
y = x.exp()
print(td.graph.draw((y * y + y).sum()))
