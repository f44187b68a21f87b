import treadle as td
class Quotient(td.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g / b, g * a / b / b

a = td.tensor([1., 2.], dtype=td.float64, requires_grad=True)
b = td.tensor([4., 5.], dtype=td.float64, requires_grad=True)
td.autograd.gradcheck(Quotient.apply, (a, b), raise_exception=False)
try: td.autograd.gradcheck(Quotient.apply, (a, b))
except RuntimeError as error: print(error)

