# Ideas taken away from the product: its time to the library's (1: no difference) at the best level of the machine, one thread.
# unasked: no tile asks for the next sliver; beside: the same, while another process copies through the shared cache;
# packed: every sliver is packed before it is used; listed: its rows are found in a list.  Needs two cores with one L3 (8 minutes).
. figures/data/sgemm-variants
variant library
variant unasked kernels/gemm-tile.inc 's/__builtin_prefetch\(next, 0, 2\);//'
variant packed gemm.c 's/if \(g->alone && !sliver_in_rows\(g, s\)\)/if (g->alone \&\& !sliver_in_place(g, s))/; s/r == first && sliver_in_rows\(g, s\)/false/'
variant listed gemm.c 's/.follow = true/.follow = false/'
stranger() { exec python3 -c 'from array import array; x = array("d", [0]) * (1 << 22); y = memoryview(x)
while True: y[1 << 21:] = y[:1 << 21]'; }
echo "m,unasked,beside,packed,listed"
for size in 512 1024 2048 "32 1024 1024"; do
    times "$size" library unasked packed listed > "$dir/times"
    stranger & other=$!
    times "$size" library unasked | sed 's/ /-beside /' >> "$dir/times"
    kill $other
    wait $other 2> /dev/null || :
    awk -v m="${size%% *}" '{ t[$1] = $2 } END { printf "%s,%.3f,%.3f,%.3f,%.3f\n", m, t["unasked"] / t["library"],
        t["unasked-beside"] / t["library-beside"], t["packed"] / t["library"], t["listed"] / t["library"] }' "$dir/times"
done
