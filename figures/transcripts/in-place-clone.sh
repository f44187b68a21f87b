@d=$(mktemp -d)
@sed '/^bool td_change_by_copy/,/^}/s/records && saves ? td_clone(x)/false ? td_clone(x)/' generated/src/grad/in-place.c > $d/in-place.c
@cat > $d/product.c <<'END'
@#include <stdio.h>
@#include <treadle/treadle.h>
@int main(void)
@{
@    td_scope_begin();
@    td_tensor *w = td_full(TD_DIMS(2), td_float(3), (td_tensor_options){ .requires_grad = true });
@    td_tensor *y = td_add(w, w);
@    td_mul_(y, w);
@    td_tensor *s = td_sum(y, (td_reduce_options){ 0 });
@    if (td_backward(s, (td_backward_options){ 0 }))
@        printf("gradient of w = %g\n", (double)((float *)td_data(td_grad_of(w)))[0]);
@    else
@        printf("%s\n", td_error_message());
@    td_error_clear();
@    td_scope_end();
@}
@END
@for v in wrong right; do gcc -std=c11 -w -O1 -fopenmp -Igenerated/include -Igenerated/src -o $d/$v $d/product.c $([ $v = wrong ] && echo $d/in-place.c) "${BUILD:-build}/libtreadle.a" -lpthread -lz -ldl -lm; done
@cd $d
./right
./wrong | fold -s -w 72
@rm -r $d
