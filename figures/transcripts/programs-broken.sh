@cd "${BUILD:-build}/examples"
@check() { ./one-step check | fold -s -w 72; }
@alias sed="sed -u"
@step() { printf "\$ ./one-step | sed '%s' | ./one-step check\n" "$1"; ./one-step | sed "$1" | check; }
@step '/relu(%4)/s/256/255/'
@step 's/relu(%4)/relu(%40)/'
@step 's/matmul(%34, %10)/matmul(%34, %6)/'
@step '/= relu(%8)/s/%9/%5/'
@step 's/update %2 = %56/update %2 = %55/'
@step 's/log_softmax/log_sofmax/'
