import treadle as td
from treadle.autograd import gradcheck
class Quotient(td.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g / b, -g * a / b

def numbers(*x):
    return td.tensor(x, dtype=td.float64, requires_grad=True)

gradcheck(Quotient.apply, (numbers(3, 5), numbers(1, 1)))
try: gradcheck(Quotient.apply, (numbers(3, 5), numbers(2, 4)))
except RuntimeError as error: print(error)

