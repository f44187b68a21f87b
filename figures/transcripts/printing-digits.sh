# numbers: 0
@cat > build/digits.c <<'END'
@#include <stdio.h>
@#include <stdlib.h>
@int main(void)
@{
@    const float x[] = { 0.1f, 0x1.000002p0f, 16777218, 1 / 3.f, 1e-45f };
@    for (int i = 0; i < 5; i++)
@        for (int digits = 1; digits <= 9; digits++) {
@            char text[64];
@            snprintf(text, sizeof text, "%.*g", digits, (double)x[i]);
@            if (strtof(text, NULL) != x[i])
@                continue;
@            printf("%.25g  %s\n", (double)x[i], text);
@            break;
@        }
@    return 0;
@}
@END
cc build/digits.c -o build/digits && build/digits
@rm -f build/digits build/digits.c
