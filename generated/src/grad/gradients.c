/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
/* The rules of elementwise rows, by loop and by formula. */
#include "core/device.h"
#include "ops/formula.h"
#include "ops/gradients.h"
#include "grad/rules.h"

/* rules: names a formula may bind */
enum { BIND_G, BIND_Y, BIND_A, BIND_B, TD_BINDINGS };
/* rules: table td_gradient_rows */
const td_gradient_row td_gradient_rows[TD_OP_COUNT + 1] = {
#define UNARY_RULE(name, gradient) \
    [TD_OP_##name] = { TD_GRADIENT_##name, { #gradient, NULL } },
#define BINARY_RULE(name, gradient_a, gradient_b) \
    [TD_OP_##name] = { TD_GRADIENT_##name, \
                       { #gradient_a, #gradient_b } },
#include "ops/elementwise.inc"
};
/* rules: function td_study_formulas */
static td_formula formulas[TD_GRADIENT_COUNT + 1][2];

void td_study_formulas(const td_op *op)
{
    const td_gradient_row *row = &td_gradient_rows[op - td_ops];
    for (int i = 0; i < 2 && row->text[i] != NULL; i++) {
        td_formula *f = &formulas[row->number][i];
        td_formula_parse(row->text[i], f);
        for (int k = 0; k < f->count; k++) {
            const char name = f->term[k].name;
            td_rules[op - td_ops].saves[i] |= name == 'y' ? SAVES_RESULT
                : name == 'b' ? SAVES_B
                : name == 'x' || name == 'a' ? SAVES_X : 0;
        }
    }
}
/* rules: function run_gradient */
static td_tensor *run_gradient(td_backward_pass *b,
                               const td_gradient_row *row, int i,
                               const td_value *value)
{
    td_tensor *g = b->grad[0];
    const td_dtype t = td_dtype_wide(g->dtype);
    td_loop *loop = TD_ISA_PICK(td_gradients)->loop[row->number][i][t];
    td_tensor *out = i + 1 < b->n_in || !td_is_spare(b, g) ? NULL : g;
    const td_dtype as[] = { t, t, t, t, t };
    td_frame f;
    if (out == NULL)
        out = td_tensor_new(td_shape_of(g), g->dtype, td_device_of(g));
    if (out == NULL || td_failed())
        return NULL;
    /* rules: send the formula to where the result is */
    if (!td_on_host(out)) {
        const td_call call = { .n_in = b->n_in + BIND_A, .in = value,
                               .out = { out } };
        char what[48];
        snprintf(what, sizeof what, "%s_gradient%s", b->op->name,
                 b->n_in < 2 ? "" : i == 0 ? "_a" : "_b");
        return td_compute_elsewhere(&call, what, t, true) ? out : NULL;
    }
    td_space_begin(&f.space, out, TD_ALL_DIMS);
    for (int k = 0; k < b->n_in + BIND_A; k++)
        if (value[k].kind == TD_SCALAR)
            td_frame_scalar(&f, value[k].as.scalar, t);
        else
            td_space_add(&f.space, value[k].kind == TD_TENSOR
                         ? value[k].as.tensor : g, TD_ALL_DIMS);
    return td_frame_run(&f, loop, as) ? out : NULL;
}
/* rules: function evaluate_gradient */
static td_tensor *evaluate_gradient(td_backward_pass *b,
                                    const td_gradient_row *row, int i,
                                    const td_value *value)
{
    td_value result;
    const char *names = b->n_in == 1 ? "gyx" : "gyab";
    const td_tensor_options like = { .dtype = td_input_dtype(b, i),
                                .device = td_device_of(b->grad[0]) };
    const td_formula *f = &formulas[row->number][i];
    if (f->count == 0)
        td_fail(TD_ERROR_UNSUPPORTED, "backward", "cannot read the "
                "rule %s", row->text[i]);
    if (td_failed() || !td_formula_run(f, names, value, &result))
        return NULL;
    if (result.kind != TD_TENSOR)
        return td_full(td_input_dims(b, i), result.as.scalar, like);
    /* rules: note what a constant came from */
    const td_value *saved = &value[
        value[BIND_Y].kind == TD_TENSOR ? BIND_Y : BIND_A];
    td_tensor *grad = result.as.tensor;
    td_call flat = { .op = &td_ops[TD_OP_sign], .n_in = 1, .in = saved,
                     .n_out = 1, .out = { grad } };
    if (value[BIND_B].kind != TD_TENSOR && saved->kind == TD_TENSOR
        && td_requires_grad(saved->as.tensor) && grad != NULL
        && !grad->requires_grad)
        td_record_call(&flat);
    return grad;
}
/* rules: function td_row_rule */
void td_row_rule(td_backward_pass *b)
{
    const td_gradient_row *row = &td_gradient_rows[b->op - td_ops];
    const bool as_loop = !b->create_graph && !td_self()->watched
                      && !td_self()->symbolic;
    for (int i = 0; i < b->n_in && !td_failed(); i++) {
        if (!td_needs(b, i))
            continue;
        td_value value[TD_BINDINGS] = { { .kind = TD_NONE } };
        /* rules: bind the names of the formula */
        const uint32_t saves = td_rule_of(b->op)->saves[i];
        value[BIND_G] = td_v_tensor(b->grad[0]);
        if (saves & SAVES_OUTPUT(0))
            value[BIND_Y] = td_v_tensor(td_saved_output(b, 0));
        TD_EACH(k, b, in)
            if (saves & SAVES_INPUT(k))
                value[BIND_A + k] = td_operand(b, k);
        b->grad_in[i] = (as_loop ? run_gradient : evaluate_gradient)(
            b, row, i, value);
    }
}
