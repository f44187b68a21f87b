import treadle as td
F = td.nn.functional
q, k = td.tensor([[1.0, 0.0]]), td.tensor([[0.6, 0.8]])
def turned(x, place):
    return F.rotary_embedding(x, td.tensor([float(place)]))

turned(q, 3), turned(k, 1)
for asks, kept in (3, 1), (12, 10), (2, 0):
    print(asks, kept, (turned(q, asks) * turned(k, kept)).sum().item())

(turned(q, 0) * turned(k, 1)).sum().item()
