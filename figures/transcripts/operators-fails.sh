# numbers: 0
@cat > build/lists.c <<'END'
@#include <stdio.h>
@#include <string.h>
@static double add(double a, double b) { return a + b; }
@static double sub(double a, double b) { return a - b; }
@static double mul(double a, double b) { return a * b; }
@static double (*const functions[])(double, double) = { add, sub, mul };
@static const char *const names[] = { "add", "mul" };
@int main(void)
@{
@    for (int i = 0; i < 2; i++)
@        if (strcmp(names[i], "mul") == 0)
@            printf("mul of 6 and 2 is %g\n", functions[i](6, 2));
@    return 0;
@}
@END
@cp build/lists.c build/shown.c
sed -n 3,7p build/shown.c
cc -Wall -Wextra build/lists.c -o build/lists && build/lists
@rm -f build/lists build/lists.c build/shown.c
