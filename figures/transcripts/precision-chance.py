import treadle as td
td.manual_seed(0)
x = td.full((100000,), 1 + 2**-9)
values, counts = td.unique(td.amp.stochastic_round(x).float(), return_counts=True)
values.tolist(), counts.tolist()
td.amp.stochastic_round(x).double().mean().item(), x[0].item()
