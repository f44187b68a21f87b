import treadle as td
w = td.zeros(3, requires_grad=True)
for step in range(1, 5):
    loss = ((w - 1) ** 2).sum()
    (g,) = td.autograd.grad(loss, w)
    w = w - 0.1 * g
    print(f"loss {loss.item():.3f}, nodes alive: {td.live_node_count()}")


