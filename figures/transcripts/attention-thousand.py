# numbers: within 1e-3
import treadle as td

scores = td.tensor([[1., 2., 3.]])
print(td.softmax(scores, -1))
print(td.softmax(scores - 1e4, -1))
