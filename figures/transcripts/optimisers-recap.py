import treadle as td
def walk(rule, steps=15, **settings):
    p = td.tensor([10.0, 1.6], requires_grad=True)
    optimiser = rule([p], **settings)
    for step in range(steps):
        optimiser.zero_grad()
        loss = 0.5 * p[0] ** 2 + 10 * p[1] ** 2
        loss.backward()
        optimiser.step()
    return round(loss.item(), 3)

walk(td.optim.SGD, lr=0.085)
walk(td.optim.SGD, lr=0.05, momentum=0.7)
walk(td.optim.Adam, lr=1.0)
