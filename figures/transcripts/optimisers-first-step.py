import treadle as td
def first_steps(slope):
    for rule in td.optim.SGD, td.optim.Adam:
        w = td.zeros(1, requires_grad=True)
        step = rule([w], lr=0.1)
        (slope * w).sum().backward()
        step.step()
        print(f"slope {slope:<6g}", rule.__name__, f"{-w.item():g}")

for slope in (1000, 1, 0.001):
    first_steps(slope)


