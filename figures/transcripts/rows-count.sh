# numbers: any
@printf '$ nm elementwise-kernels.o | grep -c _loop_\n'
@nm ${BUILD:-build}/obj/ops/kernels/elementwise-kernels.*.o 2>/dev/null | awk '/:$/ { if (n++) exit } 1' | grep -c ' t .*_loop_'
@printf '$ nm elementwise.o | grep -c _kernel\n'
@nm ${BUILD:-build}/obj/ops/elementwise.o | grep -c ' T .*_kernel'
@printf '$ grep -cE "^(UNARY|BINARY|PREDICATE|...)" elementwise_rows.h\n'
@sed -n '/^\/\* .*: elementwise table \*\//,/^#undef/p' generated/include/treadle/elementwise_rows.h | grep -cE '^(UNARY|UNARY_SAME|PREDICATE|BINARY|BINARY_NUMBER|BINARY_FLOAT|COMPARE|CURVE|CURVE_OF|BITWISE)\('
