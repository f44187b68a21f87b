# numbers: 0
@cat > build/swapped.c <<'END'
@#include <stdio.h>
@static float cell(const float *x, int r, int c) { return x[r * 2 + c]; }
@int main(void)
@{
@    const float x[] = { 1, 2, 3, 4, 5, 6 };      /* two rows of three */
@    printf("row 1, column 0: %g\n", cell(x, 1, 0));
@    return 0;
@}
@END
@cp build/swapped.c build/shown.c
sed -n 2,8p build/shown.c
cc build/swapped.c -o build/swapped && build/swapped
@rm -f build/swapped build/swapped.c build/shown.c
