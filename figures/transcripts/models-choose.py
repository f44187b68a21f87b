import treadle as td
F = td.nn.functional
scores = td.tensor([2.0, 1.0, 0.0, -1.0])
for temperature in (2.0, 1.0, 0.5):
    print(temperature, [f"{p:.3f}" for p in F.softmax(scores / temperature, -1).tolist()])

