# numbers: within 1e-3
import treadle as td
from treadle import nn
_ = td.manual_seed(0)
cell, x, h = nn.GRUCell(1, 1), td.ones(1, 1), td.ones(1, 1)
def outside(cell):
    rows = cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh, td.zeros(3)
    return td.gru_cell(x, h, *rows).item()

print(cell(x, h).item(), outside(cell))
_ = nn.init.zeros_(cell.bias_hh)
print(cell(x, h).item(), outside(cell))
