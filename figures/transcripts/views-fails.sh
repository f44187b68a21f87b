# numbers: 0
@cat > build/column.c <<'END'
@#include <stdio.h>
@static void column(const float *m, int rows, int columns, int c, float *out)
@{
@    for (int r = 0; r < rows; r++)
@        out[r] = m[r * columns + c];
@}
@int main(void)
@{
@    float m[] = { 1, 2, 3, 4, 5, 6 }, second[2];
@    column(m, 2, 3, 1, second);
@    second[0] = second[1] = 0;
@    printf("%g %g %g\n%g %g %g\n", m[0], m[1], m[2], m[3], m[4], m[5]);
@    return 0;
@}
@END
@cp build/column.c build/shown.c
sed -n 2,14p build/shown.c
cc build/column.c -o build/column && build/column
@rm -f build/column build/column.c build/shown.c
