# numbers: any
make -s bench CASES="transpose_1000 contiguous_transpose_1000"
