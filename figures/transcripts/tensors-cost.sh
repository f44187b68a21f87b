# numbers: any
@make() { "${BUILD:-build}/bench" ${2#CASES=}; }
make bench CASES="transpose_1000 contiguous_transpose_1000"
