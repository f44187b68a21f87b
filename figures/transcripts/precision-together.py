import treadle as td
td.manual_seed(0)
x = td.full((100000,), 1 + 2**-9)
one = (x * 2**7 + td.rand(())).floor() * 2**-7
one.double().mean().item(), td.amp.stochastic_round(x).double().mean().item()
