# Products of a transposed A, m x 128 from 2048 steps, without one idea: their time to the library's (1: no difference), one thread.
# packed: A is packed; unasked: it is read in place, and no tile asks for the next one's lines (3 minutes).
. figures/data/sgemm-variants
variant library
variant packed gemm.c 's/of->rsa == 1 && across > 48/false/'
variant unasked gemm.c 's/asks && g->a_in_place/false/'
echo "m,packed,unasked"
for m in 384 512 1000 1024; do
    times "$m 128 2048 turned" library packed unasked |
        awk -v m=$m '{ t[$1] = $2 } END { printf "%d,%.3f,%.3f\n", m, t["packed"] / t["library"], t["unasked"] / t["library"] }'
done
