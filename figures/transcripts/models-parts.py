import treadle as td
F = td.nn.functional
x = td.tensor([3.0, 4.0])
F.rms_norm(x, (2,)), F.layer_norm(x, (2,))
F.rms_norm(100 * x, (2,)), F.layer_norm(x + 100, (2,))
gate, up = td.tensor([2.0, -2.0, -9.0]), td.tensor([3.0, 3.0, 3.0])
F.silu(gate) * up
