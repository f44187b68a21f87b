# a weight of 1 and a hundred thousand updates of 1e-5: float32, bfloat16 to the nearest, by chance, with a float32 master
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
td.manual_seed(4)
half, n = td.bfloat16, 64
wide, nearest, chance, master = td.ones(n), td.ones(n).to(half), td.ones(n).to(half), td.ones(n)
print("step,float32,nearest,chance,master")
for step in range(100001):
    if step % 5000 == 0:
        seen = wide[0], nearest[0], chance[0], master.to(half)[0]
        print(step, *(f"{w.item():.5f}" for w in seen), sep=",")
    wide += 1e-5
    nearest += 1e-5
    chance = td.amp.stochastic_round(chance.float() + 1e-5)
    master += 1e-5
END
