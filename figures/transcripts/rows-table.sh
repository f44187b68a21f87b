# numbers: any
@printf '$ grep -hE "^(UNARY|BINARY|...)\\(" elementwise.inc | sort -u -t"(" -k1,1\n'
@sed -n '/^\/\* .*: elementwise table \*\//,/^#undef/p' generated/src/ops/elementwise.inc | grep -hE "^(UNARY|UNARY_SAME|BINARY_NUMBER|BINARY_FLOAT|COMPARE|TEST|CURVE|CURVE_OF|BITWISE|BINARY)\(" | sort -s -u -t"(" -k1,1 | cut -c1-72
