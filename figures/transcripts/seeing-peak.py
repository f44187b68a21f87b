import treadle as td
from treadle.profiler import profile
x = td.rand(1000, 100, requires_grad=True)
def model(x):
    return (x.exp() * x).tanh().sum()

with profile(profile_memory=True) as p:
    loss = model(x)
    loss.backward()

bytes, held = p.memory_peak()
bytes
for n, operator, line in held:
    print(n, operator)

