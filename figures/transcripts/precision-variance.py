import treadle as td
td.manual_seed(0)
x = (td.randn(1000) + 30).to(td.bfloat16)
(x * x).mean() - x.mean() * x.mean()
x.var()
