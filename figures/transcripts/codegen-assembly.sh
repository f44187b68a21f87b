# numbers: any
@[ "$(uname -m)" = x86_64 ] || { cat figures/transcripts/codegen-assembly.txt; exit; }
@"${BUILD:-build}/examples/one-step" code > build/one-step-code.c
@flags="-O3 -march=x86-64-v3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -w -std=gnu11"
@cc $flags -S -o build/one-step-code.s build/one-step-code.c
@printf '$ cc -O3 -march=x86-64-v3 -S code.c     # the loop of kernel_0\n'
@awk '/^kernel_0:/ { on = 1 } on && /^\t\.cfi_endproc/ { exit } on' build/one-step-code.s > build/one-step-loop.s
@awk '/^\.L[0-9]+:/ { start = NR } /ymm/ && !seen && start { first = start; seen = 1 } { line[NR] = $0 } END { for (n = first; n <= NR; n++) { print line[n]; if (line[n] ~ /\tj/ && n > first + 2) exit } }' build/one-step-loop.s | expand -t 8,16
@rm -f build/one-step-code.* build/one-step-loop.s
