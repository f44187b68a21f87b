/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "gradcheck": edit that, not this file. */
/* needs: gradcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "grad/autograd.h"
#include "samples.h"

/* gradcheck: function run_sample */
static td_tensor *run_sample(void *context, td_tensor *const *in)
{
    sample_call *s = context;
    (void)in;
    memset(s->call.out, 0, sizeof s->call.out);
    s->call.n_out = 0;
    return td_run(&s->call) ? s->call.out[0] : NULL;
}
/* gradcheck: function check_call */
static int check_call(const sample *from, const char *text)
{
    sample_call s;
    td_scope_begin();
    const td_gradcheck_options o = TD_DEFAULTS;
    const bool right = sample_read(&s, from, text)
        && td_gradcheck(run_sample, &s, s.n_checked, s.checked, o)
        && td_gradgradcheck(run_sample, &s, s.n_checked, s.checked, o);
    if (!right)
        print_error("%s(%s): %s\n", from->name, text,
                    td_failed() ? td_error_message() : "unreadable");
    const bool lacks = td_failed()
        && strstr(td_error_message(), "needs LAPACK") != NULL;
    td_error_clear();
    td_scope_end();
    return !right && !lacks;
}
/* gradcheck: test that checks every sample */
static int check_sample(const sample *from)
{
    static const char *const unary[] = {
        "[2,3]", "[3,2]t", "[]", NULL };
    static const char *const binary[] = {
        "[2,3] [2,3]", "[2,1,3] [4,1]", "[3,2]t [2]", "[2,3] 1.5",
        "1.5 [2]", "[] [2]", NULL };
    const char *const one[] = { from->call, NULL };
    const char *const *calls
        = from->kind == SAMPLE_UNARY ? unary
        : from->kind == SAMPLE_BINARY ? binary : one;
    int wrong = 0;
    for (; *calls != NULL; calls++)
        wrong += check_call(from, *calls);
    return wrong;
}

static void every_derivative_is_right_twice(void **state)
{
    int wrong = 0;
    (void)state;
    for (const sample *s = samples; s->name != NULL; s++)
        wrong += check_sample(s);
    assert_int_equal(wrong, 0);
}
/* gradcheck: test that nothing is missing */
static bool has_sample(const char *name)
{
    const sample *s = samples;
    while (s->name != NULL && strcmp(s->name, name) != 0)
        s++;
    return s->name != NULL;
}

static bool takes_tensors(const td_op *op)
{
    td_signature s;
    bool takes = false;
    assert_true(td_signature_parse(op->signature, &s));
    for (int i = 0; i < s.n_parameters; i++) {
        takes = takes || s.at[i].is_input;
        if (s.at[i].mutated)
            return false;
    }
    return takes;
}

static void no_operator_lacks_rule_sample_or_sentence(void **state)
{
    int missing = 0;
    (void)state;
    for (int i = 0; i < td_op_count(); i++) {
        const td_op *op = td_op_at(i);
        const td_rule_kind kind = td_rule_of(op)->kind;
        const char *lacks = !*td_op_documentation(op) ? "sentence"
            : takes_tensors(op) && kind == TD_RULE_UNKNOWN ? "rule"
            : td_op_differentiable(op) && !has_sample(op->name)
            ? "sample" : NULL;
        if (lacks != NULL)
            print_error("%s has no %s\n", op->name, lacks);
        missing += lacks != NULL;
    }
    assert_int_equal(missing, 0);
}
/* gradcheck: test that wrong rules are caught */
static bool wrong_backward(void *context, td_custom_call *call)
{
    (void)context;
    call->grad_in[0] = td_add(call->grad_out[0], call->grad_out[0]);
    return !td_failed();
}

static td_tensor *wrongly_copied(void *context, td_tensor *const *in)
{
    (void)context;
    td_no_grad_begin();
    td_tensor *y = td_clone(in[0]);
    td_no_grad_end();
    td_record_custom("wrong", 1, in, 1, &y, wrong_backward, NULL, NULL);
    return y;
}

static void a_wrong_rule_is_caught(void **state)
{
    (void)state;
    td_scope_begin();
    td_tensor *x = td_full(TD_DIMS(2), td_float(3), (td_tensor_options){
        .dtype = TD_FLOAT64, .requires_grad = true });
    assert_false(td_gradcheck(wrongly_copied, NULL, 1, &x,
                              (td_gradcheck_options)TD_DEFAULTS));
    assert_non_null(strstr(td_error_message(),
        "result element 0 by input element 0: the rule says 2"));
    td_error_clear();
    td_scope_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_derivative_is_right_twice),
        cmocka_unit_test(no_operator_lacks_rule_sample_or_sentence),
        cmocka_unit_test(a_wrong_rule_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
