# numbers: within 1e-2
# deviation of a layer's numbers between points of the square, mean over units, by depth, before training
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'END_OF_SCRIPT'
import treadle as td
from treadle import nn

def spreads(norm):
    td.manual_seed(1)
    x = td.rand(256, 2) * 2 - 1
    found = [x.std(0).mean().item()]
    x = nn.Linear(2, 64)(x)
    for _ in range(20):
        x = nn.Linear(64, 64)(nn.functional.relu(norm(64)(x)))
        found.append(x.std(0).mean().item())
    return found

plain, batch = spreads(nn.Identity), spreads(nn.BatchNorm1d)
print("layer,plain,batch")
for n in range(21):
    print(f"{n},{plain[n]:.3g},{batch[n]:.3g}")
END_OF_SCRIPT
