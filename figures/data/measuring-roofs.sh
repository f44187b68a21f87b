# the limits of one thread: Gflop/s, and GB/s in 128 MiB, 8 MiB, half a MiB and 24 KiB; the best of seven
best() { for _ in 1 2 3 4 5 6 7; do "${BUILD:-build}/bench" --ceilings 1 "$1"; done | awk -v c="$2" '$c > best { best = $c } END { printf "%.2f\n", best / 1e9 }'; }
echo "limit,rate"
echo "peak,$(best 4096 1)"
echo "memory,$(best 134217728 2)"
echo "L3,$(best 8388608 2)"
echo "L2,$(best 524288 2)"
echo "L1,$(best 24576 2)"
