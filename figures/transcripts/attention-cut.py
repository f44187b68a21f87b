import treadle as td

x = td.arange(12).reshape(1, 3, 4)
print(x.unflatten(-1, (2, 2)).transpose(1, 2)[0, 0].tolist())
print(x.reshape(1, 2, 3, 2)[0, 0].tolist())
