/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
/* The rules of elementwise rows, by loop and by formula. */
#include "core/device.h"
#include "ops/formula.h"
#include "ops/gradients.h"
#include "grad/rules.h"
#include <stdio.h>

/* rules: names a formula may bind */
enum { BIND_G, BIND_X, BIND_A = BIND_X, BIND_B, BIND_Y, TD_BINDINGS };
/* rules: table td_gradient_rows */
const td_gradient_row td_gradient_rows[TD_OP_COUNT + 1] = {
#define UNARY_RULE(name, gradient, saves) \
    [TD_OP_##name] = { TD_GRADIENT_##name, { #gradient, NULL } },
#define BINARY_RULE(name, gradient_a, gradient_b, ...) \
    [TD_OP_##name] = { TD_GRADIENT_##name, \
                       { #gradient_a, #gradient_b } },
#include "ops/elementwise.inc"
};

static const td_gradient_row *row_of(const td_op *op)
{
    return &td_gradient_rows[op - td_ops];
}
/* rules: function bind */
static void bind(td_backward_pass *b, int operands, int wanted,
                 td_value *value)
{
    const uint32_t saves = td_rule_of(b->node->op)->saves[wanted];
    value[BIND_G] = td_v_tensor(b->grad[0]);
    for (int i = 0; i < 2; i++)
        if (i < operands && saves & SAVES_INPUT(i))
            value[BIND_A + i] = td_operand(b, i);
        else
            value[BIND_A + i] = td_v_none();
    value[BIND_Y] = saves & SAVES_OUTPUT(0)
                  ? td_v_tensor(td_saved_output(b, 0)) : td_v_none();
}
/* rules: function gradient_elsewhere */
static bool gradient_elsewhere(const td_op *op, int i, int operands,
                               const td_value *value, td_tensor *out)
{
    const bool two = operands == 2;
    const td_value in[] = { value[BIND_G], value[BIND_A],
                            value[two ? BIND_B : BIND_Y],
                            value[BIND_Y] };
    char what[48];
    snprintf(what, sizeof what, "%s_gradient%s", td_op_name(op),
             !two ? "" : i == 0 ? "_a" : "_b");
    return td_compute_elsewhere(
        &(td_call){ .n_in = operands + 2, .in = in, .out = { out } },
        what, td_dtype_wide(out->dtype), true);
}
/* rules: function run_gradient */
static td_tensor *run_gradient(td_backward_pass *b,
                               const td_gradient_row *row, int i,
                               int operands, const td_value *value)
{
    td_tensor *g = b->grad[0];
    const td_dtype t = td_dtype_wide(g->dtype);
    td_loop *loop = TD_ISA_PICK(td_gradients)->loop[row->number][i][t];
    td_tensor *out = i + 1 < operands ? NULL : td_spare_gradient(b, 0);
    const td_dtype as[] = { t, t, t, t, t };
    td_frame f;
    if (out == NULL)
        out = td_tensor_new(td_shape_of(g), g->dtype, td_device_of(g));
    if (out && !td_on_host(out))
        return gradient_elsewhere(b->node->op, i, operands, value, out)
             ? out : NULL;
    if (out == NULL || td_failed())
        return NULL;
    td_space_begin(&f.space, out, TD_ALL_DIMS);
    for (int k = BIND_G; k <= BIND_Y; k++)
        if (value[k].kind == TD_SCALAR)
            td_frame_scalar(&f, value[k].as.scalar, t);
        else if (k != BIND_B || operands == 2)
            td_space_add(&f.space, value[k].kind == TD_TENSOR
                         ? value[k].as.tensor : g, TD_ALL_DIMS);
    return td_frame_run(&f, loop, as) ? out : NULL;
}
/* rules: function formula_of */
static td_formula formulas[TD_GRADIENT_COUNT + 1][2];

static void read_formulas(void)
{
    for (int op = 0; op < TD_OP_COUNT; op++)
        for (int i = 0; i < 2; i++) {
            const td_gradient_row *row = &td_gradient_rows[op];
            if (row->text[i] != NULL)
                td_formula_parse(row->text[i],
                                 &formulas[row->number][i]);
        }
}

static const td_formula *formula_of(const td_gradient_row *row, int i)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_formulas);
    return &formulas[row->number][i];
}
/* rules: function evaluate_gradient */
static void remember(td_tensor *grad, const td_value *saved)
{
    td_call flat = { .op = &td_ops[TD_OP_sign], .n_in = 1, .in = saved,
                     .n_out = 1, .out = { grad } };
    if (saved->kind == TD_TENSOR && td_requires_grad(saved->as.tensor)
        && grad != NULL && !grad->requires_grad)
        td_record_call(&flat);
}

static td_tensor *evaluate_gradient(td_backward_pass *b,
                                    const td_gradient_row *row, int i,
                                    const td_value *value)
{
    td_value result;
    const char *names = b->n_in == 1 ? "gx?y" : "gaby";
    const td_tensor_options like = { .dtype = td_input_dtype(b, i),
                                .device = td_device_of(b->grad[0]) };
    const td_formula *f = formula_of(row, i);
    if (f->count == 0)
        td_fail(TD_ERROR_UNSUPPORTED, "backward", "cannot read the "
                "rule %s", row->text[i]);
    if (td_failed() || !td_formula_run(f, names, value, &result))
        return NULL;
    if (result.kind != TD_TENSOR)
        return td_full(td_input_dims(b, i), result.as.scalar, like);
    if (value[BIND_B].kind != TD_TENSOR)
        remember(result.as.tensor, &value[
            value[BIND_Y].kind == TD_TENSOR ? BIND_Y : BIND_A]);
    return result.as.tensor;
}
/* rules: function elementwise_rule */
static void elementwise_rule(td_backward_pass *b, int operands)
{
    const td_gradient_row *row = row_of(b->node->op);
    td_value value[TD_BINDINGS];
    const bool as_loop = !b->create_graph && !td_self()->watched
                      && !td_self()->symbolic;
    for (int i = 0; i < operands && !td_failed(); i++) {
        if (!td_needs(b, i))
            continue;
        bind(b, operands, i, value);
        b->grad_in[i] = as_loop
            ? run_gradient(b, row, i, operands, value)
            : evaluate_gradient(b, row, i, value);
    }
}

void td_unary_rule(td_backward_pass *b)
{
    elementwise_rule(b, 1);
}

void td_binary_rule(td_backward_pass *b)
{
    elementwise_rule(b, 2);
}
