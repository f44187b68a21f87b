import treadle as td
def surprise(scores, truth):
    p = scores.exp() / scores.exp().sum()
    return -p[truth].log()

surprise(td.tensor([2.0, 1.0, 0.0]), 0)
surprise(td.tensor([1000.0, 0.0, 0.0]), 0)
