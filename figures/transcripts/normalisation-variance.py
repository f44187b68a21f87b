# numbers: any
import treadle as td
def three(mean, n=1000):
    td.manual_seed(1)
    x = td.randn(n) + mean
    one = (x * x).mean() - x.mean() ** 2
    two = ((x - x.mean()) ** 2).mean()
    m = s = td.tensor(0.0)
    for k, new in enumerate(x, 1):
        d = new - m
        m = m + d / k
        s = s + d * (new - m)
    exact = x.double().var(correction=0)
    return [f"{v.item():9.6f}" for v in (one, two, s / n, exact)]

for mean in (0, 10, 100, 1000, 10000, 100000):
    print(f"{mean:6}", *three(mean))


