# numbers: any
@cat > build/ten.c <<'END'
@#include <stdio.h>
@#include "ops/kernels/primitives.h"
@int main(int n, char **names)
@{
@    (void)names;
@    for (int x = 1; x <= 1000; x *= 10)
@        printf("exp(%d) = %g%s", x, (double)exp_f32((float)(n * x)), x < 1000 ? ", " : "\n");
@    return 0;
@}
@END
@run() { cc -w -Igenerated/src -Igenerated/include build/ten.c -lm "$@" -o build/ten && build/ten; }
@alias cc=run; shopt -s expand_aliases
@sh() { printf '$ %s\n' "$1"; }
@sh 'cc -O2 ten.c && ./a.out'
@run -O2
@sh 'cc -O2 -ffast-math ten.c && ./a.out'
@run -O2 -ffast-math
@sh 'cc -O2 -ffast-math -fno-finite-math-only ten.c && ./a.out'
@run -O2 -ffast-math -fno-finite-math-only
@rm -f build/ten build/ten.c
