# numbers: 0
@cat > build/ragged.c <<'END'
@#include <stdio.h>
@int main(void)
@{
@    const float m[3][3] = { { 1.5f, -2.25f, 100 }, { 0.001f, 3, 12.5f },
@                            { 16777216, 16777218, 0.1f } };
@    for (int i = 0; i < 9; i++)
@        printf("%g%s", m[i / 3][i % 3], i % 3 == 2 ? "\n" : ", ");
@    return 0;
@}
@END
@cp build/ragged.c build/shown.c
sed -n 4,7p build/shown.c
cc build/ragged.c -o build/ragged && build/ragged
@rm -f build/ragged build/ragged.c build/shown.c
