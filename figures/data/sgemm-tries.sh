# Ideas tried on the product, each built from the library's files with one change: its time to the library's (1: no change) at three sizes,
# and the instructions in the loop of a full tile (6 minutes).
. figures/data/sgemm-variants
tile=kernels/gemm-tile.inc
row='VEC row\[LINE\];'
variant library
variant ahead $tile "s/$row/& __builtin_prefetch(b + t->at[p] + 256); __builtin_prefetch(b + t->at[p] + 272); __builtin_prefetch(a + 16 * csa);/"
variant silent $tile 's/__builtin_prefetch\((\(char \*\)\(c \+ i \* t->ldc\) \+ j), 1\)/(void)(\1)/'
variant stream $tile 's/\*at = (beta == 0 \? sum\[i\]\[j\] \* alpha)[^;]*;/{ VEC x = \1 : sum[i][j] * alpha + *at * beta; if ((uintptr_t)at % 64 == 0) _mm512_stream_si512((__m512i *)at, (__m512i)x); else *at = x; }/' \
    kernels/gemm-kernels.c 's/#include/#include <immintrin.h>\n&/'
variant low kernels/gemm-kernels.c 's/ROWS = 14/ROWS = 8/; s/TEN\(F\) F\(11\) F\(12\) F\(13\) F\(14\)/SIX(F) F(7) F(8)/'
variant packed gemm.c 's/g.a_in_place = work[^;]*;/g.a_in_place = false;/; s/g.b_in_place = [^;]*;/g.b_in_place = false;/'
variant placed gemm.c 's/g.a_in_place = work[^;]*;/g.a_in_place = of->csa == 1;/; s/g.b_in_place = [^;]*;/g.b_in_place = of->csb == 1;/'
variant loose $tile 's/HOLD\(spread\);/(void)0;/'
names="library ahead silent stream low packed placed loose"
for n in 64 256 1024; do times $n $names > "$dir/times.$n"; done
echo "try,n64,n256,n1024,instructions"
for name in $names; do
    objdump -d --no-show-raw-insn "$dir/$name.src/kernels.o" > "$dir/code"
    count=$(awk -v rows=$([ $name = low ] && echo 8 || echo 14) '$2 == "<packed_" rows "_f32>:" { on = 1 } on && /ret/ { exit }
        on { at[$1] = ++n } on && $2 == "jne" && ($3 ":") in at { print n - at[$3 ":"] + 1; exit }' "$dir/code")
    for n in 64 256 1024; do
        awk -v name=$name '{ t[$1] = $2 } END { printf "%s%.3f", ",", t[name] / t["library"] }' "$dir/times.$n"
    done | sed "s/^/$name/; s/\$/,$count\n/"
done
