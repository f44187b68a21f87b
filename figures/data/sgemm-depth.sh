# By the depth of a stretch: cache lines that L1 and L2 miss, a step of a tile (a model of the caches, exact), and the share of
# the peak that the library reaches with it at 1024 (measured; 4 minutes).
. figures/data/sgemm-variants
depths="64 96 128 160 192 256 384 512"
for d in $depths; do
    [ $d = 512 ] && variant d512 || variant d$d kernels/gemm-kernels.h "s/DEPTH = 512/DEPTH = $d/"
done
times 1024 $(printf 'd%s ' $depths) > "$dir/times"
peak=$("$dir/d512" peak)
"$dir/d512" lines | awk -F, -v peak="$peak" -v times="$dir/times" '
    BEGIN { while ((getline line < times) > 0) { split(line, x, " "); t[x[1]] = x[2] } }
    NR == 1 { print $0 ",share"; next }
    { printf "%s,%.3f\n", $0, 2 * 1024 ^ 3 / t["d" $1] / peak }'
