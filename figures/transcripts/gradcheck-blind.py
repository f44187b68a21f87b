import treadle as td
from treadle.autograd import gradcheck
class Product(td.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, x.T @ g

def numbers(*rows):
    return td.tensor(rows, dtype=td.float64, requires_grad=True)

x, symmetric = numbers([1, 2], [3, 4]), numbers([5, 6], [6, 7])
other = numbers([5, 6], [8, 7])
gradcheck(Product.apply, (x, symmetric))
gradcheck(Product.apply, (x, other), raise_exception=False)
