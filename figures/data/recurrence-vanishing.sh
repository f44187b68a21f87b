# numbers: within 1e-3
# norm of the derivative of the last state by the input k steps ago, 32 units, mean of 8 seeds
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
from treadle import nn

T, M = 60, 32

def fading(make, seed):
    td.manual_seed(seed)
    net, x = make(), td.randn(T, 1, M, requires_grad=True)
    net(x)[0][-1].backward(td.randn(1, M))
    size = (x.grad ** 2).sum([1, 2]).sqrt()
    return (size / size[-1]).flip(0).log()

def open_lstm():
    net = nn.LSTM(M, M)
    with td.no_grad():
        net.bias_ih_l0[M:2 * M] = 3.0
    return net

kinds = {"rnn": lambda: nn.RNN(M, M), "gru": lambda: nn.GRU(M, M),
         "lstm": lambda: nn.LSTM(M, M), "open": open_lstm}
lines = [(sum(fading(make, s) for s in range(8)) / 8).exp().tolist()
         for make in kinds.values()]
print("k", *kinds, sep=",")
for k in range(0, T, 2):
    print(k, *(f"{line[k]:.3g}" for line in lines), sep=",")
END
