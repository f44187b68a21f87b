/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "printing": edit that, not this file. */
#include <locale.h>
#include "core/device.h"

/* printing: functions that read one element */
td_scalar td_item(const td_tensor *x)
{
    if (!td_failed() && x != NULL && td_numel(x) == 1)
        return td_element(x, 0);
    if (x == NULL)
        td_fail(TD_ERROR_VALUE, "item", "the tensor is NULL");
    else
        td_fail(TD_ERROR_RUNTIME, "item", "a tensor with %" PRId64
            " elements cannot be read as one number", td_numel(x));
    return (td_scalar){ TD_SCALAR_NONE, { .i = 0 } };
}
double td_item_double(const td_tensor *x)
{
    return td_scalar_double(td_item(x));
}

int64_t td_item_int(const td_tensor *x)
{
    return td_scalar_int(td_item(x));
}
td_scalar td_element(const td_tensor *x, int64_t at)
{
    const size_t size = td_dtype_size(x->dtype);
    int64_t here = 0;
    td_scalar s = td_dtype_is_floating(x->dtype) ? td_float(0)
                                                 : td_int(0);
    const void *p = td_fetch(x, at * (int64_t)size, size, &here);
    if (p != NULL)
        td_convert(td_scalar_dtype(s), &s.as, 1, x->dtype, p, 1, 1);
    return x->dtype == TD_BOOL ? td_boolean(s.as.i != 0) : s;
}

/* printing: functions of the print options */
static const struct { int64_t usual, least, most; } range[] = {
    [TD_PRINT_PRECISION] = { 4, 0, 30 },
    [TD_PRINT_THRESHOLD] = { 1000, 0, INT64_MAX - 2 },
    [TD_PRINT_EDGEITEMS] = { 3, 1, 1 << 20 },
    [TD_PRINT_LINEWIDTH] = { 80, 1, 1 << 20 },
    [TD_PRINT_SCI_MODE] = { -1, -1, 1 },
};

int64_t td_print_option(td_print_choice which)
{
    const int64_t chosen = td_process()->print[which];
    return chosen ? chosen - 2 : range[which].usual;
}

bool td_set_print_option(td_print_choice which, int64_t value)
{
    if (value < range[which].least || value > range[which].most)
        return td_fail(TD_ERROR_VALUE, "set_printoptions", "option %d "
            "must be in %" PRId64 " ... %" PRId64 ", not %" PRId64,
            (int)which, range[which].least, range[which].most, value);
    td_process()->print[which] = value + 2;
    return true;
}

/* printing: functions of the locale */
void *td_locale_begin(void)
{
    return uselocale(newlocale(LC_NUMERIC_MASK, "C", NULL));
}

void td_locale_end(void *before)
{
    const locale_t plain = uselocale(before);
    if (plain != before)
        freelocale(plain);
}

/* printing: functions that write text */
bool td_text_begin(td_text *t)
{
    *t = (td_text){ .file = open_memstream(&t->at, &t->length) };
    if (t->file == NULL)
        return td_fail(TD_ERROR_MEMORY, "print", "no room for a text");
    t->locale = td_locale_begin();
    return true;
}

char *td_text_end(td_text *t)
{
    td_locale_end(t->locale);
    fclose(t->file);
    return t->at;
}
int64_t td_text_copy(td_text *t, char *out, int64_t room)
{
    char *text = td_text_end(t);
    snprintf(out, (size_t)room, "%s", text);
    free(text);
    return (int64_t)t->length;
}

/* printing: struct format */
typedef enum { WHOLE, DECIMAL, EXPONENT, INTEGER, TRUTH } style;

enum { TEXT = 400 };            /* the longest number, 1e308 in full */

typedef struct {
    int64_t option[TD_PRINT_OPTIONS];
    double largest, smallest;   /* magnitudes, but for 0 */
    bool whole;
    style style;
    int width;
    FILE *out;
} format;

/* printing: function break_line */
static void break_line(const format *f, int lines, int indent)
{
    while (lines-- > 0)
        fputc('\n', f->out);
    fprintf(f->out, "%*s", indent, "");
}

/* printing: function number_text */
static int number_text(const format *f, td_scalar s, char text[TEXT])
{
    switch (f->style) {
    case TRUTH:
        return snprintf(text, TEXT, "%s", s.as.b ? "True" : "False");
    case INTEGER:
        return snprintf(text, TEXT, "%" PRId64, s.as.i);
    default:
        if (isnan(s.as.f))
            return snprintf(text, TEXT, "nan");
        if (isinf(s.as.f))
            return snprintf(text, TEXT, s.as.f < 0 ? "-inf" : "inf");
        return snprintf(text, TEXT, f->style == WHOLE ? "%.*f." :
                        f->style == DECIMAL ? "%.*f" : "%.*e",
                        f->style == WHOLE ? 0
                        : (int)f->option[TD_PRINT_PRECISION], s.as.f);
    }
}

/* printing: function shown */
static bool shown(const td_tensor *x, int d, int64_t i,
                  const format *f)
{
    const int64_t edge = f->option[TD_PRINT_EDGEITEMS];
    return td_numel(x) <= f->option[TD_PRINT_THRESHOLD] || i < edge
        || i >= x->shape[d] - edge;
}

static int64_t next_shown(const td_tensor *x, int d, int64_t i,
                          const format *f)
{
    return shown(x, d, i + 1, f) ? i + 1
         : x->shape[d] - f->option[TD_PRINT_EDGEITEMS];
}

/* printing: function each_shown */
typedef void visitor(format *f, td_scalar s);

static void each_shown(const td_tensor *x, int d, int64_t at,
                       visitor *visit, format *f)
{
    if (d == x->rank)
        visit(f, td_element(x, at));
    else
        for (int64_t i = 0; i < x->shape[d];
             i = next_shown(x, d, i, f))
            each_shown(x, d + 1, at + i * x->strides[d], visit, f);
}
static void note_size(format *f, td_scalar s)
{
    const double v = fabs(td_scalar_double(s));
    if (!isfinite(v) || v == 0)
        return;
    f->largest = v > f->largest ? v : f->largest;
    f->smallest = f->smallest == 0 || v < f->smallest ? v : f->smallest;
    f->whole &= v == floor(v);
}

/* printing: function choose_style */
static style choose_style(const td_tensor *x, format *f)
{
    if (!td_dtype_is_floating(x->dtype))
        return x->dtype == TD_BOOL ? TRUTH : INTEGER;
    f->whole = true;
    if (td_numel(x) > 0)
        each_shown(x, 0, 0, note_size, f);
    const bool far = f->largest > 1e8 || (f->smallest > 0
        && f->largest / f->smallest > 1000);
    if (f->whole)
        return far ? EXPONENT : WHOLE;
    return far || f->smallest < 1e-4 ? EXPONENT : DECIMAL;
}
static void note_width(format *f, td_scalar s)
{
    char text[TEXT];
    const int n = number_text(f, s, text);
    if (s.kind != TD_SCALAR_FLOAT || (isfinite(s.as.f) && s.as.f != 0))
        f->width = n > f->width ? n : f->width;
}

/* printing: function separate */
static void separate(const td_tensor *x, int d, int64_t i,
                     int *column, format *f)
{
    const int indent = d + 8;           /* behind tensor( and [ */
    const bool row = d == x->rank - 1;
    const int line = (int)f->option[TD_PRINT_LINEWIDTH];
    const int fit = (line - indent + 1) / (f->width + 2);
    fputc(',', f->out);
    if (!shown(x, d, i - 1, f)) {
        /* printing: say that parts are left out */
        if (row)
            fputs("  ", f->out);
        else
            break_line(f, 1, indent);
        fputs("...,", f->out);
        ++*column;
    }
    if (row && ++*column % (fit > 0 ? fit : 1) != 0)
        fputc(' ', f->out);
    else
        break_line(f, row ? 1 : x->rank - 1 - d, indent);
}

/* printing: function print_part */
static void print_part(const td_tensor *x, int d, int64_t at, format *f)
{
    char text[TEXT];
    int column = 0;
    if (d == x->rank) {
        number_text(f, td_element(x, at), text);
        fprintf(f->out, "%*s", f->width, text);
        return;
    }
    fputc('[', f->out);
    for (int64_t i = 0; i < x->shape[d]; i = next_shown(x, d, i, f)) {
        if (i > 0)
            separate(x, d, i, &column, f);
        print_part(x, d + 1, at + i * x->strides[d], f);
    }
    fputc(']', f->out);
}

/* printing: function td_repr */
int64_t td_repr(const td_tensor *x, char *buffer, int64_t capacity)
{
    td_text t;
    if (!td_text_begin(&t))
        return 0;
    format f = { .out = t.file };
    for (int i = 0; i < TD_PRINT_OPTIONS; i++)
        f.option[i] = td_print_option((td_print_choice)i);
    if (x == NULL) {
        fputs("NULL", f.out);
    } else {
        f.style = choose_style(x, &f);
        if (x->rank > 0 && td_numel(x) > 0)
            each_shown(x, 0, 0, note_width, &f);
        /* printing: let the user overrule the style */
        const int64_t forced = f.option[TD_PRINT_SCI_MODE];
        if (forced >= 0 && td_dtype_is_floating(x->dtype))
            f.style = forced ? EXPONENT : f.whole ? WHOLE : DECIMAL;
        fputs("tensor(", f.out);
        if (td_numel(x) > 0)
            print_part(x, 0, 0, &f);
        else
            fputs("[]", f.out);
        /* printing: name shape and type where they surprise */
        char shape[TD_SHAPE_TEXT], device[TD_DEVICE_TEXT];
        if (td_numel(x) == 0 && x->rank != 1) {
            td_shape_text(x, shape);
            shape[strlen(shape) - 1] = '\0';
            fprintf(f.out, ", size=(%s)", shape + 1);
        }
        const bool usual = x->dtype == td_default_dtype()
            || (td_numel(x) > 0
                && (x->dtype == TD_INT64 || x->dtype == TD_BOOL));
        if (!td_at_home(x))
            fprintf(f.out, ", device='%s'",
                    td_device_text(x->storage->device, device));
        if (!usual)
            fprintf(f.out, ", dtype=%s", td_dtype_name(x->dtype));
        fputc(')', f.out);
    }
    return td_text_copy(&t, buffer, buffer ? capacity : 0);
}
/* printing: function td_print */
bool td_print(const td_tensor *x)
{
    const int64_t n = td_repr(x, NULL, 0) + 1;
    char *text = td_failed() ? NULL : td_alloc((size_t)n);
    if (!text)
        return false;
    td_repr(x, text, n);
    puts(text);
    td_free(text, (size_t)n);
    return true;
}
