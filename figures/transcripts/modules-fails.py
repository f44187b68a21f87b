import treadle as td
x = td.linspace(-1, 1, 11)
y = 2 * x + 1
def fit(names):
    line = {name: td.zeros(1, requires_grad=True) for name in "wb"}
    for step in range(100):
        loss = ((line["w"] * x + line["b"] - y) ** 2).mean()
        listed = [line[name] for name in names]
        slopes = td.autograd.grad(loss, listed)
        with td.no_grad():
            for parameter, slope in zip(listed, slopes):
                parameter -= 0.1 * slope
    return round(loss.item(), 4)

fit("wb")
fit("w")
