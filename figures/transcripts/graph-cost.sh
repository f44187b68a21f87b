# numbers: any
@make() { "${BUILD:-build}/bench" ${2#CASES=} | awk 'NR == 1 || $2 == 1'; }
make bench CASES="tiny_op_overhead tiny_grad_chain_100"
