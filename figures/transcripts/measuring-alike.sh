# numbers: any
@sed 's/sum\[i\] = x \* (float)i; /(void)0;/' generated/bench/measure.h > build/alike.h
@printf '%s\n' '#define _POSIX_C_SOURCE 200809L' '#include <stdio.h>' '#include HEADER' 'int main(void) { double best = 0; td_set_threads(1); for (int i = 0; i < 9; i++) best = fmax(best, bench_peak()); printf("%.0f Gflop/s\n", best / 1e9); }' > build/peak.c
@peak() { cc -std=c11 -O3 -ffp-contract=fast -w -I generated/include -DHEADER="\"$1\"" -o build/peak build/peak.c "${BUILD:-build}/libtreadle.a" -fopenmp -lz -lm -lpthread && build/peak; }
@echo "chains that begin at different numbers  $(peak ../generated/bench/measure.h)"; echo "chains that begin at zero               $(peak alike.h)"
@rm -f build/alike.h build/peak.c build/peak
