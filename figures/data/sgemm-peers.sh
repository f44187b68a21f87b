# The time of two other libraries' products to that of ours (above 1: ours is quicker), by size, on one thread: PyTorch's (MKL) and
# NumPy's (OpenBLAS), in turn in one process; time of the processor, each the least of sixty.  Needs make deps-peers (2 minutes).
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=${BUILD:-build}/python "${PEER:-.peers/bin/python}" - <<'END'
import time
import numpy
import torch
import treadle

torch.set_num_threads(1)
treadle.set_num_threads(1)
print("n,pytorch,openblas")
for n in (32, 64, 128, 256, 512, 1024, 2048):
    x, y = numpy.random.default_rng(1).standard_normal((2, n, n), dtype="float32")
    calls = [lambda a=f(x), b=f(y): a @ b for f in (treadle.from_numpy, torch.from_numpy, numpy.array)]
    rounds, best = max(1, 20_000_000 // n ** 3), [1e9] * 3
    for _ in range(60):
        for k, call in enumerate(calls):
            call()
            began = time.process_time()
            for _ in range(rounds):
                call()
            best[k] = min(best[k], (time.process_time() - began) / rounds)
    print(n, f"{best[1] / best[0]:.2f}", f"{best[2] / best[0]:.2f}", sep=",")
END
