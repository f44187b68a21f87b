# The time of two other libraries' products to that of ours (above 1: ours is quicker), by size, on one thread and on two: PyTorch's
# (MKL) and NumPy's (OpenBLAS), all in turn, each time the least of forty.  Needs make deps-peers (3 minutes).
BUILD=${BUILD:-build} "${PEER:-.peers/bin/python}" - <<'END'
from importlib.machinery import SourceFileLoader
bench = SourceFileLoader("peers", "loom/bench-peers").load_module()
sizes, ratios = (64, 128, 256, 512, 1024, 2048), {}
for threads in (1, 2):
    peers = [bench.Peer(which, threads) for which in ("treadle", "torch", "numpy")]
    for n in sizes:
        for peer in peers:
            peer("build", f"gemm_{n}", False)
        ours, *others = map(min, zip(*[[peer("time", f"gemm_{n}", False) for peer in peers] for _ in range(40)]))
        ratios[n] = ratios.get(n, []) + [other / ours for other in others]
        for peer in peers:
            peer("drop", f"gemm_{n}")
    for peer in peers:
        peer.close()
print("n,pytorch1,openblas1,pytorch2,openblas2")
for n in sizes:
    print(n, *(f"{ratio:.2f}" for ratio in ratios[n]), sep=",")
END
