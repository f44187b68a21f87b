# numbers: any
@printf '$ grep -E "^(UNARY|...)\\(" elementwise_rows.h | sort -u -t"(" -k1,1\n'
@sed -n '/^\/\* .*: elementwise table \*\//,/^#undef/p' generated/include/treadle/elementwise_rows.h | grep -hE "^(UNARY|UNARY_SAME|BINARY_NUMBER|BINARY_FLOAT|COMPARE|PREDICATE|CURVE|CURVE_OF|BITWISE|BINARY)\(" | sort -s -u -t"(" -k1,1 | cut -c1-72
