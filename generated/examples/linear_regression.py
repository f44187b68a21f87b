# SPDX-License-Identifier: MIT
# Tangled from the chapter "backward": edit that, not this file.
# needs: python
"""A line through 256 points, by gradients."""
import treadle as td

POINTS = 256
td.manual_seed(0)
x = td.rand(POINTS) * 4
y = x * 2 + 1 + (td.rand(POINTS) - 0.5) * 0.4
w = td.zeros(1, requires_grad=True)
b = td.zeros(1, requires_grad=True)

print("step      loss      dL/dw  by hand     dL/db  by hand")
for step in range(201):
    r = x * w + b - y
    loss = (r * r).sum() * (1 / POINTS)
    loss.backward()
    if step % 40 == 0:
        d = r.detach()
        hand_w = 2 / POINTS * (d * x).sum().item()
        hand_b = 2 / POINTS * d.sum().item()
        print(f"{step:4}  {loss.item():8.5f}"
              f"  {w.grad.item():8.5f} {hand_w:8.5f}"
              f"  {b.grad.item():8.5f} {hand_b:8.5f}")
    with td.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
    w.grad = b.grad = None
print(f"y = {w.item():.3f} x + {b.item():.3f}")
