# accuracy after each epoch for three learning rates
echo epoch,slow,usual,fast
paste -d, <(seq 5) <(for rate in 0.002 0.02 0.1; do
  "${BUILD:-build}/examples/classifier" --lr $rate 2> /dev/null |
    sed -n 's/^epoch.*, \([0-9.]*\) %.*/\1/p' | paste -sd ' '
done | awk '{ for (i = 1; i <= NF; i++) a[NR, i] = $i }
  END { for (i = 1; i <= 5; i++) print a[1, i] "," a[2, i] "," a[3, i] }')
