# numbers: within 1e-4
import treadle as td
_ = td.manual_seed(0)
x = td.ones(8)
td.dropout(x, 0.25, True)
td.dropout(x, 0.25, True)
td.dropout(td.ones(100000), 0.25, True).mean().item()
