/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "indexing": edit that, not this file. */
/* Reading and writing at places that are data. */
#include <string.h>
#include <treadle/elementwise.h>
#include <treadle/indexing.h>
#include <treadle/parallel.h>
#include <treadle/reductions.h>
#include "rule.h"
#include "device.h"

/* indexing: functions that check places */
static bool out_of_bounds(const char *op, int64_t at, int dim,
                          int64_t size)
{
    return td_fail(TD_ERROR_INDEX, op, "index %lld is out of bounds "
                  "for dimension %d with size %lld", (long long)at, dim,
                   (long long)size);
}

static bool is_index(const char *op, const td_tensor *index)
{
    return td_dtype_is_integer(index->dtype)
        || td_fail(TD_ERROR_INDEX, op, "an index must hold integers, "
                   "not %s", td_dtype_name(index->dtype));
}

static bool dim_of(const td_call *call, int *dim)
{
    return td_wrap_dim(call->op->name, td_v_get_int(&call->attr[0], 0),
                       call->in[0].as.tensor->rank, dim);
}

static td_tensor *home(td_tensor *index)
{
    td_tensor *i = td_contiguous(td_to(index, TD_INT64));
    if (i == NULL || td_on_host(i) || td_self()->symbolic)
        return i;
    td_tensor *here = td_tensor_new(td_shape_of(i), TD_INT64,
                                    (td_device){ TD_DEVICE_CPU, 0 });
    return here && td_copy_elements(here, i) ? here : NULL;
}

/* indexing: function ravel_index_kernel */
static bool ravel_one(const char *op, td_tensor *place,
                      td_tensor *index, int64_t size, int dim,
                      bool wrap)
{
    const td_tensor *i = home(td_expand(index, td_shape_of(place)));
    const int64_t n = td_numel(place);
    if (td_failed())
        return false;
    int64_t *to = td_at(place);
    const int64_t *from = td_at(i);
    for (int64_t j = 0; j < n; j++) {
        const int64_t at = from[j] + (wrap && from[j] < 0 ? size : 0);
        if (at < 0 || at >= size)
            return out_of_bounds(op, from[j], dim, size);
        to[j] = to[j] * size + at;
    }
    return true;
}

static bool broadcast_indices(const td_call *call, td_dims *shape)
{
    td_tensor *const *at = call->in[1].as.tensors.at;
    char text[TD_SHAPE_TEXT];
    *shape = TD_RANK_0;
    for (int k = 0; k < call->in[1].as.tensors.count; k++) {
        td_tensor so_far = { .rank = shape->count };
        memcpy(so_far.shape, shape->at, sizeof so_far.shape);
        if (!is_index(call->op->name, at[k]))
            return false;
        if (td_broadcast_shapes(call->op->name, &so_far, at[k], shape))
            continue;
        td_error_clear();
        return td_fail(TD_ERROR_INDEX, call->op->name, "index %d of "
            "shape %s does not broadcast with those before it", k,
            td_shape_text(at[k], text));
    }
    return true;
}


bool ravel_index_kernel(td_call *call)
{
    const td_tensor *x = call->in[0].as.tensor;
    const int n = call->in[1].as.tensors.count;
    const int64_t from = td_v_get_int(&call->attr[0], 0);
    const int dim = (int)from;
    const bool wrap = td_v_get_bool(&call->attr[1]);
    td_dims shape;
    if (from < 0 || from > x->rank - n)
        return td_fail(TD_ERROR_INDEX, "ravel_index", "too many "
           "indices: %d from dimension %d of rank %d", n, dim, x->rank);
    if (!broadcast_indices(call, &shape))
        return false;
    td_scope_begin();
    td_tensor *place = td_zeros(shape, (td_tensor_options){
        .dtype = TD_INT64 });
    for (int k = 0; k < n && !td_failed() && !td_self()->symbolic; k++)
        ravel_one("index", place, call->in[1].as.tensors.at[k],
                  x->shape[dim + k], dim + k, wrap);
    if (place && n && !td_self()->symbolic)
        place = td_sent(place,
                        td_device_of(call->in[1].as.tensors.at[0]));
    return td_return(call, td_scope_end_with(place));
}

/* indexing: struct points */
enum { READ, SET, ADD, MULTIPLY };

typedef struct {
    int how;
    td_dtype dtype;
    int64_t bytes;                  /* of an element */
    char *x, *y;                    /* the tensor; the points, dense */
    int64_t *at;                    /* [n] offsets in x, in elements */
    int64_t n, step;                /* points; elements of y between */
    int rank;
    struct { int64_t size, x, y; } by[TD_MAX_RANK + 1];
    int64_t columns;
} points;

/* indexing: functions that plan points */
static void add_columns(points *p, int64_t size, int64_t x, int64_t y)
{
    const int last = p->rank - 1;
    p->columns *= size;
    if (size == 1)
        return;
    if (last >= 0 && p->by[last].x == size * x
        && p->by[last].y == size * y) {
        p->by[last].size *= size;
        p->by[last].x = x;
        p->by[last].y = y;
    } else {
        p->by[p->rank].size = size;
        p->by[p->rank].x = x;
        p->by[p->rank++].y = y;
    }
}

static void plan_columns(points *p, const td_tensor *x, int dim,
                         int covers)
{
    int64_t inner = 1, y = 1;
    for (int d = dim + covers; d < x->rank; d++)
        inner *= x->shape[d];
    for (int d = 0; d < dim; d++)
        y *= x->shape[d];
    p->step = inner;
    p->columns = 1;
    y *= p->n * inner;
    for (int d = 0; d < x->rank; d++) {
        if (d >= dim && d < dim + covers)
            continue;
        y = d == dim + covers ? inner : y;
        y = x->shape[d] ? y / x->shape[d] : 0;
        add_columns(p, x->shape[d], x->strides[d], y);
    }
    if (p->rank == 0)
        p->by[p->rank++].size = 1;
}

static bool plan_points(points *p, const char *op, const td_tensor *x,
                        const int64_t *place, int dim, int covers)
{
    int64_t size = 1;
    for (int d = dim; d < dim + covers; d++)
        size *= x->shape[d];
    for (int64_t j = 0; j < p->n; j++) {
        int64_t rest = place[j] + (place[j] < 0 ? size : 0);
        if (rest < 0 || rest >= size)
            return out_of_bounds(op, place[j], dim, size);
        p->at[j] = 0;
        for (int d = dim + covers - 1; d > dim; d--) {
            p->at[j] += rest % x->shape[d] * x->strides[d];
            rest /= x->shape[d];
        }
        p->at[j] += covers ? rest * x->strides[dim] : 0;
    }
    return true;
}

/* indexing: functions that move points */
#define MOVE(T, statement)                                            \
    for (int64_t j = begin; j < end; j++) {                           \
        T *a = (T *)p->x + x + p->at[j];                              \
        T *b = (T *)p->y + y + j * p->step;                           \
        for (int64_t i = 0; i < m; i++, a += w->x, b += w->y)         \
            statement;                                                \
    }                                                                 \
    break;
#define MOVE_BYTES(statement)                                         \
    switch (p->bytes) {                                               \
    case 1: MOVE(uint8_t, statement)                                  \
    case 2: MOVE(uint16_t, statement)                                 \
    case 4: MOVE(uint32_t, statement)                                 \
    case 8: MOVE(uint64_t, statement)                                 \
    }
#define MOVE_TYPE(statement, logic)                                   \
    switch (p->dtype) {                                               \
    case TD_FLOAT32: MOVE(float, statement)                           \
    case TD_FLOAT64: MOVE(double, statement)                          \
    case TD_INT64: MOVE(int64_t, statement)                           \
    case TD_INT32: MOVE(int32_t, statement)                           \
    case TD_UINT8: MOVE(uint8_t, statement)                           \
    default: MOVE(bool, logic)                                        \
    }

static void move_run(const points *p, int64_t x, int64_t y, int64_t m,
                     int64_t begin, int64_t end)
{
    const int last = p->rank - 1;
    const struct { int64_t x, y; } step = { p->by[last].x,
                                            p->by[last].y }, *w = &step;
    switch (p->how) {
    case READ: MOVE_BYTES(*b = *a) break;
    case SET: MOVE_BYTES(*a = *b) break;
    case ADD: MOVE_TYPE(*a += *b, *a |= *b) break;
    default: MOVE_TYPE(*a *= *b, *a &= *b) break;
    }
}

static void move_columns(const points *p, int64_t first, int64_t last,
                         int64_t begin, int64_t end)
{
    while (first < last) {
        int64_t rest = first, x = 0, y = 0, m = 0;
        for (int d = p->rank - 1; d >= 0; d--) {
            const int64_t i = rest % p->by[d].size;
            rest /= p->by[d].size;
            x += i * p->by[d].x;
            y += i * p->by[d].y;
            m = d == p->rank - 1 ? p->by[d].size - i : m;
        }
        m = m < last - first ? m : last - first;
        move_run(p, x, y, m, begin, end);
        first += m;
    }
}

static bool read_some(void *context, int64_t begin, int64_t end,
                      int worker)
{
    const points *p = context;
    (void)worker;
    move_columns(p, 0, p->columns, begin, end);
    return true;
}

static bool write_some(void *context, int64_t begin, int64_t end,
                       int worker)
{
    const points *p = context;
    (void)worker;
    move_columns(p, begin, end, 0, p->n);
    return true;
}

/* indexing: function move_points */
/* Moves between x and y, dense in [outer, points, inner]. */
static bool move_points(const char *op, td_tensor *x, td_tensor *index,
                        td_tensor *y, int dim, int covers, int how)
{
    points p = { .how = how, .dtype = x->dtype, .n = td_numel(index),
                 .bytes = (int64_t)td_dtype_size(x->dtype),
                 .x = td_at(x), .y = td_at(y) };
    const int64_t most = 32768;
    if (how > SET && (x->dtype == TD_FLOAT16 || x->dtype == TD_BFLOAT16
                      || x->dtype == TD_INT8 || x->dtype == TD_INT16))
        return td_fail(TD_ERROR_UNSUPPORTED, op, "%s is for storage "
                       "only", td_dtype_name(x->dtype));
    p.at = td_alloc_array((size_t)p.n, sizeof *p.at);
    bool ok = p.at != NULL
        && plan_points(&p, op, x, td_at(index), dim, covers);
    if (ok)
        plan_columns(&p, x, dim, covers);
    if (ok && how == READ)
        ok = td_parallel_for(p.n, most / (p.columns + 1) + 1, read_some,
                             &p);
    else if (ok && p.n > 0)
        ok = td_parallel_for(p.columns, most / p.n + 1, write_some, &p);
    td_free(p.at, (size_t)p.n * sizeof *p.at);
    return ok;
}

/* indexing: functions that know the shape of points */
typedef struct {
    td_tensor *x, *index;
    int dim, covers;
    td_dims shape;              /* outer, that of index, inner */
} place_list;

static bool read_places(const td_call *call, place_list *l)
{
    td_tensor *x = l->x = call->in[0].as.tensor;
    td_tensor *index = l->index = call->in[1].as.tensor;
    const int64_t covers = td_v_get_int(&call->attr[1], 1);
    const char *op = call->op->name;
    if (!is_index(op, index) || !dim_of(call, &l->dim))
        return false;
    if (covers < 1 || covers > x->rank - l->dim)
        return td_fail(TD_ERROR_INDEX, op, "%lld dimensions from %d "
            "on do not fit rank %d", (long long)covers, l->dim,
            x->rank);
    if (x->rank - covers + index->rank > TD_MAX_RANK)
        return td_fail(TD_ERROR_RUNTIME, op, "the result would have "
            "%d dimensions, at most %d are possible",
            x->rank - (int)covers + index->rank, TD_MAX_RANK);
    l->covers = (int)covers;
    l->shape = TD_RANK_0;
    for (int d = 0; d < l->dim; d++)
        l->shape.at[l->shape.count++] = x->shape[d];
    for (int d = 0; d < index->rank; d++)
        l->shape.at[l->shape.count++] = index->shape[d];
    for (int d = l->dim + l->covers; d < x->rank; d++)
        l->shape.at[l->shape.count++] = x->shape[d];
    return true;
}

/* indexing: kernel index_points */
static td_dims covered_as_one(const place_list *l)
{
    td_dims flat = { 0, { 0 } };
    for (int d = 0; d < l->x->rank; d++)
        if (d > l->dim && d < l->dim + l->covers)
            flat.at[l->dim] *= l->x->shape[d];
        else
            flat.at[flat.count++] = l->x->shape[d];
    return flat;
}

static td_tensor *points_elsewhere(const place_list *l)
{
    td_tensor *x = td_reshape(l->x, covered_as_one(l));
    td_tensor *i = td_reshape(home(l->index), TD_DIMS(-1));
    const int64_t size = x ? x->shape[l->dim] : 0;
    td_scope_begin();
    i = td_scope_end_with(td_clone(i));
    int64_t *at = i ? td_at(i) : NULL;
    for (int64_t j = 0; i && j < td_numel(i); j++)
        at[j] += at[j] < 0 ? size : 0;
    i = i ? td_sent(i, td_device_of(l->x)) : NULL;
    return td_reshape(td_index_select(x, l->dim, i), l->shape);
}

bool index_points_kernel(td_call *call)
{
    place_list l;
    if (!read_places(call, &l))
        return false;
    const bool elsewhere = !td_on_host(l.x) && !td_self()->symbolic;
    td_scope_begin();
    td_tensor *y = elsewhere ? points_elsewhere(&l)
        : td_tensor_new(l.shape, l.x->dtype, td_device_of(l.x));
    td_tensor *index = elsewhere ? NULL : home(l.index);
    if (!td_failed() && td_on_host(y))
        move_points("index", l.x, index, y, l.dim, l.covers, READ);
    return td_return(call, td_scope_end_with(y));
}

/* indexing: function put_elsewhere */
static bool put_elsewhere(const place_list *l, td_tensor *source,
                          int how)
{
    td_tensor *x = td_view(l->x, covered_as_one(l));
    td_tensor *i = home(l->index);
    td_dims flat = covered_as_one(l);
    flat.at[l->dim] = i ? td_numel(i) : 0;
    source = td_reshape(source, flat);
    for (int64_t j = 0; !td_failed() && j < td_numel(i); j++) {
        const int64_t at = ((int64_t *)td_at(i))[j];
        td_tensor *to = td_select(x, l->dim, at);
        td_tensor *from = td_select(source, l->dim, j);
        if (how == ADD)
            td_add_(to, from);
        else if (how == MULTIPLY)
            td_mul_(to, from);
        else
            td_copy_(to, from);
    }
    return !td_failed();
}

/* indexing: kernel put_points */
static bool put(const td_call *call, td_tensor *x)
{
    place_list l;
    if (!read_places(call, &l))
        return false;
    td_tensor *source = call->in[2].as.tensor;
    if (source->dtype != x->dtype)
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "the source "
            "is %s, the destination %s", td_dtype_name(source->dtype),
            td_dtype_name(x->dtype));
    const int64_t asked = td_v_get_int(&call->attr[2], 0);
    const int how = SET + (int)asked;
    if (asked < 0 || asked > MULTIPLY - SET)
        return td_fail(TD_ERROR_VALUE, call->op->name, "how must be 0, "
                       "1 or 2, got %lld", (long long)asked);
    l.x = x;
    source = td_expand(source, l.shape);
    if (source && source->storage == x->storage)
        source = td_clone(source);
    if (td_failed() || td_self()->symbolic)
        return !td_failed();
    if (!td_on_host(x))
        return put_elsewhere(&l, source, how);
    source = td_contiguous(source);
    td_tensor *index = home(l.index);
    return !td_failed() && move_points("index_put", x, index, source,
                                       l.dim, l.covers, how);
}

bool put_points_kernel(td_call *call)
{
    td_scope_begin();
    td_tensor *x = td_clone(call->in[0].as.tensor);
    if (x != NULL)
        put(call, x);
    return td_return(call, td_scope_end_with(x));
}

bool put_points__kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    if (!td_writes_alone(call->op->name, x))
        return false;
    td_scope_begin();
    put(call, x);
    td_scope_end();
    td_bump_version(x);
    return !td_failed() && td_return(call, td_share(x));
}

/* indexing: functions in C for indexing */
static td_tensor *run_points(int op, int n, const td_value *in, int dim,
                             int covers, int how)
{
    const td_value attr[] = { td_v_int(dim), td_v_int(covers),
                              td_v_int(how) };
    return td_run1(&td_ops[op], n, in, n, attr);
}

td_tensor *td_ravel_index(td_tensor *x, int n, td_tensor *const *index,
                          int dim)
{
    return td_run1(&td_ops[TD_OP_ravel_index], 2,
        (td_value[]){ td_v_tensor(x), td_v_tensors(n, index) }, 2,
        (td_value[]){ td_v_int(dim), td_v_bool(true) });
}

td_tensor *td_index_points(td_tensor *x, td_tensor *index, int dim,
                           int covers)
{
    return run_points(TD_OP_index_points, 2, (td_value[]){
        td_v_tensor(x), td_v_tensor(index) }, dim, covers, 0);
}

td_tensor *td_put_points_(td_tensor *x, td_tensor *index,
                          td_tensor *source, int dim, int covers,
                          int how)
{
    return run_points(TD_OP_put_points_, 3, (td_value[]){
        td_v_tensor(x), td_v_tensor(index), td_v_tensor(source) },
        dim, covers, how);
}

td_tensor *td_gather(td_tensor *x, int dim, td_tensor *index)
{
    const td_value attr = td_v_int(dim);
    return td_run1(&td_ops[TD_OP_gather], 2, (td_value[]){
        td_v_tensor(x), td_v_tensor(index) }, 1, &attr);
}

td_tensor *td_nonzero(td_tensor *x)
{
    return td_run1(&td_ops[TD_OP_nonzero], 1,
                   (td_value[]){ td_v_tensor(x) }, 0, NULL);
}

td_tensor *td_embedding(td_tensor *input, td_tensor *weight)
{
    const td_value none = td_v_none();
    return td_run1(&td_ops[TD_OP_embedding], 2, (td_value[]){
        td_v_tensor(input), td_v_tensor(weight) }, 1, &none);
}

/* indexing: rules of points */
static td_tensor *put_into(td_tensor *x, td_tensor *index,
                           td_tensor *source, const td_value *at,
                           int how)
{
    const td_value in[] = { td_v_tensor(x), td_v_tensor(index),
                            td_v_tensor(source) };
    const td_value attr[] = { at[0], at[1], td_v_int(how - SET) };
    return td_run1(&td_ops[TD_OP_put_points], 3, in, 3, attr);
}

static td_tensor *zeros_as(td_dims shape, const td_tensor *g)
{
    return td_zeros(shape, (td_tensor_options){
        .dtype = g->dtype, .device = td_device_of(g) });
}

bool index_points_rule(td_backward_pass *b)
{
    td_tensor *g = b->grad[0];
    b->grad_in[0] = put_into(zeros_as(td_input_dims(b, 0), g),
        td_saved_input(b, 1), g, td_attribute(b, 0), ADD);
    return !td_failed();
}

bool put_points_rule(td_backward_pass *b)
{
    td_tensor *g = b->grad[0], *index = td_saved_input(b, 1);
    const td_value *at = td_attribute(b, 0);
    const int how = SET + (int)td_v_get_int(&at[2], 0);
    if (how == MULTIPLY)
        return td_fail(TD_ERROR_RUNTIME, "put_points", "a product at "
                       "places has no derivative here");
    if (td_needs(b, 0))
        b->grad_in[0] = how == ADD ? g
            : put_into(g, index, zeros_as(TD_RANK_0, g), at, SET);
    if (td_needs(b, 2))
        b->grad_in[2] = td_index_points(g, index,
            (int)td_v_get_int(&at[0], 0), (int)td_v_get_int(&at[1], 1));
    return !td_failed();
}

/* indexing: function places_along */
/* Places of x that differ from where index stands only along dim. */
static td_tensor *places_along(const char *op, td_tensor *x, int dim,
                               td_tensor *index, bool whole)
{
    td_tensor *at[TD_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        if (index->rank != x->rank
            || (whole && d != dim && index->shape[d] > x->shape[d])) {
            char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
            td_fail(TD_ERROR_RUNTIME, op, "index of shape %s does not "
                "fit a tensor of shape %s along dimension %d",
               td_shape_text(index, have), td_shape_text(x, want), dim);
            return NULL;
        }
    for (int d = 0; d < x->rank; d++) {
        td_dims line = { x->rank, { 1, 1, 1, 1, 1, 1, 1, 1 } };
        line.at[d] = index->shape[d];
        at[d] = d == dim ? index
              : td_view(td_sent(td_arange(td_int(0),
                    td_int(index->shape[d]), td_int(1),
                    (td_tensor_options){ .dtype = TD_INT64 }),
                    td_device_of(index)), line);
    }
    return td_failed() ? NULL : td_run1(&td_ops[TD_OP_ravel_index], 2,
        (td_value[]){ td_v_tensor(x), td_v_tensors(x->rank, at) }, 2,
        (td_value[]){ td_v_int(0), td_v_bool(false) });
}

/* indexing: composites along a dimension */
static td_tensor *as_vector(td_tensor *x)
{
    return x && x->rank == 0 ? td_unsqueeze(x, 0) : x;
}

bool gather_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    td_tensor *index = call->in[1].as.tensor;
    int dim;
    if (!dim_of(call, &dim) || !is_index("gather", index))
        return false;
    td_tensor *flat = as_vector(x), *at = as_vector(index), *y = NULL;
    if (!td_failed() && td_numel(index) == 0)
        y = td_reshape(td_slice(td_flatten(x, 0, -1), 0,
            (td_opt_i64){ 0 }, (td_opt_i64){ true, 0 }, 1),
            td_shape_of(index));
    else if (!td_failed())
        at = places_along("gather", flat, dim, at, true);
    if (at != NULL && y == NULL)
        y = td_reshape(td_index_points(flat, at, 0, flat->rank),
                       td_shape_of(index));
    return td_return(call, y);
}

/* Writes into a copy of input, or into input if the operator's name
   ends in an underscore.  `x` is input, or a view of it to write to. */
static bool put_for(td_call *call, td_tensor *x, td_tensor *place,
                    td_tensor *source, int dim, int covers, int how)
{
    td_tensor *input = call->in[0].as.tensor;
    const char *name = call->op->name;
    const bool here = name[strlen(name) - 1] == '_';
    const int op = here ? TD_OP_put_points_ : TD_OP_put_points;
    td_tensor *y = td_failed() ? NULL : run_points(op, 3, (td_value[]){
        td_v_tensor(x), td_v_tensor(place), td_v_tensor(source) },
        dim, covers, how - SET);
    if (here && y != NULL)
        y = td_share(input);
    else if (y != NULL)
        y = td_reshape(y, td_shape_of(input));
    return td_return(call, y);
}

static td_tensor *corner(td_tensor *source, const td_tensor *index)
{
    if (source && source->rank != index->rank)
        td_fail(TD_ERROR_RUNTIME, "scatter", "index has rank %d and "
                "source %d", index->rank, source->rank);
    for (int d = 0; source && !td_failed() && d < index->rank; d++)
        if (source->shape[d] < index->shape[d])
            td_fail(TD_ERROR_RUNTIME, "scatter", "index has %lld "
                "entries in dimension %d, the source has %lld",
                (long long)index->shape[d], d,
                (long long)source->shape[d]);
        else if (source->shape[d] > index->shape[d])
            source = td_slice(source, d, (td_opt_i64){ true, 0 },
                (td_opt_i64){ true, index->shape[d] }, 1);
    return source;
}

static bool scatter(td_call *call, int how)
{
    td_tensor *x = call->in[0].as.tensor;
    td_tensor *index = call->in[1].as.tensor;
    const td_value *v = &call->in[2];
    int dim;
    if (!dim_of(call, &dim) || !is_index("scatter", index))
        return false;
    td_tensor *at = as_vector(index), *flat = as_vector(x), *source;
    if (td_numel(index) == 0 && v->kind == TD_TENSOR)
        source = td_slice(td_flatten(v->as.tensor, 0, -1), 0,
                          (td_opt_i64)td_some(0),
                          (td_opt_i64)td_some(0), 1);
    else if (v->kind == TD_TENSOR)
        source = corner(as_vector(v->as.tensor), at);
    else
        source = td_full(TD_RANK_0, v->as.scalar, (td_tensor_options){
            .dtype = x->dtype, .device = td_device_of(x) });
    td_tensor *place = td_numel(index) == 0 ? at
        : places_along("scatter", flat, dim, at, true);
    return td_numel(index) == 0
        ? put_for(call, flat, td_reshape(at, TD_DIMS(0)),
                  source, 0, flat->rank, SET)
        : put_for(call, flat, place, source, 0, flat->rank, how);
}

bool scatter_kernel(td_call *call)
{
    const td_value *reduce = &call->attr[1];
    const char *name = reduce->kind == TD_STRING ? reduce->as.string
                                                 : "";
    const int how = strcmp(name, "add") == 0 ? ADD
                  : strcmp(name, "multiply") == 0 ? MULTIPLY : SET;
    if (how == SET && name[0] != '\0')
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "reduce must "
                       "be 'add' or 'multiply', got '%s'", name);
    return scatter(call, how);
}

bool scatter_add_kernel(td_call *call)
{
    return scatter(call, ADD);
}

static td_dims but_for(td_dims shape, int dim, const td_tensor *x)
{
    shape.at[dim] = x->shape[dim];
    return shape;
}

bool take_along_dim_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    td_tensor *index = call->in[1].as.tensor;
    int dim = 0;
    td_dims both = TD_RANK_0;
    if (!is_index("take_along_dim", index))
        return false;
    if (call->attr[0].kind == TD_NONE) {
        x = td_reshape(x, TD_DIMS(-1));
        index = td_reshape(index, TD_DIMS(-1));
    } else if (dim_of(call, &dim)) {
        if (x->rank != index->rank)
            td_fail(TD_ERROR_RUNTIME, "take_along_dim", "index has "
                    "rank %d, the tensor %d", index->rank, x->rank);
        td_tensor one = td_look(x), two = td_look(index);
        one.shape[dim] = two.shape[dim] = 1;
        if (!td_failed() && x->rank > 0
          && td_broadcast_shapes("take_along_dim", &one, &two, &both)) {
            x = td_expand(x, but_for(both, dim, x));
            index = td_expand(index, but_for(both, dim, index));
        }
    }
    return td_return(call, td_failed() ? NULL
        : td_gather(x, dim, index));
}

/* indexing: composites that write slices */
static bool write_slices(td_call *call, td_tensor *index,
                         td_tensor *source, int how)
{
    td_tensor *x = call->in[0].as.tensor;
    const char *op = call->op->name;
    int dim;
    if (!dim_of(call, &dim) || !is_index(op, index))
        return false;
    td_tensor *flat = as_vector(x), *at = as_vector(index);
    td_dims expected = td_shape_of(flat);
    if (at && at->rank > 1)
        td_fail(TD_ERROR_INDEX, op, "argument 'index' must be a "
                "vector, got rank %d", index->rank);
    if (!td_failed())
        expected.at[dim] = at->shape[0];
    td_tensor *s = as_vector(source);
    const td_dims have = td_shape_of(s);
    if (s != NULL && source->rank > 0
        && !td_dims_equal(&have, &expected)) {
        char own[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
        td_fail(TD_ERROR_RUNTIME, op, "the source has shape %s, "
                "expected %s", td_shape_text(source, own),
                td_dims_text(&expected, want));
    }
    at = td_failed() ? NULL : td_run1(&td_ops[TD_OP_ravel_index], 2,
        (td_value[]){ td_v_tensor(flat), td_v_tensors(1, &at) }, 2,
        (td_value[]){ td_v_int(dim), td_v_bool(false) });
    return put_for(call, flat, at, s, dim, 1, how);
}

bool index_add_kernel(td_call *call)
{
    const td_value *alpha = &call->attr[1];
    td_tensor *source = call->in[2].as.tensor;
    if (td_scalar_double(alpha->as.scalar) != 1)
        source = td_mul_scalar(source, alpha->as.scalar);
    return write_slices(call, call->in[1].as.tensor, source, ADD);
}

bool index_copy_kernel(td_call *call)
{
    return write_slices(call, call->in[1].as.tensor,
                        call->in[2].as.tensor, SET);
}

bool index_fill_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    const td_value *v = &call->in[2];
    if (v->kind == TD_TENSOR && v->as.tensor->rank > 0)
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "the value "
            "must have rank 0, got %d", v->as.tensor->rank);
    td_tensor *value = v->kind == TD_TENSOR
        ? td_to(v->as.tensor, x->dtype)
        : td_full(TD_RANK_0, v->as.scalar, (td_tensor_options){
              .dtype = x->dtype, .device = td_device_of(x) });
    td_tensor *index = call->in[1].as.tensor;
    if (value && value->requires_grad)
        index = td_run1(&td_ops[TD_OP_unique], 1,
            (td_value[]){ td_v_tensor(index) }, 4, (td_value[]){
            td_v_bool(true), td_v_bool(false), td_v_bool(false),
            td_v_none() });
    return index && write_slices(call, index, value, SET);
}

/* indexing: kernel nonzero */
static int64_t count_points(const td_tensor *mask)
{
    const bool *on = td_at(mask);
    int64_t n = 0;
    for (int64_t i = 0; i < td_numel(mask); i++)
        n += on[i];
    return n;
}


static td_tensor *coordinates(td_tensor *mask)
{
    if (mask == NULL)
        return NULL;
    const int64_t n = count_points(mask);
    td_tensor *out = td_zeros(TD_DIMS(n, mask->rank),
                              (td_tensor_options){ .dtype = TD_INT64 });
    const bool *on = td_at(mask);
    int64_t *to = out ? td_at(out) : NULL;
    for (int64_t i = 0; to && n > 0 && i < td_numel(mask); i++) {
        int64_t rest = i;
        if (!on[i])
            continue;
        for (int d = mask->rank - 1; d >= 0; d--) {
            to[d] = rest % mask->shape[d];
            rest /= mask->shape[d];
        }
        to += mask->rank;
    }
    return out;
}


bool nonzero_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    if (td_self()->symbolic)
        return td_fail(TD_ERROR_UNSUPPORTED, "nonzero", "the shape of "
                     "the result depends on values that a trace lacks");
    td_scope_begin();
    td_tensor *mask = td_contiguous(td_to(x, TD_BOOL)), *here = mask;
    if (mask && !td_on_host(mask)) {
        here = td_tensor_new(td_shape_of(x), TD_BOOL,
                             (td_device){ TD_DEVICE_CPU, 0 });
        here = here && td_copy_elements(here, mask) ? here : NULL;
    }
    td_tensor *y = coordinates(here);
    y = y ? td_sent(y, td_device_of(x)) : NULL;
    return td_return(call, td_scope_end_with(y));
}

/* indexing: composites of masks */
static td_tensor *places_of(td_tensor *mask)
{
    return td_reshape(td_nonzero(td_reshape(mask, TD_DIMS(-1))),
                      TD_DIMS(-1));
}

static bool spread_mask(const char *op, td_tensor **x, td_tensor **mask)
{
    td_dims both;
    if ((*mask)->dtype != TD_BOOL)
        return td_fail(TD_ERROR_RUNTIME, op, "argument 'mask' must be "
                       "bool, got %s", td_dtype_name((*mask)->dtype));
    if (!td_broadcast_shapes(op, *x, *mask, &both))
        return false;
    *x = as_vector(td_expand(*x, both));
    *mask = as_vector(td_expand(*mask, both));
    return !td_failed();
}

bool masked_select_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor, *mask = call->in[1].as.tensor;
    td_tensor *y = NULL;
    if (spread_mask("masked_select", &x, &mask))
        y = td_index_points(x, places_of(mask), 0, x->rank);
    return td_return(call, y);
}

bool masked_scatter_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor, *mask = call->in[1].as.tensor;
    td_tensor *source = call->in[2].as.tensor, *at = NULL, *y = x;
    if (spread_mask(call->op->name, &y, &mask))
        at = places_of(mask);
    const int64_t n = td_numel(at);
    if (at && td_numel(y) != td_numel(x))
        td_fail(TD_ERROR_RUNTIME, call->op->name, "the mask has more "
                "elements than the tensor");
    if (at && td_numel(source) < n)
        td_fail(TD_ERROR_RUNTIME, call->op->name, "the mask has %lld "
            "places, the source %lld elements", (long long)n,
            (long long)td_numel(source));
    source = td_slice(td_reshape(source, TD_DIMS(-1)), 0,
        (td_opt_i64){ true, 0 }, (td_opt_i64){ true, n }, 1);
    return put_for(call, as_vector(x), at, source, 0,
                   x->rank ? x->rank : 1, SET);
}

bool take_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    td_tensor *index = call->in[1].as.tensor;
    td_tensor *y = td_index_points(td_reshape(x, TD_DIMS(-1)), index,
                                   0, 1);
    return td_return(call, y);
}

/* indexing: kernel embedding */
bool embedding_kernel(td_call *call)
{
    td_tensor *index = call->in[0].as.tensor;
    td_tensor *w = call->in[1].as.tensor;
    if (w->rank != 2)
        return td_fail(TD_ERROR_RUNTIME, "embedding", "argument "
                     "'weight' must be a matrix, got rank %d", w->rank);
    int64_t pad = td_v_get_int(&call->attr[0], 0);
    const bool pads = call->attr[0].kind != TD_NONE;
    if (pads && (pad < -w->shape[0] || pad >= w->shape[0]))
        return td_fail(TD_ERROR_RUNTIME, "embedding", "padding_idx "
            "%lld is not one of %lld rows", (long long)pad,
            (long long)w->shape[0]);
    pad += pad < 0 ? w->shape[0] : 0;
    td_tensor *at = td_run1(&td_ops[TD_OP_ravel_index], 2, (td_value[]){
        td_v_tensor(w), td_v_tensors(1, &index) }, 2,
        (td_value[]){ td_v_int(0), td_v_bool(false) });
    td_tensor *y = td_index_points(w, at, 0, 1);
    if (pads && y && y->requires_grad)
        y = td_where(td_unsqueeze(td_eq_scalar(at, td_int(pad)), -1),
                     td_detach(y), y);
    return td_return(call, y);
}

/* indexing: kernel one_hot */
static int64_t count_classes(td_tensor *input, int64_t given)
{
    const bool none = td_numel(input) == 0;
    if (given == 0 || given < -1 || (none && given < 0))
        td_fail(TD_ERROR_RUNTIME, "one_hot", "argument 'num_classes' "
                "must be above 0, or -1 to infer it from elements of "
                "'input'; got %lld and %lld elements",
                (long long)given, (long long)td_numel(input));
    if (td_failed() || td_self()->symbolic || none)
        return given;
    const int64_t least = td_item_int(td_min(input));
    const int64_t most = td_item_int(td_max(input));
    if (!td_failed() && least < 0)
        td_fail(TD_ERROR_RUNTIME, "one_hot", "argument 'input' must "
                "hold classes from 0 on, got %lld", (long long)least);
    if (!td_failed() && given > 0 && most >= given)
        td_fail(TD_ERROR_RUNTIME, "one_hot", "argument 'input' must "
                "hold classes below num_classes = %lld, got %lld",
                (long long)given, (long long)most);
    return given > 0 ? given : most + 1;
}

bool one_hot_kernel(td_call *call)
{
    td_tensor *input = call->in[0].as.tensor;
    if (input->dtype != TD_INT64)
        return td_fail(TD_ERROR_RUNTIME, "one_hot", "argument 'input' "
                  "must be int64, got %s", td_dtype_name(input->dtype));
    td_scope_begin();
    const int64_t n = count_classes(input,
                                    td_v_get_int(&call->attr[0], -1));
    td_tensor *all = n < 0 && !td_fail(TD_ERROR_UNSUPPORTED, "one_hot",
        "num_classes must be given in a trace") ? NULL
        : td_arange(td_int(0), td_int(n), td_int(1),
              (td_tensor_options){ .device = td_device_of(input),
                                   .dtype = TD_INT64 });
    td_tensor *y = td_to(td_eq(td_unsqueeze(input, -1), all), TD_INT64);
    return td_return(call, td_scope_end_with(y));
}
