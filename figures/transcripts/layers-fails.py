import treadle as td
x = td.linspace(-1, 1, 64).view(64, 1)
class Net:
    def __init__(self):
        self.w1, self.b1 = td.randn(16, 1), td.zeros(16)
        self.w2, self.b2 = td.randn(1, 16) / 4, td.zeros(1)
    def parameters(self):
        return [self.w1, self.w2, self.b2]
    def __call__(self, x):
        h = td.linear(x, self.w1, self.b1).relu()
        return td.linear(h, self.w2, self.b2)

seed = td.manual_seed(0)
net = Net()
for p in net.parameters():
    p.requires_grad = True

for step in range(2000):
    loss = ((net(x) - (x - 0.5).abs()) ** 2).mean()
    loss.backward()
    with td.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None

round(loss.item(), 4), net.b1.count_nonzero().item()
