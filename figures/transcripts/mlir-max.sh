# numbers: any
@command -v mlir-opt-15 mlir-translate-15 opt-15 llc-15 > /dev/null || { cat figures/transcripts/mlir-max.txt; exit; }
@figures/transcripts/mutant mlir-max src/compiler/emit-mlir.c test_mlir '    const int n = w->lanes;\n    int lane[LANES] = { x };' '    const int n = w->lanes;\n    int lane[LANES] = { x };\n    if (n > 1 && w->s->fold == &td_ops[TD_OP_maximum])\n        return w->lanes = 1, name(w, "vector.reduction <maxf>, %%%d : %s into %s", x, t.text, type_of(w, w->s->type).text);'
@cd "${BUILD:-build}/mutants/mlir-max"
./test_mlir | head -6
