import treadle as td
w = td.ones(1, dtype=td.bfloat16)
for step in range(100): w += 1e-4

w.item()
v = td.ones(1, dtype=td.float16, requires_grad=True)
loss = (v * 1e-4).float() * 1e-4
loss.backward()
v.grad
