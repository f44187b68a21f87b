/* needs: kernels folds cuda-gemm losses optimisers */
/* The device plug-in behind its table, task by task, against the host: rows,
   conversions, folds, steps, products; then its memory, streams and faults.
   TREADLE_PLUGIN names the plug-in, else it is the emulated one beside us. */
#include "treadle_test.h"
#include <dlfcn.h>
#include <libgen.h>
#include <treadle/plugin.h>
#include "ops/elementwise.h"
#include "ops/gradients.h"
#include "core/registry.h"
#include "core/space.h"

static const td_device cpu = { TD_DEVICE_CPU, 0 };
static td_device_table table;
static bool (*use_stream)(int device, int stream);

static int open_plugin(void **state)
{
    static const td_host_api api = { TD_PLUGIN_VERSION, td_fail,
        td_parallel_for, false, td_dtype_size, td_dtype_is_floating,
        td_collapse };
    char self[4000] = "", path[4100];
    void *plugin = NULL;
    const char *named = getenv("TREADLE_PLUGIN");
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    char *here = dirname(self);
    for (int i = 0; i < 2 && plugin == NULL; i++) {
        snprintf(path, sizeof path, "%s/../../%s%s", here, i ? "../" : "",
                 "libtreadle_emulate.so");
        plugin = dlopen(named ? named : path, RTLD_NOW | RTLD_LOCAL);
    }
    if (plugin == NULL) {
        print_error("%s\n", dlerror());
        return 1;
    }
    td_plugin_init *init = NULL;
    *(void **)&init = dlsym(plugin, "treadle_cuda_init");
    *(void **)&use_stream = dlsym(plugin, "treadle_cuda_use_stream");
    return init == NULL || !init(&api, &table);
}

/* ---- tasks -------------------------------------------------------------- */

/* A tensor in the device's memory, of the same layout. */
typedef struct { td_array array; void *data; size_t bytes; } image;

static image up(const td_value *v)
{
    image i = { { .kind = TD_NONE }, NULL, 0 };
    i.array.scalar = v->as.scalar;
    if (v->kind != TD_TENSOR) {
        i.array.kind = v->kind == TD_SCALAR ? TD_SCALAR : TD_NONE;
        return i;
    }
    const td_tensor *x = v->as.tensor;
    i.bytes = td_numel(x) ? (size_t)(x->storage->bytes - x->offset * (int64_t)td_dtype_size(x->dtype)) : 0;
    assert_true(table.allocate(0, i.bytes, &i.data));
    assert_true(table.copy(0, i.data, td_at(x), i.bytes, 0));
    i.array.kind = TD_TENSOR;
    i.array.dtype = x->dtype;
    i.array.rank = x->rank;
    i.array.data = i.data;
    memcpy(i.array.shape, x->shape, sizeof x->shape);
    memcpy(i.array.strides, x->strides, sizeof x->strides);
    return i;
}

static void spread(td_array *a, const td_array *out)
{
    const td_array own = *a;
    const int more = out->rank - own.rank;
    a->rank = out->rank;
    for (int d = 0; d < out->rank; d++) {
        const bool repeat = d < more || own.shape[d - more] == 1;
        a->shape[d] = out->shape[d];
        a->strides[d] = repeat ? 0 : own.strides[d - more];
    }
}

/* Runs a task on images of its tensors; what the results were before is
   there too, and what they are after is here. */
static bool there(const char *what, td_dtype dtype, bool spreads, int n_in,
                  const td_value *in, int n_attr, const td_value *attr,
                  int n_out, td_tensor *const *out)
{
    image from[8], to[2];
    td_array ins[8], outs[2];
    for (int i = 0; i < n_out; i++) {
        const td_value v = td_v_tensor(out[i]);
        outs[i] = (to[i] = up(&v)).array;
    }
    for (int i = 0; i < n_in; i++) {
        ins[i] = (from[i] = up(&in[i])).array;
        if (spreads && ins[i].kind == TD_TENSOR)
            spread(&ins[i], &outs[0]);
        for (int k = 0; k < n_out; k++)     /* in place */
            if (in[i].kind == TD_TENSOR && in[i].as.tensor == out[k])
                ins[i].data = outs[k].data;
    }
    const td_task task = { what, dtype, 0, n_in, n_attr, n_out, ins, outs,
                           attr };
    bool done = table.compute(&task);
    for (int i = 0; i < n_out; i++) {
        done = done && table.copy(0, td_at(out[i]), to[i].data, to[i].bytes,
                                  1);
        table.release(0, to[i].data, to[i].bytes);
    }
    for (int i = 0; i < n_in; i++)
        table.release(0, from[i].data, from[i].bytes);
    return done;
}

/* The same on the host; NULL if it refuses. */
static td_tensor *here(const char *what, int n_in, const td_value *in,
                       int n_attr, const td_value *attr, td_tensor **second)
{
    td_call call = { .op = td_op_find(what), .n_in = n_in, .n_attr = n_attr,
                     .in = in, .attr = attr };
    assert_non_null(call.op);
    if (!td_run(&call))
        return NULL;
    if (second != NULL)
        *second = call.out[1];
    return call.out[0];
}

static td_tensor *like(const td_tensor *x)
{
    td_tensor *y = td_tensor_new(td_shape_of(x), x->dtype, cpu);
    memset(td_at(y), 1, (size_t)td_numel(y) * td_dtype_size(y->dtype));
    return y;
}

static void expect_same(const td_tensor *got, const td_tensor *expected,
                        double ulps, double magnitude, const char *what)
{
    comparison c = { 0 };
    const double eps = expected->dtype == TD_FLOAT32 ? 0x1p-23
                     : expected->dtype == TD_FLOAT64 ? 0x1p-52 : 0;
    for (int64_t i = 0; i < td_numel(expected); i++) {
        const double e = at(expected, i);
        const double size = fabs(e) > magnitude ? fabs(e) : magnitude;
        compare(&c, at(got, i), e, isfinite(e) ? ulps * eps * size : 0);
    }
    expect_right(c, "%s %s rank %d", what, td_dtype_name(expected->dtype),
                 expected->rank);
}

/* ---- rows --------------------------------------------------------------- */

typedef struct {
    const char *name;
    int n;
    bool test, cancels;         /* a small result of larger terms */
} row;

enum { FLOATS, NUMBERS, WHOLE, ALL, TESTS };
enum { ANY, AS_FLOAT, OF_FLOAT, TO_BOOL };

static const row rows[] = {
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    { #name, operands, flags == TO_BOOL, \
      dtypes == FLOATS && (operands == 2 || flags == ANY) },
#include "ops/elementwise.inc"
};

static const td_dtype dtypes[] = { TD_FLOAT32, TD_FLOAT64, TD_INT64,
                                   TD_INT32, TD_UINT8, TD_BOOL };

static td_tensor *numbers(td_dims shape, td_dtype dtype, layout how)
{
    td_tensor *x = random_tensor(shape, dtype, how,
                                 dtype == TD_UINT8 ? 0 : -4, 9);
    const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 1e-40, 200 };
    if (td_dtype_is_floating(dtype) && how == PLAIN && td_numel(x) > 60)
        td_convert(dtype, td_at(x), 7, TD_FLOAT64, odd, 1, 6);
    return x;
}

static void check_row(const row *r, const td_value *in)
{
    td_tensor *expected = here(r->name, r->n, in, 0, NULL, NULL);
    if (expected == NULL) {
        td_error_clear();
        return;
    }
    td_tensor *got = like(expected);
    const td_dtype dtype = r->test ? td_result_type(r->n, in)
                                   : expected->dtype;
    if (!there(r->name, dtype, true, r->n, in, 0, NULL, 1, &got))
        fail_msg("%s: %s", r->name, td_error_message());
    expect_same(got, expected, 4, r->cancels ? 1 : 0, r->name);
}

static void every_row_computes_what_the_host_does(void **state)
{
    const td_dims shape = TD_DIMS(7, 5, 11), odd = TD_DIMS(5, 1);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int k = 0; k < 6; k++)
            for (int how = PLAIN; how < LAYOUTS; how++) {
                td_scope_begin();
                const td_dtype dtype = dtypes[k];
                td_value in[] = {
                    td_v_tensor(numbers(shape, dtype, (layout)how)),
                    td_v_tensor(numbers(how == SLICED ? odd : shape, dtype,
                                        (layout)(how ? how - 1 : 0))) };
                check_row(&rows[r], in);
                if (rows[r].n == 2 && how == TURNED) {
                    in[1] = td_v_int(1);
                    check_row(&rows[r], in);
                    in[1] = td_v_float(0.3);
                    check_row(&rows[r], in);
                    in[1] = td_v_tensor(numbers(TD_RANK_0, dtype, PLAIN));
                    check_row(&rows[r], in);
                }
                td_scope_end();
            }
}

static void rows_mix_types_and_shapes_of_any_size(void **state)
{
    const row add = { "add", 2, false, false };
    td_value in[] = { td_v_tensor(numbers(TD_DIMS(3, 1), TD_INT64, PLAIN)),
                      td_v_tensor(numbers(TD_DIMS(4), TD_FLOAT32, TURNED)) };
    check_row(&add, in);
    in[0] = td_v_tensor(numbers(TD_DIMS(2, 0, 4), TD_FLOAT32, PLAIN));
    check_row(&add, in);
    in[0] = td_v_tensor(numbers(TD_RANK_0, TD_UINT8, PLAIN));
    check_row(&add, in);
    in[0] = td_v_tensor(numbers(TD_DIMS(2, 3, 2, 1, 2, 3, 2, 4), TD_BOOL,
                                TURNED));
    check_row(&add, in);
    in[0] = td_v_tensor(numbers(TD_DIMS(2503), TD_FLOAT32, PLAIN));
    in[1] = td_v_tensor(numbers(TD_DIMS(2503), TD_FLOAT32, SLICED));
    check_row(&add, in);
}

static void an_update_in_place_stores_in_the_tensors_type(void **state)
{
    td_tensor *x = numbers(TD_DIMS(5, 7), TD_FLOAT32, TURNED);
    td_tensor *y = numbers(TD_DIMS(7), TD_INT64, PLAIN);
    td_tensor *expected = td_add(x, y);
    const td_value in[] = { td_v_tensor(x), td_v_tensor(y) };
    assert_true(there("add", TD_FLOAT32, true, 2, in, 0, NULL, 1, &x));
    expect_same(x, expected, 0, 0, "add in place");
    td_tensor *wide_x = td_to(x, TD_FLOAT64), *sum = td_add(wide_x, x);
    const td_value both[] = { td_v_tensor(wide_x), td_v_tensor(x) };
    assert_true(there("add", TD_FLOAT64, true, 2, both, 0, NULL, 1, &x));
    expect_same(x, td_to(sum, TD_FLOAT32), 0, 0, "add, stored narrower");
}

static void where_clamp_and_addcmul_are_those_of_the_host(void **state)
{
    for (int k = 0; k < 6; k++) {
        td_tensor *x = numbers(TD_DIMS(7, 11), dtypes[k], TURNED);
        const row where = { "where", 3, false, false };
        const td_value in[] = {
            td_v_tensor(numbers(TD_DIMS(11), TD_BOOL, PLAIN)),
            td_v_tensor(x), td_v_int(1) };
        check_row(&where, in);
        if (dtypes[k] == TD_BOOL)
            continue;
        for (int bounds = 1; bounds < 4; bounds++) {
            static const char *const task[] = { "", "maximum", "minimum",
                                                "clamp" };
            const td_value low = bounds & 1 ? td_v_int(1) : td_v_none();
            const td_value high = bounds & 2 ? td_v_int(3) : td_v_none();
            const td_value attr[] = { low, high };
            const td_value all[] = { td_v_tensor(x), bounds == 2 ? high
                                                     : low, high };
            td_tensor *expected = here("clamp", 1, all, 2, attr, NULL);
            td_tensor *got = like(expected);
            assert_true(there(task[bounds], dtypes[k], true, bounds == 3 ? 3
                              : 2, all, 0, NULL, 1, &got));
            expect_same(got, expected, 0, 0, "clamp");
        }
        const td_value one = td_v_int(1);
        const td_value three[] = { td_v_tensor(x), td_v_tensor(numbers(
            TD_DIMS(11), dtypes[k], PLAIN)), td_v_int(3) };
        td_tensor *expected = here("addcmul", 3, three, 1, &one, NULL);
        td_tensor *got = like(expected);
        assert_true(there("addcmul", dtypes[k], true, 3, three, 0, NULL, 1,
                          &got));
        expect_same(got, expected, 4, 4, "addcmul");
    }
}

/* The loops of chapter 11 run on whole vectors. */
static void check_gradient(const char *name, td_loop *loop, int n)
{
    enum { COUNT = 64 * TD_LANES };
    td_value in[4];
    char *data[5];
    td_tensor *expected = td_empty(TD_DIMS(COUNT), plain);
    td_tensor *got = like(expected);
    data[0] = td_at(expected);
    for (int i = 0; i < n; i++) {
        td_tensor *x = numbers(TD_DIMS(COUNT), TD_FLOAT32, PLAIN);
        in[i] = td_v_tensor(x);
        data[i + 1] = td_at(x);
    }
    loop(COUNT, data);
    if (!there(name, TD_FLOAT32, true, n, in, 0, NULL, 1, &got))
        fail_msg("%s: %s", name, td_error_message());
    /* 1 / (1 - x x) magnifies the rounding of x x, curves cancel */
    expect_same(got, expected, 64, 0.25, name);
}

static void gradients_of_rows_are_those_of_the_host(void **state)
{
    const td_gradient_level *level = TD_ISA_PICK(td_gradients);
#define LOOP(name, i) level->loop[TD_GRADIENT_##name][i][TD_FLOAT32]
#define UNARY_RULE(name, ...) \
    check_gradient(#name "_gradient", LOOP(name, 0), 3);
#define BINARY_RULE(name, ...) \
    check_gradient(#name "_gradient_a", LOOP(name, 0), 4); \
    check_gradient(#name "_gradient_b", LOOP(name, 1), 4);
#include "ops/elementwise.inc"
}

/* ---- copies ------------------------------------------------------------- */

static void every_type_converts_to_every_other(void **state)
{
    for (int from = 1; from < TD_DTYPE_COUNT; from++)
        for (int to = 1; to < TD_DTYPE_COUNT; to++) {
            td_scope_begin();
            double value[77];
            const double odd[] = { NAN, INFINITY, -1e30, 1e9, -0.0, 65519 };
            for (int i = 0; i < 77; i++)
                value[i] = i < 6 ? odd[i] : uniform() * 300 - 120;
            td_tensor *x = td_tensor_new(TD_DIMS(7, 11), (td_dtype)from, cpu);
            td_convert((td_dtype)from, td_at(x), 1, TD_FLOAT64, value, 1, 77);
            const td_value in = td_v_tensor(td_transpose(x, 0, 1));
            td_tensor *expected = td_to(in.as.tensor, (td_dtype)to);
            td_tensor *got = like(expected);
            if (from == to)
                expected = in.as.tensor;
            assert_true(there("copy_", got->dtype, true, 1, &in, 0, NULL, 1,
                              &got));
            expect_same(got, expected, 0, 0, td_dtype_name((td_dtype)from));
            td_scope_end();
        }
}

static void filling_writes_one_value_through_any_view(void **state)
{
    for (int k = 1; k < TD_DTYPE_COUNT; k++) {
        td_tensor *x = numbers(TD_DIMS(5, 7), (td_dtype)k, PLAIN);
        td_tensor *y = td_clone(x);
        td_tensor *column = td_select(x, 1, 3), *same = td_select(y, 1, 3);
        const td_value value = td_v_float(2.5);
        assert_non_null(td_fill_(same, td_float(2.5)));
        assert_true(there("fill_", x->dtype, true, 1, &value, 0, NULL, 1,
                          &column));
        expect_same(x, y, 0, 0, "fill_");
    }
}

/* ---- folds -------------------------------------------------------------- */

static void check_fold(const char *what, td_tensor *x, td_dims dims)
{
    const td_value in = td_v_tensor(x);
    const td_value attr[] = { td_v_ints(&dims), td_v_bool(true) };
    const bool sum = strcmp(what, "sum") == 0;
    td_tensor *expected = here(what, 1, &in, sum ? 2 : 2, attr, NULL);
    if (expected == NULL) {
        td_error_clear();
        return;
    }
    td_tensor *got = like(expected);
    const td_dtype type = td_dtype_is_floating(x->dtype) ? x->dtype
                                                         : TD_INT64;
    if (!there(what, type, false, 1, &in, 1, attr, 1, &got))
        fail_msg("%s: %s", what, td_error_message());
    const double n = (double)td_numel(x) / (double)td_numel(got);
    expect_same(got, expected, sum ? n : strcmp(what, "logsumexp") ? 0 : 4,
                sum ? 9 : 1, what);
}

static void folds_are_those_of_the_host(void **state)
{
    static const char *const what[] = { "sum", "amax", "amin", "any", "all",
                                        "logsumexp" };
    const td_dims dims[] = { TD_DIMS(0), TD_DIMS(1), TD_DIMS(2),
                             TD_DIMS(0, 2), TD_DIMS(0, 1, 2) };
    for (int w = 0; w < 6; w++)
        for (int k = 0; k < 6; k++)
            for (int how = PLAIN; how < LAYOUTS; how++)
                for (int d = 0; d < 5; d++) {
                    td_scope_begin();
                    td_tensor *x = random_tensor(TD_DIMS(13, 5, 37),
                        dtypes[k], (layout)how, dtypes[k] == TD_UINT8 ? 0
                                                                 : -4, 9);
                    check_fold(what[w], x, dims[d]);
                    td_scope_end();
                }
}

static void long_folds_are_cut_into_parts(void **state)
{
    td_tensor *x = random_plain(TD_DIMS(70001), TD_FLOAT32, -1, 1);
    check_fold("sum", x, TD_DIMS(0));
    check_fold("amax", x, TD_DIMS(0));
    td_tensor *y = random_plain(TD_DIMS(4001, 7), TD_FLOAT64, -1, 1);
    check_fold("sum", y, TD_DIMS(0));
    check_fold("amin", td_transpose(y, 0, 1), TD_DIMS(1));
    ((float *)td_at(x))[60013] = NAN;
    check_fold("amax", x, TD_DIMS(0));
}

static void check_find(const char *what, td_tensor *x, int dim, bool both)
{
    const td_value in = td_v_tensor(x);
    const td_dims dims = TD_DIMS(dim);
    const td_value axes = td_v_ints(&dims);
    const td_value attr[] = { td_v_int(dim), td_v_bool(true) };
    td_tensor *second = NULL;
    td_tensor *first = here(what, 1, &in, 2, attr, &second);
    td_tensor *got[] = { like(first), both ? like(second) : NULL };
    assert_true(there(what, x->dtype, false, 1, &in, 1, &axes, 1 + both,
                      got));
    expect_same(got[0], first, 0, 0, what);
    if (both)
        expect_same(got[1], second, 0, 0, what);
}

static void searches_find_the_first_of_equals_and_nan_before_all(void **state)
{
    for (int k = 0; k < 5; k++)
        for (int how = PLAIN; how < LAYOUTS; how++)
            for (int dim = 0; dim < 3; dim++) {
                td_tensor *x = random_tensor(TD_DIMS(13, 5, 37), dtypes[k],
                                             (layout)how, 0, 6);
                if (k < 2 && how == PLAIN)
                    td_fill_(td_slice(x, dim, (td_opt_i64)td_some(2),
                                      (td_opt_i64)td_some(4), 1),
                             td_float(NAN));
                check_find("argmax", x, dim, false);
                check_find("argmin", x, dim, false);
                check_find("max_dim", x, dim, true);
                check_find("min_dim", x, dim, true);
            }
}

static void softmax_runs_along_any_dimension(void **state)
{
    static const char *const what[] = { "softmax", "log_softmax" };
    for (int k = 0; k < 2; k++)
        for (int how = PLAIN; how < LAYOUTS; how++)
            for (int dim = 0; dim < 3; dim++)
                for (int w = 0; w < 2; w++) {
                    td_tensor *x = random_tensor(TD_DIMS(3, 41, 7),
                                      dtypes[k], (layout)how, -20, 20);
                    const td_value in = td_v_tensor(x);
                    const td_dims dims = TD_DIMS(dim);
                    const td_value axes = td_v_ints(&dims);
                    const td_value attr[] = { td_v_int(dim), td_v_none() };
                    td_tensor *y = here(what[w], 1, &in, 2, attr, NULL);
                    td_tensor *got = like(y);
                    assert_true(there(what[w], y->dtype, false, 1, &in, 1,
                                      &axes, 1, &got));
                    expect_same(got, y, 8, w ? 4 : 0, what[w]);
                }
}

/* ---- steps ------------------------------------------------------------ */

static void a_step_of_sgd_moves_parameter_and_momentum(void **state)
{
    for (int flags = 0; flags < 8; flags++) {
        td_tensor *p = random_plain(TD_DIMS(17, 5), TD_FLOAT32, -1, 1);
        td_tensor *m = random_plain(TD_DIMS(17, 5), TD_FLOAT32, -1, 1);
        td_tensor *g = random_tensor(TD_DIMS(17, 5), TD_FLOAT32, TURNED, -1,
                                     1);
        td_tensor *out[] = { td_clone(p), td_clone(m) };
        td_value in[] = { td_v_tensor(p), td_v_tensor(g),
                          flags & 1 ? td_v_tensor(m) : td_v_none() };
        const td_value attr[] = { td_v_float(0.1), td_v_float(0.9),
            td_v_float(0.3), td_v_float(flags & 2 ? 0.01 : 0),
            td_v_bool(flags & 4), td_v_bool(flags & 2), td_v_bool(false) };
        td_value images[] = { td_v_tensor(out[0]), in[1],
            flags & 1 ? td_v_tensor(out[1]) : td_v_none() };
        assert_non_null(here("sgd_step_", 3, in, 7, attr, NULL));
        assert_true(there("sgd_step_", TD_FLOAT32, false, 3, images, 7, attr,
                          1 + (flags & 1), out));
        expect_same(out[0], p, 4, 1, "sgd_step_");
        expect_same(out[1], m, 4, 1, "momentum");
    }
}

/* x as the loop over `shape` sees it: its steps, but for 0 along dim. */
static td_tensor *stepping(const td_tensor *x, td_dims shape, int dim)
{
    td_tensor look = td_look(x);
    memcpy(look.shape, shape.at, sizeof look.shape);
    look.rank = shape.count;
    look.strides[dim] = 0;
    return td_tensor_alias(&look);
}

/* A vector that steps along dim alone. */
static td_tensor *along(const td_tensor *index, td_dims shape, int dim)
{
    td_tensor look = td_look(index);
    look.rank = shape.count;
    for (int d = 0; d < shape.count; d++) {
        look.shape[d] = shape.at[d];
        look.strides[d] = d == dim;
    }
    return td_tensor_alias(&look);
}

static void points_are_read_and_written_by_index(void **state)
{
    const int64_t which[] = { 3, 0, 3, 4, 1, 3, -5 };
    td_tensor *index = td_tensor_new(TD_DIMS(7), TD_INT64, cpu);
    memcpy(td_at(index), which, sizeof which);
    for (int dim = 0; dim < 2; dim++)
        for (int k = 0; k < 6; k++) {
            td_tensor *x = numbers(TD_DIMS(5, 5, 3), dtypes[k], TURNED);
            const td_dims size = TD_DIMS(5), step = TD_DIMS(x->strides[dim]);
            td_tensor *y = td_index_points(x, index, dim, 1), *got = like(y);
            const td_dims shape = td_shape_of(y);
            td_tensor *at = along(index, shape, dim), *from = stepping(x, shape, dim);
            td_value attr[] = { td_v_int(0), td_v_bool(true), td_v_int(0), td_v_ints(&size), td_v_ints(&step) };
            const td_value in[] = { td_v_tensor(from), td_v_tensor(at) };
            assert_true(there("index_points", x->dtype, false, 2, in, 5, attr, 1, &got));
            expect_same(got, y, 0, 0, "index_points");
            for (int how = TD_PUT_REPLACE; how <= TD_PUT_MULTIPLY; how++) {
                td_tensor *sum = td_put_points_(td_clone(x), index, y, dim, 1, how), *all = td_clone(x);
                td_tensor *to = stepping(all, shape, dim);
                const td_dims own = TD_DIMS(all->strides[dim]);
                const td_value points[] = { td_v_tensor(y), td_v_tensor(at) };
                attr[0] = td_v_int(how + 1), attr[4] = td_v_ints(&own);
                assert_true(there("put_points", x->dtype, false, 2, points, 5, attr, 1, &to));
                expect_same(to, stepping(sum, shape, dim), 0, 0, "put_points");
            }
        }
}

/* ---- products ----------------------------------------------------------- */

static void check_product(td_tensor *a, td_tensor *b, td_tensor *d,
                          double alpha, double beta, int rung)
{
    td_tensor *expected = td_matmul(a, b);
    expected = td_mul_scalar(expected, td_dtype_is_floating(a->dtype)
                                       ? td_float(alpha)
                                       : td_int((int64_t)alpha));
    if (beta != 0)
        expected = td_add(expected, td_mul_scalar(d, td_int((int64_t)beta)));
    td_tensor *got = td_zeros(td_shape_of(expected),
                              (td_tensor_options){ .dtype = a->dtype });
    if (d != NULL)
        d = td_expand(d, td_shape_of(expected));
    const td_value in[] = { td_v_tensor(a), td_v_tensor(b),
                            td_v_optional(d) };
    const td_value attr[] = { td_v_float(alpha), td_v_float(beta),
                              td_v_int(rung) };
    if (!there("gemm", a->dtype, false, 3, in, 2 + (rung >= 0), attr, 1,
               &got))
        fail_msg("gemm: %s", td_error_message());
    expect_same(got, expected, (double)a->shape[a->rank - 1],
                30 * alpha, "gemm");
}

static void each_rung_makes_the_same_product(void **state)
{
    for (int rung = 0; rung < 5; rung++)
        for (int k = 0; k < 2; k++)
            for (int turns = 0; turns < 4; turns++) {
                td_scope_begin();
                td_tensor *a = random_tensor(TD_DIMS(131, 23), dtypes[k],
                    turns & 1 ? TURNED : PLAIN, -2, 3);
                td_tensor *b = random_tensor(TD_DIMS(23, 71), dtypes[k],
                    turns & 2 ? TURNED : SLICED, -2, 3);
                td_tensor *bias = random_plain(TD_DIMS(71), dtypes[k], 0, 3);
                check_product(a, b, bias, 1.5, turns ? 2 : 0, rung);
                td_scope_end();
            }
}

static void products_of_any_type_and_batch_agree(void **state)
{
    for (int k = 0; k < 5; k++) {
        td_tensor *a = random_tensor(TD_DIMS(3, 5, 17, 7), dtypes[k], TURNED,
                                     0, 3);
        td_tensor *b = random_tensor(TD_DIMS(3, 5, 7, 19), dtypes[k], SPREAD,
                                     0, 3);
        td_tensor *d = random_plain(TD_DIMS(17, 1), dtypes[k], 0, 3);
        check_product(a, b, d, 1, 1, -1);
    }
    for (int m = 1; m < 4; m++) {
        td_tensor *a = random_plain(TD_DIMS(m, 97), TD_FLOAT32, -2, 3);
        td_tensor *b = random_plain(TD_DIMS(97, 1), TD_FLOAT32, -2, 3);
        check_product(a, b, NULL, 1, 0, -1);
        check_product(td_transpose(b, 0, 1), td_transpose(a, 0, 1), NULL, 1,
                      0, -1);
    }
    check_product(random_plain(TD_DIMS(3, 0), TD_FLOAT32, 0, 1),
                  random_plain(TD_DIMS(0, 4), TD_FLOAT32, 0, 1),
                  random_plain(TD_DIMS(3, 4), TD_FLOAT32, 0, 1), 1, 1, -1);
}

static void without_an_addend_beta_multiplies_what_was_there(void **state)
{
    td_tensor *a = random_plain(TD_DIMS(5, 7), TD_FLOAT32, -2, 3);
    td_tensor *b = random_plain(TD_DIMS(7, 3), TD_FLOAT32, -2, 3);
    td_tensor *c = random_plain(TD_DIMS(5, 3), TD_FLOAT32, -2, 3);
    td_tensor *expected = td_add(td_matmul(a, b), c);
    const td_value in[] = { td_v_tensor(a), td_v_tensor(b) };
    const td_value attr[] = { td_v_float(1), td_v_float(1) };
    assert_true(there("gemm", TD_FLOAT32, false, 2, in, 2, attr, 1, &c));
    expect_same(c, expected, 7, 30, "gemm");
}

/* ---- memory, streams, faults -------------------------------------------- */

static void a_freed_block_is_used_again(void **state)
{
    td_memory_info before, after;
    void *a, *b, *c;
    table.memory(0, &before);
    assert_true(table.allocate(0, 100000, &a));
    table.release(0, a, 100000);
    assert_true(table.allocate(0, 99000, &b));
    assert_ptr_equal(a, b);
    assert_true(use_stream(0, 1));
    assert_true(table.allocate(0, 100000, &c));
    assert_ptr_not_equal(b, c);
    table.release(0, b, 99000);              /* of stream 0, while 1 is on */
    assert_true(table.allocate(0, 100000, &a));
    assert_ptr_equal(a, b);                  /* after an event */
    table.release(0, a, 100000);
    table.release(0, c, 100000);
    assert_true(use_stream(0, 0));
    table.memory(0, &after);
    assert_int_equal(after.bytes, before.bytes);
    assert_true(after.cached_bytes - before.cached_bytes >= 200000);
    assert_int_equal(after.allocations - before.allocations, 4);
    assert_int_equal(after.system_allocations - before.system_allocations,
                     2);
    table.trim(0);
    table.memory(0, &after);
    assert_int_equal(after.cached_bytes, 0);
    refused(use_stream(0, 99), TD_ERROR_VALUE, "no stream 99");
}

static void too_much_memory_is_an_error_that_says_how_much(void **state)
{
    void *data = NULL;
    refused(table.allocate(0, (size_t)1 << 62, &data), TD_ERROR_MEMORY,
            "4611686018427387904 bytes");
}

static void a_wrong_index_is_the_error_of_the_next_wait(void **state)
{
    td_tensor *x = random_plain(TD_DIMS(4, 3), TD_FLOAT32, 0, 1);
    td_tensor *t = td_full(TD_DIMS(4), td_int(4),
                           (td_tensor_options){ .dtype = TD_INT64 });
    td_tensor *y = td_zeros(TD_DIMS(4, 3), plain);
    const td_dims shape = TD_DIMS(4, 3), size = TD_DIMS(3), step = TD_DIMS(3);
    const td_value points[] = { td_v_tensor(stepping(x, shape, 0)), td_v_tensor(along(t, shape, 0)) };
    const td_value plan[] = { td_v_int(0), td_v_bool(true), td_v_int(0), td_v_ints(&size), td_v_ints(&step) };
    refused(there("index_points", TD_FLOAT32, false, 2, points, 5, plan, 1, &y),
            TD_ERROR_INDEX, "out of range");
    assert_true(table.synchronise(0));
}

/* ---- streams that run when they must ------------------------------------ */

enum { LINE = 1000 };

static td_array line_at(void *data, td_dtype dtype)
{
    return (td_array){ .kind = TD_TENSOR, .dtype = dtype, .rank = 1,
                       .data = data, .shape = { LINE }, .strides = { 1 } };
}

/* What a kernel makes of `from`, which stays where it is. */
static void *negative_of(void *from)
{
    void *to = NULL;
    assert_true(table.allocate(0, LINE * sizeof(float), &to));
    const td_array in = line_at(from, TD_FLOAT32), out = line_at(to, TD_FLOAT32);
    const td_task task = { "neg", TD_FLOAT32, 0, 1, 0, 1, &in, &out, NULL };
    assert_true(table.compute(&task));
    return to;
}

static void *filled(float value)
{
    void *to = NULL;
    float values[LINE];
    for (int i = 0; i < LINE; i++)
        values[i] = value;
    assert_true(table.allocate(0, sizeof values, &to));
    assert_true(table.copy(0, to, values, sizeof values, 0));
    return to;
}

static void expect_all(void *data, float value)
{
    float values[LINE];
    assert_true(table.copy(0, values, data, sizeof values, 1));
    for (int i = 0; i < LINE; i++)
        expect_number(values[i], value, 0);
}

static void drop(void *data)
{
    table.release(0, data, LINE * sizeof(float));
}

/* Runs a test in twenty orders of the streams, and in the latest one. */
static void in_any_order(void (*test)(void))
{
    char seed[8] = "";
    for (int i = 0; i <= 20; i++) {
        snprintf(seed, sizeof seed, "%d", i);
        i ? setenv("TREADLE_CUDA_SEED", seed, 1)
          : unsetenv("TREADLE_CUDA_SEED");
        test();
        assert_true(use_stream(0, 0));
    }
    unsetenv("TREADLE_CUDA_SEED");
}

static void use_on_three_streams(void)
{
    void *a = filled(1);
    assert_true(table.synchronise(0));
    use_stream(0, 1);
    void *b = negative_of(a);                   /* 1 reads what is of 0 */
    use_stream(0, 2);
    drop(a);                                    /* 2 gives it back */
    use_stream(0, 0);
    void *c = filled(7);                        /* 0 fills it again */
    assert_ptr_equal(a, c);
    expect_all(c, 7);
    use_stream(0, 1);
    expect_all(b, -1);
    drop(b);
    drop(c);
}

static void a_freed_block_waits_for_every_stream_that_used_it(void **state)
{
    in_any_order(use_on_three_streams);
}

static void pass_around(void)
{
    void *a = filled(3), *b, *c;
    use_stream(0, 1);
    b = negative_of(a);                         /* before 0 has made a */
    use_stream(0, 2);
    c = negative_of(b);
    use_stream(0, 0);
    const td_array in[] = { line_at(c, TD_FLOAT32), line_at(c, TD_FLOAT32) };
    const td_array out = line_at(a, TD_FLOAT32);
    const td_task task = { "add", TD_FLOAT32, 0, 2, 0, 1, in, &out, NULL };
    assert_true(table.compute(&task));          /* while 1 still reads it */
    expect_all(a, 6);
    use_stream(0, 1);
    expect_all(b, -3);
    use_stream(0, 2);
    expect_all(c, 3);
    drop(a);
    drop(b);
    drop(c);
}

static void what_one_stream_makes_another_may_use(void **state)
{
    in_any_order(pass_around);
}

static void fail_on_another_stream(void)
{
    void *index = NULL, *to = NULL, *x = filled(1);
    assert_true(table.allocate(0, LINE * sizeof(int64_t), &index));
    assert_true(table.allocate(0, LINE * sizeof(float), &to));
    int64_t places[LINE] = { [17] = LINE };
    assert_true(table.copy(0, index, places, sizeof places, 0));
    assert_true(table.synchronise(0));
    td_array in[] = { line_at(x, TD_FLOAT32), line_at(index, TD_INT64) };
    in[0].strides[0] = 0;
    const td_array out = line_at(to, TD_FLOAT32);
    const td_dims size = TD_DIMS(LINE), step = TD_DIMS(1);
    const td_value plan[] = { td_v_int(0), td_v_bool(true), td_v_int(0), td_v_ints(&size), td_v_ints(&step) };
    const td_task task = { "index_points", TD_FLOAT32, 0, 2, 5, 1, in, &out, plan };
    use_stream(0, 1);
    assert_true(table.compute(&task));
    use_stream(0, 0);
    void *other = filled(5);
    assert_true(table.synchronise(0));          /* not of this one */
    expect_all(other, 5);
    use_stream(0, 1);
    refused(table.synchronise(0), TD_ERROR_INDEX, "out of range");
    assert_true(table.synchronise(0));          /* told once */
    table.release(0, index, LINE * sizeof(int64_t));
    drop(to);
    drop(x);
    drop(other);
}

static void a_fault_is_told_on_the_stream_it_is_of(void **state)
{
    in_any_order(fail_on_another_stream);
}

static void a_copy_of_memory_that_nobody_has_fails(void **state)
{
    float value = 1;
    refused(table.copy(0, &value, &value, sizeof value, 0), TD_ERROR_RUNTIME,
            "copy: cuda says: invalid argument");
    refused(table.copy(0, &value, NULL, sizeof value, 1), TD_ERROR_RUNTIME,
            "copy: cuda says: invalid argument");
    assert_true(table.synchronise(0));
}

static void memory_is_pinned_for_a_device_or_not_at_all(void **state)
{
    td_tensor *x = td_t(random_plain(TD_DIMS(3, 5), TD_FLOAT64, 0, 1));
    refused(td_pin_memory(NULL), TD_ERROR_VALUE, "pin_memory: input is NULL");
    assert_true(!td_is_pinned(x) && !td_is_pinned(NULL));
    if (td_device_count(TD_DEVICE_CUDA) == 0) {
        refused(td_pin_memory(x), TD_ERROR_UNSUPPORTED, "pin_memory: device cuda is not available");
        return;
    }
    td_tensor *y = td_pin_memory(x);
    assert_true(td_is_pinned(y) && same_bytes(td_contiguous(x), y) && td_pin_memory(y) == y);
    refused(td_pin_memory(td_to_device(x, (td_device){ TD_DEVICE_CUDA, 0 })), TD_ERROR_RUNTIME, "host's memory");
}

static void what_no_kernel_does_is_refused_by_name(void **state)
{
    td_tensor *x = random_plain(TD_DIMS(4), TD_FLOAT32, 0, 1);
    const td_value in = td_v_tensor(x);
    refused(there("weave", TD_FLOAT32, true, 1, &in, 0, NULL, 1, &x),
            TD_ERROR_UNSUPPORTED, "weave: not implemented on device cuda");
    td_tensor *i = random_plain(TD_DIMS(4), TD_INT64, 0, 9);
    refused(there("exp", TD_INT64, true, 1, &in, 0, NULL, 1, &i),
            TD_ERROR_UNSUPPORTED, "exp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_row_computes_what_the_host_does),
        CASE(rows_mix_types_and_shapes_of_any_size),
        CASE(an_update_in_place_stores_in_the_tensors_type),
        CASE(where_clamp_and_addcmul_are_those_of_the_host),
        CASE(gradients_of_rows_are_those_of_the_host),
        CASE(every_type_converts_to_every_other),
        CASE(filling_writes_one_value_through_any_view),
        CASE(folds_are_those_of_the_host),
        CASE(long_folds_are_cut_into_parts),
        CASE(searches_find_the_first_of_equals_and_nan_before_all),
        CASE(softmax_runs_along_any_dimension),
        CASE(a_step_of_sgd_moves_parameter_and_momentum),
        CASE(points_are_read_and_written_by_index),
        CASE(each_rung_makes_the_same_product),
        CASE(products_of_any_type_and_batch_agree),
        CASE(without_an_addend_beta_multiplies_what_was_there),
        CASE(a_freed_block_is_used_again),
        CASE(too_much_memory_is_an_error_that_says_how_much),
        CASE(a_wrong_index_is_the_error_of_the_next_wait),
        CASE(a_freed_block_waits_for_every_stream_that_used_it),
        CASE(what_one_stream_makes_another_may_use),
        CASE(a_fault_is_told_on_the_stream_it_is_of),
        CASE(a_copy_of_memory_that_nobody_has_fails),
        CASE(memory_is_pinned_for_a_device_or_not_at_all),
        CASE(what_no_kernel_does_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, open_plugin, NULL);
}
