# numbers: any
@cat > build/cast.c <<'END'
@#include <stdint.h>
@#include <stdio.h>
@int main(int n, char **names)
@{
@    (void)names;
@    const float x = 300 * n, y = -1 * n;        /* n is 1 here */
@    printf("300 is %d, -1 is %d\n", (uint8_t)x, (uint8_t)y);
@    printf("300 is %d, -1 is %d\n", (uint8_t)300.0f, (uint8_t)-1.0f);
@    return 0;
@}
@END
@cp build/cast.c build/shown.c
sed -n '6,8p' build/shown.c
cc -w -O2 build/cast.c -o build/cast && build/cast
@rm -f build/cast build/cast.c build/shown.c
