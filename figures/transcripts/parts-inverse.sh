@d=$(mktemp -d)
@sed 's/back.at\[axis < 0 .*\] = d;/back.at[d] = axis;/' generated/src/grad/view-rules.c > $d/view-rules.c
@gcc -std=c11 -w -O1 -fopenmp -Igenerated/include -Igenerated/src -Igenerated/tests -o $d/test_gradcheck generated/tests/test_gradcheck.c $d/view-rules.c "${BUILD:-build}/libtreadle.a" -lcmocka -lpthread -lz -ldl -lm
@cd $d
./test_gradcheck 2>&1 | grep ^permute | fold -s -w 72
@rm -r $d
