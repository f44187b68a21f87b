# Loss of each batch of the first epoch, and the mean of the last fifty.
losses=$(mktemp)
"${BUILD:-build}/examples/classifier" --epochs 1 --losses "$losses" > /dev/null 2>&1
echo step,loss,mean
awk '{ last[NR % 50] = $NF; sum = 0; n = NR < 50 ? NR : 50
       for (k in last) sum += last[k]
       if (NR % 3 == 1) printf "%d,%.4f,%.4f\n", NR, $NF, sum / n }' "$losses"
rm -f "$losses"
