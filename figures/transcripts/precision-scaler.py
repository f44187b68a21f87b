import treadle as td
w = td.ones(1, dtype=td.float16, requires_grad=True)
sgd = td.amp.MasterWeights(td.optim.SGD([w], lr=1e7))
scaler = td.amp.GradScaler("cpu", init_scale=2.0**34, growth_interval=3)
for step in range(10):
    loss = (w * 1e-4).float().sum() * 1e-4
    scaler.scale(loss).backward()
    scaler.step(sgd); scaler.update(); sgd.zero_grad()
    print(step, f"2^{scaler.get_scale().hex().split('p+')[1]}", round(w.item(), 3))

