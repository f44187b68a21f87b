/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
/* needs: rules */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <treadle/treadle.h>
#include "ops/formula.h"
#include "core/registry.h"
#include "grad/rules.h"

/* rules: functions that make test operands */
static td_tensor *numbers(td_dtype dtype, int which)
{
    td_tensor *x = td_zeros(TD_DIMS(7, 5), (td_tensor_options){
        .dtype = TD_FLOAT64 });
    for (int i = 0; i < 35; i++)
        ((double *)td_data(x))[i]
            = 1.3 + sin(12.9 * (i + 1) + 78.2 * which);
    return td_set_requires_grad(td_to(x, dtype), true);
}

static void assert_close(const char *name, td_tensor *a, td_tensor *b)
{
    const double bound = td_dtype_of(a) == TD_FLOAT32 ? 4e-6 : 1e-14;
    td_tensor *x = td_to(td_detach(a), TD_FLOAT64);
    td_tensor *y = td_to(td_detach(b), TD_FLOAT64);
    assert_true(td_dtype_of(a) == td_dtype_of(b));
    for (int i = 0; i < 35; i++) {
        const double p = ((double *)td_data(x))[i];
        const double q = ((double *)td_data(y))[i];
        if (!(fabs(p - q) <= bound * (1 + fabs(q)))
            && !(isnan(p) && isnan(q)))
            fail_msg("%s: element %d is %.9g by the loop, %.9g by the "
                     "terms", name, i, p, q);
    }
}
/* rules: test that both readings agree */
static void compare_readings(const td_op *op, int operands,
                             td_dtype dtype)
{
    td_scope_begin();
    td_tensor *in[2], *by_loop[2], *by_terms[2];
    for (int i = 0; i < operands; i++)
        in[i] = numbers(dtype, i);
    td_value values[2] = { td_v_tensor(in[0]), td_v_tensor(in[1]) };
    td_tensor *y = td_run1(op, operands, values, 0, NULL);
    td_tensor *g = td_detach(numbers(dtype, 2));
    td_grad_options plain = { .grad_outputs = &g,
                              .retain_graph = true };
    td_grad_options recorded = { .grad_outputs = &g,
                                 .create_graph = true };
    assert_true(td_grad(&y, 1, in, operands, by_loop, plain));
    assert_true(td_grad(&y, 1, in, operands, by_terms, recorded));
    for (int i = 0; i < operands; i++)
        assert_close(td_op_name(op), by_loop[i], by_terms[i]);
    td_scope_end();
}
/* rules: tests of the rule rows */
static void both_readings_of_a_row_agree(void **state)
{
    static const td_dtype dtypes[] = { TD_FLOAT32, TD_FLOAT64 };
    (void)state;
    for (int d = 0; d < 2; d++) {
#define UNARY_RULE(name, gradient) \
        compare_readings(&td_ops[TD_OP_##name], 1, dtypes[d]);
#define BINARY_RULE(name, gradient_a, gradient_b) \
        compare_readings(&td_ops[TD_OP_##name], 2, dtypes[d]);
#include "ops/elementwise.inc"
    }
}

static void every_formula_can_be_read(void **state)
{
    td_formula f;
    (void)state;
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    assert_true(td_formula_parse(#formula, &f));
#define UNARY_RULE(name, gradient) \
    assert_true(td_formula_parse(#gradient, &f));
#define BINARY_RULE(name, gradient_a, gradient_b) \
    assert_true(td_formula_parse(#gradient_a, &f)); \
    assert_true(td_formula_parse(#gradient_b, &f));
#include "ops/elementwise.inc"
}

static uint32_t mentioned(const char *text)
{
    td_formula f;
    uint32_t saves = 0;
    assert_true(td_formula_parse(text, &f));
    for (int i = 0; i < f.count; i++)
        if (f.term[i].kind == TD_TERM_NAME && f.term[i].name != 'g')
            saves |= f.term[i].name == 'y' ? SAVES_RESULT
                   : f.term[i].name == 'b' ? SAVES_B : SAVES_X;
    return saves;
}

static void a_row_saves_what_its_formula_mentions(void **state)
{
    (void)state;
    td_traits_of(td_ops);
#define SAVED(name, i, gradient) \
    assert_int_equal(td_rule_of(&td_ops[TD_OP_##name])->saves[i], \
                     mentioned(#gradient));
#define UNARY_RULE(name, gradient) SAVED(name, 0, gradient)
#define BINARY_RULE(name, gradient_a, gradient_b) \
    SAVED(name, 0, gradient_a) SAVED(name, 1, gradient_b)
#include "ops/elementwise.inc"
}

static void a_formula_becomes_a_graph(void **state)
{
    td_formula f;
    (void)state;
    assert_true(td_formula_parse("g * (1 - y * y)", &f));
    assert_int_equal(f.count, 6);       /* g 1 y y*y 1-yy g*() */
    assert_int_equal(f.term[5].op, TD_OP_mul);
    assert_int_equal(f.term[3].arg[0], f.term[3].arg[1]);
    assert_true(td_formula_parse("x > 1 | x < 0 & g > x", &f));
    assert_int_equal(f.term[f.count - 1].op, TD_OP_add);
    assert_int_equal(f.term[f.count - 2].op, TD_OP_mul);
    assert_false(td_formula_parse("g * (1 - y", &f));
    assert_false(td_formula_parse("g ? 1 : 2", &f));
    assert_false(td_formula_parse("nothing(g)", &f));
    assert_false(td_formula_parse("g 2", &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_readings_of_a_row_agree),
        cmocka_unit_test(every_formula_can_be_read),
        cmocka_unit_test(a_row_saves_what_its_formula_mentions),
        cmocka_unit_test(a_formula_becomes_a_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
