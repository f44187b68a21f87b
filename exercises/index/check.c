/* Places as sums, read from the text of whole programs.  SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <treadle/compile.h>
#include <treadle/elementwise.h>
#include <treadle/reductions.h>
#include "check.h"
#include "compiler/backend-mlir.h"

static const int64_t at[TD_MAX_RANK] = { 3, 5, 7, 11, 13, 17, 19, 23 };
static const char *sum;

static const char *after(const char *p)
{
    while (*p == ' ')
        p++;
    return p;
}

static void unread(const char *text, const char *expected)
{
    check_wrong("  expected  %s\n  got       %.200s", expected, text);
}

/* A number or a counter at *p. */
static int64_t factor(const char **p, const char *text, const char *counter, bool *seen)
{
    char *end;
    const size_t n = strlen(counter);
    if (strncmp(*p, counter, n) == 0 && isdigit((unsigned char)(*p)[n])) {
        const int64_t d = strtoll(*p + n, &end, 10);
        *p = after(end);
        if (d >= TD_MAX_RANK || d < 0)
            unread(text, "a counter of one of the dimensions");
        seen[d] = true;
        return at[d];
    }
    const int64_t x = strtoll(*p, &end, 10);
    if (end == *p || !(isdigit((unsigned char)**p) || **p == '-'))
        unread(text, "terms of counters and numbers, a plus between two, none at the end");
    *p = after(end);
    return x;
}

static void check_sum(const char *text, const char *counter, int rank, const td_load *load)
{
    bool seen[TD_MAX_RANK] = { false };
    const char *p = after(text);
    int64_t got = 0, expected = load->offset;
    for (bool more = true; more; more = *p == '+' && (p = after(p + 1), true)) {
        uint64_t x = (uint64_t)factor(&p, text, counter, seen);
        while (*p == '*') {
            p = after(p + 1);
            x *= (uint64_t)factor(&p, text, counter, seen);
        }
        got = (int64_t)((uint64_t)got + x);
    }
    if (*p != '\0')
        unread(text, "terms of counters and numbers, a plus between two, none at the end");
    for (int d = 0; d < TD_MAX_RANK; d++) {
        expected += d < rank ? load->flat[d] * at[d] : 0;
        if (seen[d] && (d >= rank || load->flat[d] == 0))
            check_wrong("  expected  no term of the counter %s%d\n  got       %.200s", counter, d, text);
    }
    if (got != expected)
        check_wrong("  with counters 3, 5, 7, 11, 13, 17, 19, 23\n  expected  place %" PRId64 "\n  got       place %" PRId64
                    ": %.200s", expected, got, text);
}

typedef td_tensor *function(td_tensor *x);

static td_tensor *positive(td_tensor *x) { return td_relu(x); }
static td_tensor *summed(td_tensor *x) { return td_sum(td_relu(x), (td_reduce_options){ .dims = TD_DIMS(1) }); }

/* The places of all loads and of the store of f, whose steps and offsets are these. */
static void check_places(const char *what, function *f, int rank, int64_t offset, const int64_t *flat)
{
    check_case(what, "offset + flat[0] * counter 0 + flat[1] * counter 1 + ..., but for the dimensions with 0");
    td_tensor *y;
    td_scope_begin();
    const bool began = td_trace_begin(true);
    if (!began)
        check_no_error();
    y = f(td_trace_input(TD_DIMS(7, 15), TD_FLOAT32, (td_device){ TD_DEVICE_CPU, 0 }));
    td_program *p = td_trace_end(&y, 1);
    check_no_error();
    td_lowered *l = td_lower(p);
    check_no_error();
    td_stage *s = &l->stage[l->n_stages - 1];
    for (int k = 0; k <= s->n_loads; k++) {
        const bool store = k == s->n_loads;
        for (int d = 0; d <= TD_MAX_RANK; d++) {
            s->load[k].flat[d] = d >= rank ? 90 + d : store || k == 0 ? flat[d] : flat[d] + (flat[d] != 0 && flat[d] != 1);
            if (d < TD_MAX_RANK)
                s->load[k].stride[d] = 1000 + d;
        }
        s->load[k].offset = offset + k;
    }
    for (int d = 0; d < rank; d++)
        s->size[d] = 4 + d;
    s->kept = f == summed ? rank - 1 : rank;
    s->rank = rank;
    char *const text = td_emit_mlir(l, false);
    check_no_error();
    int found = 0;
    for (char *line = text; line != NULL; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const size_t length = strcspn(line, "\n");
        char row[1200], *open;
        snprintf(row, sizeof row, "%.*s", (int)(length < 1100 ? length : 1100), line);
        const bool store = strstr(row, "affine.store") || strstr(row, "affine.vector_store");
        if (!store && !strstr(row, "affine.load") && !strstr(row, "affine.vector_load"))
            continue;
        open = strchr(strstr(row, "%m"), '[');
        char *close = strchr(open, ']');
        if (close == NULL)
            unread(row, "an index that ends");
        *close = '\0';
        const td_load *load = &s->load[s->n_loads];
        for (int k = 0; k < s->n_loads && !store; k++)
            load = &s->load[k];
        check_sum(open + 1, "%i", rank, load);
        found++;
    }
    if (found < 2)
        check_wrong("  expected  places of what is read and what is written\n  got       none");
    free(text);
    td_lowered_free(l);
    td_release(p);
    td_scope_end();
}

int main(void)
{
    check_places("numbers in rows", positive, 2, 0, (const int64_t[]){ 10, 1 });
    check_places("a column for every column", positive, 2, 4, (const int64_t[]){ 10, 0 });
    check_places("a matrix that is turned", positive, 2, 1, (const int64_t[]){ 1, 12 });
    check_places("one row, again and again", positive, 2, 30, (const int64_t[]){ 0, 1 });
    check_places("one number for all", positive, 2, 0, (const int64_t[]){ 0, 0 });
    check_places("one number for all, not the first", positive, 3, 9, (const int64_t[]){ 0, 0, 0 });
    check_places("rows backwards", positive, 2, 90, (const int64_t[]){ -10, 1 });
    check_places("an offset below zero", positive, 2, -8, (const int64_t[]){ 10, 2 });
    check_places("a large matrix", positive, 2, INT64_C(5000000000), (const int64_t[]){ INT64_C(6000000000), 2 });
    check_places("eight dimensions of large numbers", positive, 8, INT64_C(-70000000000000001),
                 (const int64_t[]){ INT64_C(-1000000000000007), INT64_C(200000000000003), 0, INT64_C(-30000000000009),
                                    INT64_C(4000000000001), INT64_C(500000000007), INT64_C(-60000000003), 7 });
    check_places("a folded row", summed, 2, 2, (const int64_t[]){ 20, 3 });
    check_places("a folded column", summed, 3, 0, (const int64_t[]){ 20, 0, 5 });
    return check_end();
}
