# numbers: any
@object=${BUILD:-build}/obj/ops/kernels/gemm-kernels.v4.o
@[ -e "$object" ] && command -v objdump > /dev/null || { cat figures/transcripts/sgemm-loop.txt; exit; }
@printf '$ objdump -d gemm-kernels.v4.o     # the loop of packed_14_f32\n'
@objdump -d --no-show-raw-insn "$object" | awk '/^[0-9a-f]* <packed_14_f32>:/ { on = 1 } on && /ret/ { exit } on' > build/sgemm-loop.s
@awk -F'\t' -f figures/data/sgemm-loop.awk build/sgemm-loop.s
@rm -f build/sgemm-loop.s
