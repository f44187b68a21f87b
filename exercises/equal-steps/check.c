/* Which steps a program has twice, against a comparison of every two texts. */
#include "check.h"
#include "compiler/lower.h"

enum { MOST = 3000 };
static const char *rule = "a step is like the first that is written the same, operator, operands, numbers and attributes";
static char text[MOST * 100];
static char call[MOST][1200];
static int steps;

static void begin(void)
{
    steps = 0;
}

static __attribute__((format(printf, 1, 2))) void step(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(call[steps++], sizeof call[0], format, list);
    va_end(list);
}

/* Step k makes value k + 1, of the type of %0 or, for a list, longer. */
static void check_steps(const char *shape)
{
    size_t n = (size_t)snprintf(text, sizeof text, "input %%0 : float32[3, 3]\n");
    for (int k = 0; k < steps; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%%%d = %s : float32[%s]\n", k + 1, call[k],
                              strncmp(call[k], "neg", 3) == 0 ? "3, 3" : shape);
    snprintf(text + n, sizeof text - n, "return %%%d\n", steps);
    td_program *p = td_program_parse(text);
    check_no_error();
    td_lowered *l = td_lower(p);
    check_no_error();
    for (int k = 0; k < steps; k++) {
        int like = 0;
        while (strcmp(call[like], call[k]) != 0)
            like++;
        if (l->value[k + 1].root != like + 1)
            check_wrong("  step %d, %.60s: expected like step %d, %.60s; got like step %d, %.60s", k, call[k], like, call[like],
                        l->value[k + 1].root - 1, call[(unsigned)(l->value[k + 1].root - 1) < (unsigned)steps
                        ? l->value[k + 1].root - 1 : 0]);
    }
    td_lowered_free(l);
}

int main(void)
{
    td_scope_begin();
    check_case("twice the same, behind one another and not", rule);
    begin();
    step("exp(%%0)"), step("exp(%%0)"), step("neg(%%0)"), step("exp(%%0)"), step("neg(%%0)");
    check_steps("3, 3");
    for (int kinds = 1; kinds < 40; kinds += 4) {
        check_case("steps that differ in a number", rule);
        begin();
        for (int k = 0; k < 100; k++)
            step("mul(%%0, %d.5)", k * 7 % kinds);
        check_steps("3, 3");
    }
    check_case("steps that differ in an attribute", rule);
    begin();
    for (int k = 0; k < 12; k++)
        step("cumsum(%%0, dim=%d)", k % 3 % 2);
    check_steps("3, 3");
    check_case("steps that differ in the order of their operands", rule);
    begin();
    for (int k = 0; k < 9; k++)
        step(k % 3 == 0 ? "sub(%%0, 1.0)" : k % 3 == 1 ? "sub(1.0, %%0)" : "sub(1, %%0)");
    check_steps("3, 3");
    check_case("a second program, of steps that the first had", rule);
    begin();
    step("neg(%%0)"), step("exp(%%0)"), step("mul(%%0, 3.5)"), step("exp(%%0)"), step("mul(%%0, 3.5)");
    check_steps("3, 3");
    check_case("lists of a hundred that differ in the last", rule);
    begin();
    step("neg(%%0)");
    for (int k = 0; k < 6; k++) {
        char list[1000] = "";
        for (int i = 0; i < 99; i++)
            strcat(list, "%0, ");
        step("cat([%s%s], dim=0)", list, k % 3 == 1 ? "%1" : "%0");
    }
    check_steps("300, 3");
    check_case("texts that are equal for long", rule);
    begin();
    for (int k = 0; k < 8; k++)
        step("clamp(%%0, min=-1.2345678901234567e-300, max=1.2345678901234%de+200)", 1 + k % 4);
    check_steps("3, 3");
    check_case("three thousand steps, a thousand of a kind", rule);
    begin();
    for (int k = 0; k < MOST; k++)
        step("mul(%%0, %d.5)", k * 7 % 1000);
    check_steps("3, 3");
    td_scope_end();
    return check_end();
}
