# numbers: within 1e-5
import treadle as td
x = td.tensor([10000., 10001., 10002.])
one_pass = (x * x).mean() - x.mean() ** 2
one_pass.item(), x.var(correction=0).item()
