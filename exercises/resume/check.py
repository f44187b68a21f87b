"""Back into the same river.  SPDX-License-Identifier: MIT"""
from judge import *

both("""
from treadle import nn, programs
from treadle.programs import Loop
from treadle.utils.data import TensorDataset

class Tiny(programs.Task):
    names, epochs, batch_size, lr = ("/",), 4, 4, 0.05
    def __init__(self, path):
        x = td.randn(22, 3)
        self.train = self.test = TensorDataset(x, (x.sum(1) > 0).long())
        self.model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))

class Other(Tiny):
    epochs = 4

programs.TASKS.update(tiny=Tiny, other=Other)

def walk(loop, steps=1000):
    left = [steps]
    def stopped():
        left[0] -= 1
        return left[0] == 0
    loop.run(stopped=stopped, show=lambda text: None)
    return loop

def weights(loop):
    return [p.flatten().tolist() for p in loop.model.state_dict().values()]

def end(loop):
    walk(loop)
    return weights(loop)

def told(loop):
    return [loop.epoch, loop.step, [sorted(row.items()) for row in loop.history], loop.losses.total, loop.losses.weight]

def new(seed=3, **options):
    return Loop("tiny", seed=seed, **options)

def saved(steps, **options):
    loop = walk(new(**options), steps)
    td.save(loop.state_dict(), "state")
    return td.load("state")

def came(state, before=0):
    "A loop that goes on from state; it was at work elsewhere before."
    loop = walk(new(), before) if before else new()
    td.manual_seed(77)
    loop.load_state_dict(state)
    return loop
import os, tempfile
os.chdir(tempfile.mkdtemp())
0
""")
formula = "whoever calls run next gets the bits that the other loop would have got"
for steps, when in (15, "in the middle of the third epoch"), (12, "at the last batch of an epoch"), (1, "after the first step"):
    both(f"state = saved({steps})\n0")
    case(f"epoch and step, {when}", "epoch counts those that are over, step all steps")
    same("loop = came(state)\ntold(loop)[:2]")
    case(f"rows of the epochs that are over, {when}", formula)
    same("told(loop)[2]")
    case(f"losses of the epoch so far, {when}", "total and weight of self.losses")
    same("told(loop)[3:]")
    case(f"the same weights as the other had, {when}", formula)
    same("weights(loop)")
    case(f"the same weights at the end, to the bit, {when}", formula)
    same("end(loop)")
    case(f"the same rows at the end, {when}", formula)
    same("told(loop)")
case("the same weights at the end as if nobody had been killed", formula)
equal(ask("end(came(saved(15)))"), ours("end(new())"))
case("random numbers after it", "set_rng_state takes what get_rng_state gave")
same("came(state); td.rand(5).tolist()")
case("into a loop that was at work elsewhere", formula)
both("state = saved(9)\n0")
same("loop = came(state, 14)\n[told(loop), end(loop), told(loop)]")
case("twice into the same loop", formula)
same("loop = came(state)\nwalk(loop, 3); loop.load_state_dict(state)\n[told(loop), end(loop), told(loop)]")

own = "what this loop does afterwards does not change the state"
both("state = saved(15)\n0")
case("the state stays the caller's", own)
both("loop = walk(came(state), 7)\n0")
for what, code in (("history", "len(state['history'])"), ("losses", "state['losses']"), ("keys", "sorted(state)"),
                   ("options", "state['options']"), ("places", "[state['epoch'], state['step'], len(state['random'])]")):
    case(f"the state stays the caller's: {what}", own)
    same(code)
case("the state stays the caller's: another loop takes it", own)
same("end(came(state))")

refuse = "a setting that differs is a ValueError that names it and both values, before anything has changed"
for name, mine, theirs in (("epochs", 4, 6), ("batch_size", 4, 5), ("lr", 0.05, 0.25), ("seed", 3, 8)):
    both(f"state = saved(7, {name}={theirs!r})\nloop = new()\n0")
    for words in name, repr(theirs), repr(mine):
        case(f"another {name}", refuse)
        raises("ValueError", "loop.load_state_dict(state)", words)
    case(f"another {name}, and nothing has changed", refuse)
    same("[loop.options, told(loop), loop.schedule.last_epoch, weights(loop)]")
case("another task", refuse)
raises("ValueError", "Loop('other', seed=3).load_state_dict(saved(7))", "task")
case("the settings of the loop stay its own", refuse)
same("loop = came(saved(7))\n[loop.options, sorted(vars(loop))]")
case("what is returned", "nothing")
same("str(new().load_state_dict(saved(7)))")
end()
