# numbers: any
@flags="-std=c11 -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -DTD_ISA_NAME=v3 -Igenerated/src -Igenerated/include -w -fwrapv"
@file=generated/src/ops/kernels/elementwise-kernels.c
@cc $flags -march=x86-64-v3 -S -o build/rows.s $file
@printf '$ cc -O3 -march=x86-64-v3 -S elementwise-kernels.c     # the loop of mul_loop_f32\n'
@awk '/^mul_loop_f32:/ { on = 1 } on && /^\t\.cfi_endproc/ { exit } on' build/rows.s > build/rows.mul
@awk '/^\.L[0-9]+:/ { start = NR } /[yz]mm/ && !seen { first = start; seen = 1 } { line[NR] = $0 } END { for (n = first; n <= NR; n++) { print line[n]; if (line[n] ~ /\tj/ && n > first + 2) exit } }' build/rows.mul | expand -t 8,16
@rm -f build/rows.s build/rows.mul
