import treadle as td
from treadle.nn.functional import cross_entropy
scores = td.tensor([[50.0] + 9 * [0.0]])
cross_entropy(scores, td.tensor([0])).item()
cross_entropy(scores.softmax(1), td.tensor([0])).item()
