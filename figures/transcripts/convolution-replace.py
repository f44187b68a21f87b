import treadle as td

w = td.tensor([1., 0., 2., -1.])
windows = [(0, 0), (0, 1), (1, 0), (1, 1)]
added, replaced = td.zeros(4, 4), td.zeros(4, 4)
for t, (i, j) in enumerate(windows):
    added[i:i + 3, j:j + 3] += w[t]
    replaced[i:i + 3, j:j + 3] = w[t]

added.sum().item(), replaced.sum().item()
