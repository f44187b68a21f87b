@d=$(mktemp -d)
@sed '/^void part_rule/,/^}/s/^    if (sum != NULL)/    b->grad_in[0] = sum;\n    if (sum != NULL)/' generated/src/grad/in-place.c > $d/in-place.c
@cat > $d/steps.c <<'END'
@#include <stdio.h>
@#include <treadle/treadle.h>
@int main(void)
@{
@    td_scope_begin();
@    td_tensor *x = td_set_requires_grad(td_zeros(TD_DIMS(5), (td_tensor_options){ 0 }), true), *y = td_select(x, 0, 0);
@    for (int t = 1; t < 5; t++)
@        y = td_add(y, td_select(x, 0, t));
@    td_backward(y, (td_backward_options){ 0 });
@    for (int t = 0; t < 5; t++)
@        printf("%g ", (double)((float *)td_data(td_grad_of(x)))[t]);
@    printf("\n");
@    td_scope_end();
@}
@END
@for v in wrong right; do gcc -std=c11 -w -O1 -fopenmp -Igenerated/include -Igenerated/src -o $d/$v $d/steps.c $([ $v = wrong ] && echo $d/in-place.c) "${BUILD:-build}/libtreadle.a" -lpthread -lz -ldl -lm; done
@cd $d
./right
./wrong
@rm -r $d
