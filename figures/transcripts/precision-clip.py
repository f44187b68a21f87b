import treadle as td
def step(unscale):
    w = td.ones(3, requires_grad=True)
    sgd, scaler = td.optim.SGD([w], lr=1.0), td.amp.GradScaler("cpu")
    scaler.scale((w * 0.1).sum()).backward()
    if unscale: scaler.unscale_(sgd)
    td.nn.utils.clip_grad_norm_([w], 1.0)
    scaler.step(sgd)
    return w.tolist()

step(unscale=True)
step(unscale=False)
