@d=$(mktemp -d); mkdir $d/ops
@sed 's/^UNARY_RULE(tanh, .*/UNARY_RULE(tanh, g * (1 - y * y), SAVES_X | SAVES_RESULT)/' generated/src/ops/elementwise.inc > $d/ops/elementwise.inc
@gcc -std=c11 -fopenmp -I$d -Igenerated/include -Igenerated/src -o $d/test_rules generated/tests/test_rules.c "${BUILD:-build}/libtreadle.a" -lcmocka -lpthread -lz -ldl -lm
@cd $d
./test_rules 2>&1 | grep -e OK -e '!=' -e 'FAILED.*mentions'
@rm -r $d
