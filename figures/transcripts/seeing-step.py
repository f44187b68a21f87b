# numbers: any
import treadle as td
from treadle.profiler import profile
words, tags = td.randint(0, 50000, (64,)), td.randint(0, 10, (64,))
net = td.nn.Sequential(td.nn.Embedding(50000, 64), td.nn.Linear(64, 256),
                       td.nn.GELU(), td.nn.Linear(256, 10))

adam = td.optim.AdamW(net.parameters())
def step():
    adam.zero_grad()
    td.nn.functional.cross_entropy(net(words), tags).backward()
    adam.step()

step()
with profile() as p:
    step()

averages = p.key_averages()
share = lambda name: next(round(e.self_cpu_time_total / sum(
    a.self_cpu_time_total for a in averages) * 100, 1) for e in averages if e.name == name)

share("linear"), share("matmul (backward)"), share("adam_step_")
print(averages.table(sort_by="self_cpu_time_total", row_limit=2))
