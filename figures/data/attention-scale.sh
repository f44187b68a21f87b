# numbers: within 1e-3
# mean of the largest of 32 attention weights for vectors of d normal numbers, with and without 1/sqrt(d)
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" - <<'END'
import treadle as td
td.manual_seed(0)
print("d,scaled,plain")
for d in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
    q, k = td.randn(64, 16, d), td.randn(64, 32, d)
    largest = [td.attention_weights(q, k, scale=s).amax(-1).mean().item()
               for s in (None, 1.0)]
    print(d, *(f"{x:.3f}" for x in largest), sep=",")
END
