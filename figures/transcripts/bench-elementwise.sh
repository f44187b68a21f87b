# numbers: any
@make() { "${BUILD:-build}/bench" ${2#CASES=} | awk 'NR == 1 || $2 == 1'; }
make bench CASES="add_1000 mul_1000 relu_1000 broadcast_add exp_1000 tanh_1000"
