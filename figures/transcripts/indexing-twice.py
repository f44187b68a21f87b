import treadle as td
x = td.tensor([10, 20, 30], requires_grad=False)
x[[0, 0, 1]] += 1
x
x.index_add_(0, td.tensor([0, 0, 1]), td.tensor([1, 1, 1]))
