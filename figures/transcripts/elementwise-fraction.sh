# numbers: any
@cat > build/fraction.c <<'END'
@#define LOOP(name, formula) void name(int n, const float *a, float *out) { n &= -16; for (int i = 0; i < n; i++) { const float x = a[i]; out[i] = (float)(formula); } }
@LOOP(half,    x * 0.5)
@LOOP(tenth,   x * 0.1)
@LOOP(tenth_K, x * 0.1f)
@END
sed -n '2,4p' build/fraction.c
@cc -O3 -march=x86-64-v4 -fno-trapping-math -fno-math-errno -S -o build/fraction.s build/fraction.c
@count() { printf '%s: %d instructions in the loop, %d of them conversions\n' $1 $(awk "/^$1:/ { on = 1 } on && /^\t\.cfi_endproc/ { exit } on" build/fraction.s | awk '/^\.L[0-9]+:/ { l = substr($1, 1, length($1) - 1); n = c = 0 } /^\t[a-z]/ { n++ } /cvt/ { c++ } /^\tj/ && $2 == l { print n, c; exit }'); }
@count half; count tenth; count tenth_K
@rm -f build/fraction.c build/fraction.s
