# numbers: within 1e-3
# five schedules over twenty epochs
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-python3}" - <<'END'
import treadle as td
S = td.optim.lr_scheduler
plans = {"step": lambda o: S.StepLR(o, 5, 0.5),
         "exponential": lambda o: S.ExponentialLR(o, 0.85),
         "cosine": lambda o: S.CosineAnnealingLR(o, 20),
         "warmup": lambda o: S.LinearWarmup(o, 4, 20),
         "cycle": lambda o: S.OneCycleLR(o, 1.0, 20)}
columns = []
for make in plans.values():
    o = td.optim.SGD([td.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    plan, rates = make(o), []
    for _ in range(20):
        rates.append(o.param_groups[0]["lr"])
        plan.step()
    columns.append(rates)
print("epoch", *plans, sep=",")
for t, row in enumerate(zip(*columns)):
    print(t, *(f"{x:.5f}" for x in row), sep=",")
END
