@d=$(mktemp -d)
@sed '/^static bool record_change/,/^}/s/td_base(x) ? x->base : x;/x;/' generated/src/grad/in-place.c > $d/in-place.c
@cat > $d/rows.c <<'END'
@#include <stdio.h>
@#include <treadle/treadle.h>
@int main(void)
@{
@    td_scope_begin();
@    td_tensor *w = td_full(TD_DIMS(2), td_float(3), (td_tensor_options){ .requires_grad = true });
@    td_tensor *y = td_reshape(td_mul(w, w), TD_DIMS(1, 2));
@    td_copy_(td_select(y, 0, 0), td_mul_scalar(w, td_float(10)));
@    td_tensor *s = td_sum(y, (td_reduce_options){ 0 });
@    td_backward(s, (td_backward_options){ 0 });
@    printf("y = %g, gradient of w = %g\n", (double)((float *)td_data(y))[0], (double)((float *)td_data(td_grad_of(w)))[0]);
@    td_scope_end();
@}
@END
@for v in wrong right; do gcc -std=c11 -w -O1 -fopenmp -Igenerated/include -Igenerated/src -o $d/$v $d/rows.c $([ $v = wrong ] && echo $d/in-place.c) "${BUILD:-build}/libtreadle.a" -lpthread -lz -ldl -lm; done
@cd $d
./right
./wrong
@rm -r $d
