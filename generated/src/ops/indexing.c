/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "indexing": edit that, not this file. */
/* Reading and writing at places that are data. */
#include "core/device.h"
#include "core/space.h"
#include "ops/composite.h"
#include "ops/reductions.h"
#include <treadle/treadle.h>

/* indexing: struct points */
enum { READ, SET, ADD, MULTIPLY, CHECK };

typedef struct { int64_t size, x, y, at; } side;    /* elements */

typedef struct {
    int how, rank, dim, covers, cut;
    bool wrap;                      /* -1 is the last */
    td_dtype dtype;
    int64_t bytes;                  /* of an element */
    char *x, *y;                    /* the tensor; the points */
    const int64_t *index;
    int64_t next;                   /* to the next coordinate */
    td_dims size, step;             /* covered dimensions and strides */
    td_dims shape;                  /* of y, then without seams */
    td_steps stride[3];             /* in x, y and index */
    side by[TD_MAX_RANK + 2];       /* the last is a run */
} points;

/* indexing: functions that plan points */
static void plan_points(points *p, const td_tensor *x,
                        const td_tensor *index, const td_tensor *y)
{
    const bool each = p->covers == 0;
    const int names = index->rank - (p->covers > 1);
    p->size.count = p->step.count = p->covers += each;
    p->next = index->strides[index->rank > 0 ? index->rank - 1 : 0];
    for (int k = 0; k < p->covers; k++) {
        p->size.at[k] = x->shape[p->dim + k];
        p->step.at[k] = x->strides[p->dim + k];
    }
    for (int d = 0; d < y->rank; d++) {
        const int i = each ? d : d - p->dim;
        const int to = i < names || each ? d : d - names + p->covers;
        const bool named = each || (i >= 0 && i < names);
        const bool own = each ? d != p->dim : !named;
        p->stride[0][d] = own ? x->strides[to] : 0;
        p->stride[1][d] = y->strides[d];
        p->stride[2][d] = named ? index->strides[i] : 0;
    }
    /* indexing: join the sides that follow each other */
    const side one = { .size = 1 };
    td_collapse(&p->shape, 3, p->stride);
    p->by[p->rank++] = one;
    for (int d = 0; d < p->shape.count; d++)
        p->by[p->rank++] = (side){ p->shape.at[d], p->stride[0][d],
                                   p->stride[1][d], p->stride[2][d] };
    if (p->rank < 2 || p->by[p->rank - 1].at != 0)
        p->by[p->rank++] = one;
}

enum { PIECE = 256 };

/* indexing: functions that find points */
typedef struct {
    const int64_t *index;
    int64_t next, step;
    uint64_t size, wrap;
} coordinate;

static inline bool find(const coordinate *c, int64_t next,
                        int64_t step, int64_t i, int64_t *offset)
{
    uint64_t at = c->index[i * next];
    if (at >= c->size && (at += c->wrap) >= c->size)
        return false;
    *offset = (int64_t)at * step;
    return true;
}

static coordinate coordinate_of(const points *p, int k, int64_t at,
                                int64_t next)
{
    const uint64_t size = (uint64_t)p->size.at[k];
    return (coordinate){ p->index + at + k * p->next, next,
                         p->step.at[k], size, p->wrap * size };
}

/* indexing: function out_of_bounds */
static bool out_of_bounds(const points *p, int k, coordinate c,
                          int64_t n)
{
    int64_t offset;
    while (--n > 0 && find(&c, 0, 0, 0, &offset))
        c.index += c.next;
    return td_fail(TD_ERROR_INDEX, "index", "index %" PRId64 " is "
        "out of bounds for dimension %d with size %" PRIu64, *c.index,
        p->dim + k, c.size);
}

static bool find_piece(const points *p, int64_t at, int64_t next,
                       int64_t n, int64_t *offset)
{
    for (int k = 0; k < p->covers; k++) {
        const coordinate c = coordinate_of(p, k, at, next);
        for (int64_t i = 0, more; i < n; i++) {
            if (!find(&c, next, c.step, i, &more))
                return out_of_bounds(p, k, c, n);
            offset[i] = k > 0 ? offset[i] + more : more;
        }
    }
    return true;
}

/* indexing: functions that move points */
#define EACH(T, outside, by_x, by_y, statement)                       \
    for (int64_t offset = 0; i < n; i++) {                            \
        if (outside)                                                  \
            return false;                                             \
        T *a = (T *)x + i * (by_x) + offset;                          \
        T *b = (T *)y + i * (by_y);                                   \
        statement;                                                    \
    }
#define FOURS(T, statement)                                           \
    for (bool out = false; i + 4 <= n; i += 4) {                      \
        uint64_t at[4];                                               \
        for (int k = 0; k < 4; k++)                                   \
            out |= (at[k] = c->index[i + k]) >= c->size;              \
        if (out)                                                      \
            break;                                                    \
        for (int k = 0; k < 4; k++) {                                 \
            T *a = (T *)x + at[k];                                    \
            T *b = (T *)y + i + k;                                    \
            statement;                                                \
        }                                                             \
    }
#define MOVE(T, statement)                                            \
    if (plain) {                                                      \
        FOURS(T, statement)                                           \
        EACH(T, !find(c, 1, 1, i, &offset), 0, 1, statement)          \
    } else if (c != NULL)                                             \
        EACH(T, !find(c, c->next, c->step, i, &offset), in_x, in_y,   \
             statement)                                               \
    else if (in_x == 1 && in_y == 0)                                  \
        EACH(T, false, 1, 0, statement)                               \
    else                                                              \
        EACH(T, false, in_x, in_y, statement)                         \
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

static bool move_run(const points *p, const coordinate *c,
                     char *restrict x, char *restrict y,
                     const side *s, int64_t n)
{
    const int64_t in_x = s->x, in_y = s->y;
    const bool plain = c && c->next == 1 && c->step == 1
                       && in_x == 0 && in_y == 1;
    int64_t i = 0;
    /* indexing: fetch a row of which most will be asked for */
    const uint64_t all = plain ? c->size * (uint64_t)p->bytes : 0;
    if (all <= 16384 && all / 64 <= (uint64_t)n)
        for (uint64_t at = 0; at < all; at += 64)
            __builtin_prefetch(x + at);
    switch (p->how) {
    case READ: MOVE_BYTES(*b = *a) break;
    case SET: MOVE_BYTES(*a = *b) break;
    case ADD: MOVE_TYPE(*a += *b, *a |= *b) break;
    case MULTIPLY: MOVE_TYPE(*a *= *b, *a &= *b) break;
    case CHECK: MOVE(char, (void)a; (void)b)
    }
    return true;
}

static bool move_side(const points *p, const side *s, char *x, char *y,
                      int64_t at)
{
    const side *run = s + 1;
    const coordinate c = coordinate_of(p, 0, at, s->at);
    if (run->size == 1 && p->covers == 1)
        return move_run(p, &c, x, y, s, s->size)
            || out_of_bounds(p, 0, c, s->size);
    int64_t offset[PIECE];
    const coordinate all = { offset, 1, 1, INT64_MAX, 0 };
    for (int64_t i = 0, n; i < s->size; i += n) {
        n = td_least(s->size - i, PIECE);
        if (!find_piece(p, at + i * s->at, s->at, n, offset))
            return false;
        if (run->size == 1)
            move_run(p, &all, x, y, s, n);
        for (int64_t j = 0; j < n; j++) {
            if (run->size != 1)
                move_run(p, NULL, x + offset[j] * p->bytes, y, run,
                         run->size);
            x += s->x * p->bytes;
            y += s->y * p->bytes;
        }
    }
    return true;
}

static bool walk(const points *p, int d, int64_t x, int64_t y,
                 int64_t at)
{
    const side *s = &p->by[d];
    if (d == p->rank - 2)
        return move_side(p, s, p->x + x * p->bytes,
                         p->y + y * p->bytes, at);
    bool ok = true;
    for (int64_t i = 0; ok && i < s->size; i++)
        ok = walk(p, d + 1, x + i * s->x, y + i * s->y, at + i * s->at);
    return ok;
}

TD_BODY(move_share, const points, all)
{
    points p = *all;
    side *s = &p.by[p.cut];
    s->size = end - begin;
    return walk(&p, 0, begin * s->x, begin * s->y, begin * s->at);
}

static bool move_points(points *p)
{
    int64_t total = 1;
    p->cut = -1;
    for (int d = 0; d < p->rank; d++)
        total *= p->by[d].size;
    if (total == 0)
        p->how = CHECK;
    for (int d = 0; d < p->rank; d++) {
        side *s = &p->by[d];
        if (p->how == CHECK && s->at == 0)
            s->size = 1;
        if ((p->how == READ || p->how == CHECK || s->x != 0)
            && (p->cut < 0 || s->size > p->by[p->cut].size))
            p->cut = d;
    }
    if (p->cut < 0)
        return walk(p, 0, 0, 0, 0);
    const int64_t n = p->by[p->cut].size;
    return td_parallel_for(n, 32768 * n / (total + 1) + 1, move_share,
                           p);
}

/* indexing: functions that check indices */
/* A number counts as a vector of one. */
static td_tensor as_line(const td_tensor *x)
{
    td_tensor line = td_look(x);
    if (x->rank == 0)
        line.shape[line.rank++] = line.strides[0] = 1;
    return line;
}

static bool shape_of_slices(const td_call *call, const td_tensor *x,
                            int64_t covers, points *p)
{
    const td_tensor *index = td_input(call, 1);
    const int dim = p->dim;
    const int names = index->rank - (covers > 1);
    if (covers < 1 || covers > x->rank - dim)
        return td_fail(TD_ERROR_INDEX, "index", "%" PRId64
            " dimensions from %d on do not fit rank %d", covers, dim,
            x->rank);
    if (names < 0 || (covers > 1 && index->shape[names] != covers))
        return td_fail(TD_ERROR_INDEX, "index", "the last dimension of "
            "the index must hold %" PRId64 " coordinates", covers);
    const int more = names - (int)covers;
    p->shape.count = x->rank + more;
    if (p->shape.count > TD_MAX_RANK)
        return td_refuse(call, "the result would have %d dimensions, "
            "at most %d are possible", p->shape.count, TD_MAX_RANK);
    for (int d = 0; d < p->shape.count; d++)
        p->shape.at[d] = d < dim ? x->shape[d]
            : d < dim + names ? index->shape[d - dim]
            : x->shape[d - more];
    return true;
}

static bool shape_of_points(const td_call *call, const td_tensor *x,
                            points *p)
{
    const int64_t covers = td_number(call, 1, 1);
    const td_tensor line = as_line(x), *index = td_input(call, 1);
    *p = (points){ .dtype = x->dtype, .dim = td_dim_of(call),
                   .bytes = (int64_t)td_dtype_size(x->dtype),
                   .covers = (int)covers,
                   .wrap = td_flag(call, 2) };
    if (!td_dtype_is_integer(index->dtype))
        td_fail(TD_ERROR_INDEX, "index", "an index must hold "
                "integers, not %s", td_dtype_name(index->dtype));
    if (td_failed() || covers != 0)
        return !td_failed() && shape_of_slices(call, &line, covers, p);
    /* indexing: take the shape of the index */
    const td_tensor each = as_line(index);
    bool fits = each.rank == line.rank;
    for (int d = 0; fits && d < line.rank; d++)
        fits = d == p->dim || each.shape[d] <= line.shape[d];
    p->shape = td_shape_of(index);
    char text[TD_SHAPE_TEXT];
    return fits || td_numel(index) == 0
        || td_refuse(call, "index of shape %s does not fit along "
            "dimension %d", td_shape_text(index, text), p->dim);
}

/* indexing: kernel index_points */
static bool move(points *p, td_tensor *x, td_tensor *index,
                 const td_tensor *y, int how)
{
    index = td_brought(td_to(index, TD_INT64), td_device_of(x));
    if (td_failed() || td_self()->symbolic)
        return !td_failed();
    if (how != READ && index->storage == x->storage)
        index = td_clone(index);
    if (index == NULL)
        return false;
    const td_tensor line = as_line(x), at = as_line(index);
    p->x = td_at(x), p->y = td_at(y), p->index = td_at(index);
    p->how = how;
    plan_points(p, &line, p->covers ? index : &at, y);
    if (td_on_host(x))
        return move_points(p);
    /* indexing: move points elsewhere */
    td_tensor look[] = { td_look(&line), td_look(y), td_look(index) };
    for (int k = 0; k < 3; k++)
        td_lay(&look[k], &p->shape, p->stride[k]);
    const bool reads = how == READ;
    const td_value in[] = { td_v_tensor(&look[!reads]),
                            td_v_tensor(&look[2]) };
    const td_value attr[] = { td_v_int(how), td_v_bool(p->wrap),
        td_v_int(p->next), td_v_ints(&p->size), td_v_ints(&p->step) };
    return td_compute_elsewhere(
        &(td_call){ .n_in = 2, .in = in, .n_attr = 5, .attr = attr,
                    .out = { &look[reads] } },
        reads ? "index_points" : "put_points", x->dtype, false);
}

TD_KERNEL(index_points, x)
{
    points p;
    if (!shape_of_points(call, x, &p))
        return false;
    td_scope_begin();
    td_tensor *y = td_tensor_new(p.shape, x->dtype, td_device_of(x));
    if (y != NULL)
        move(&p, x, td_input(call, 1), y, READ);
    return td_return(call, td_scope_end_with(y));
}

/* indexing: kernel put_points */
static bool put(const td_call *call, td_tensor *x)
{
    points p;
    td_tensor *index = td_input(call, 1), *source = td_input(call, 2);
    const int64_t how = td_number(call, 3, 0);
    if (!shape_of_points(call, x, &p))
        return false;
    /* indexing: refuse what cannot be put */
    if (source->dtype != x->dtype)
        return td_fail(TD_ERROR_RUNTIME, "index", "the source is %s, the "
                       "destination %s", td_dtype_name(source->dtype),
                       td_dtype_name(x->dtype));
    if (how < 0 || how > MULTIPLY - SET)
        return td_fail(TD_ERROR_VALUE, "index", "how must be 0, 1 or 2, "
                       "got %" PRId64, how);
    if (how > 0 && !td_check_computes(call, x->dtype, false))
        return false;
    source = td_expand(td_brought(source, td_device_of(x)), p.shape);
    if (source && source->storage == x->storage)
        source = td_clone(source);
    points check = p;
    return !td_failed()
        && (x != td_input(call, 0) || !td_on_host(x)
            || move(&check, x, index, source, CHECK))
        && move(&p, x, index, source, SET + (int)how);
}

bool put_points_kernel(td_call *call)
{
    td_scope_begin();
    td_tensor *x = td_clone(td_input(call, 0));
    if (x != NULL)
        put(call, x);
    return td_return(call, td_scope_end_with(x));
}

TD_KERNEL(put_points_, x)
{
    if (!td_writes_alone(x))
        return false;
    td_scope_begin();
    put(call, x);
    td_scope_end();
    td_bump_version(x);
    return !td_failed() && td_return(call, td_share(x));
}

/* indexing: functions in C for indexing */
static td_tensor *points_at(td_tensor *x, td_tensor *index, int64_t dim,
                            int covers, bool wrap)
{
    return TD_CALL2(index_points, x, index, td_v_int(dim),
                    td_v_int(covers), td_v_bool(wrap));
}

static td_tensor *put_into(td_tensor *x, td_tensor *index,
                           td_tensor *source, const td_value *at,
                           int how, bool here)
{
    return td_run1(
        &td_ops[here ? TD_OP_put_points_ : TD_OP_put_points],
        TD_VALUES(td_v_tensor(x), td_v_tensor(index),
                  td_v_tensor(source)),
        TD_VALUES(at[0], at[1], at[2], td_v_int(how - SET)));
}

td_tensor *td_index_points(td_tensor *x, td_tensor *index, int dim,
                           int covers)
{
    return points_at(x, index, dim, covers, true);
}

td_tensor *td_put_points_(td_tensor *x, td_tensor *index,
                          td_tensor *source, int dim, int covers,
                          int how)
{
    const td_value at[] = { td_v_int(dim), td_v_int(covers),
                            td_v_bool(true) };
    return put_into(x, index, source, at, SET + how, true);
}

td_tensor *td_coordinates(int n, td_tensor *const *index)
{
    td_tensor *all[TD_MAX_RANK];
    char text[TD_SHAPE_TEXT];
    td_dims shape = TD_RANK_0;
    for (int k = 0; k < n; k++) {
        const td_dims own = td_shape_of(index[k]);
        if (td_broadcast_dims("index", &shape, &own, &shape))
            continue;
        td_error_clear();
        td_fail(TD_ERROR_INDEX, "index", "index %d of shape %s does "
            "not broadcast with those before it", k,
            td_shape_text(index[k], text));
        return NULL;
    }
    for (int k = 0; k < n; k++)
        all[k] = td_expand(index[k], shape);
    return n == 1 ? index[0] : td_stack(all, n, shape.count);
}

#define ALONG(op)                                                 \
    td_tensor *td_##op(td_tensor *x, int dim, td_tensor *index)   \
    {                                                             \
        return TD_CALL2(op, x, index, td_v_int(dim));             \
    }
ALONG(gather)
ALONG(index_select)
TD_OF_ONE(nonzero)

td_tensor *td_embedding(td_tensor *input, td_tensor *weight)
{
    return TD_CALL2(embedding, input, weight, td_v_none());
}

/* indexing: rules of points */
TD_RULE(index_points, g)
{
    td_tensor *sum = td_sum_so_far(b, 0);
    /* lookup: exercise lookup */
    td_tensor *y = put_into(
        sum ? sum : td_zeros(td_input_dims(b, 0), td_like(g)),
        td_saved_input(b, 1), g, td_attribute(b, 0), ADD,
        !b->create_graph);
    b->grad_in[0] = sum ? NULL : y;
}

TD_RULE(put_points, g)
{
    td_tensor *index = td_saved_input(b, 1);
    const td_value *at = td_attribute(b, 0);
    const int how = SET + (int)td_v_get_int(&at[3], 0);
    if (how == MULTIPLY)
        td_fail(TD_ERROR_RUNTIME, "put_points", "a product at places "
                "has no derivative here");
    if (td_needs(b, 0))
        b->grad_in[0] = how == ADD ? g
            : put_into(g, index, td_zeros(TD_RANK_0, td_like(g)), at,
                       SET, false);
    if (td_needs(b, 2))
        b->grad_in[2] = TD_CALL2(index_points, g, index, at[0], at[1],
                                 at[2]);
}

/* indexing: composites along a dimension */
static td_tensor *as_vector(td_tensor *x)
{
    return x && x->rank == 0 ? td_unsqueeze(x, 0) : x;
}

TD_COMPOSED(gather, x)
{
    return points_at(x, td_input(call, 1),
                     td_number(call, 0, 0), 0, false);
}

/* Writes into a copy of input, or into input if the operator's name
   ends in an underscore. */
static bool put_for(td_call *call, td_tensor *index, td_tensor *source,
                    int64_t dim, int covers, int how)
{
    const char *name = call->op->name;
    const td_value at[] = { td_v_int(dim), td_v_int(covers),
                            td_v_bool(false) };
    return td_return(call, put_into(td_input(call, 0), index, source,
        at, how, name[strlen(name) - 1] == '_'));
}

bool scatter_kernel(td_call *call)
{
    const int how = call->n_attr < 2 ? ADD
                  : SET + td_choice(call, 1, "|add|multiply");
    td_tensor *index = td_input(call, 1), *source = td_input(call, 2);
    if (call->in[2].kind == TD_SCALAR)
        source = td_number_like(call, 2, td_input(call, 0));
    else if (td_numel(index) == 0)
        source = td_reshape(td_part(td_flatten(source, 0, -1), 0, 0, 0),
                            td_shape_of(index));
    else {
        /* indexing: cut the source to the corner that the index has */
        const td_tensor line = as_line(index);
        source = as_vector(source);
        if (td_rank(source) != line.rank)
            return td_refuse(call, "index and source differ in rank");
        for (int d = 0; d < line.rank && source != NULL; d++) {
            const int64_t n = line.shape[d], m = source->shape[d];
            if (m < n)
                return td_refuse(call, "index has %" PRId64 " entries "
                    "in dimension %d, the source has %" PRId64, n, d, m);
            source = m > n ? td_part(source, d, 0, n) : source;
        }
    }
    if (index->rank == 0)
        source = td_reshape(source, TD_RANK_0);
    return put_for(call, index, source, td_number(call, 0, 0), 0, how);
}

TD_COMPOSED(take_along_dim, x)
{
    td_tensor *index = td_input(call, 1);
    const int dim = td_dim_of(call);
    if (call->attr[0].kind == TD_NONE) {
        x = td_reshape(x, TD_DIMS(-1));
        index = td_reshape(index, TD_DIMS(-1));
    } else if (x->rank == index->rank) {
        td_dims both = td_shape_of(x);
        for (int d = 0; d < x->rank; d++)
            both.at[d] = d == dim ? -1 : x->shape[d] == 1
                       ? index->shape[d] : x->shape[d];
        x = td_expand(x, both);
        index = td_expand(index, both);
    }
    return td_gather(x, dim, index);
}

/* indexing: composites that write slices */
static td_tensor *vector_of(const td_call *call)
{
    td_tensor *index = td_input(call, 1);
    if (index->rank > 1)
        td_refuse_as(call, TD_ERROR_INDEX,
                     "argument 'index' must be a vector");
    return as_vector(index);
}

TD_COMPOSED(index_select, x)
{
    td_tensor *index = vector_of(call), *y;
    if (x->rank == 0 && td_numel(index) != 1)
        td_refuse_as(call, TD_ERROR_INDEX,
                     "a tensor of rank 0 has one position");
    y = points_at(x, index, td_number(call, 0, 0), 1, false);
    return x->rank > 0 ? y : td_reshape(y, TD_RANK_0);
}

static bool write_slices(td_call *call, td_tensor *index,
                         td_tensor *source, int how)
{
    const td_tensor x = as_line(td_input(call, 0));
    const int dim = td_dim_of(call);
    td_dims expected = td_shape_of(&x);
    expected.at[dim] = td_numel(index);
    if (source && source->rank > 0)
        td_expect(call, "source", source, expected);
    return put_for(call, index, as_vector(source), dim, 1, how);
}

bool index_add_kernel(td_call *call)
{
    const td_scalar alpha = call->attr[1].as.scalar;
    td_tensor *source = td_input(call, 2);
    if (td_scalar_double(alpha) != 1)
        source = td_mul_scalar(source, alpha);
    return write_slices(call, vector_of(call), source, ADD);
}

bool index_copy_kernel(td_call *call)
{
    return write_slices(call, vector_of(call), td_input(call, 2), SET);
}

bool index_fill_kernel(td_call *call)
{
    td_tensor *value = td_number_like(call, 2, td_input(call, 0));
    td_tensor *index = vector_of(call);
    if (value && value->requires_grad) {
        /* indexing: find each named position once */
        const td_tensor x = as_line(td_input(call, 0));
        td_tensor *none = td_zeros(TD_DIMS(x.shape[td_dim_of(call)]),
                                   td_beside(index, TD_BOOL));
        td_tensor *named = TD_RUN(index_fill, (td_v_tensor(none),
            td_v_tensor(index), td_v_bool(true)), td_v_int(0));
        index = td_reshape(td_nonzero(named), TD_DIMS(-1));
    }
    return write_slices(call, index, value, SET);
}

/* indexing: kernel nonzero */
static td_tensor *coordinates(td_tensor *mask)
{
    if (mask == NULL)
        return NULL;
    const int64_t n = td_item_int(td_sum(mask, TD_REDUCE_DEFAULTS));
    const int last = mask->rank - 1;
    const int64_t row = last < 0 ? 0 : mask->shape[last];
    td_tensor *out = td_zeros(TD_DIMS(n, mask->rank),
                              TD_OF(TD_INT64));
    const bool *on = td_at(mask);
    int64_t *to = out ? td_at(out) : NULL, at[TD_MAX_RANK];
    const int64_t rows = row > 0 ? td_numel(mask) / row : 0;
    for (int64_t r = 0; to != NULL && r < rows; r++) {
        int64_t rest = r;
        for (int d = last - 1; d >= 0; rest /= mask->shape[d--])
            at[d] = rest % mask->shape[d];
        for (int64_t j = 0; j < row; j++)
            if (*on++) {
                memcpy(to, at, (size_t)last * sizeof *at);
                to[last] = j;
                to += mask->rank;
            }
    }
    return out;
}


TD_KERNEL(nonzero, x)
{
    if (td_self()->symbolic)
        return td_fail(TD_ERROR_UNSUPPORTED, "nonzero", "the shape of "
                     "the result depends on values that a trace lacks");
    td_scope_begin();
    td_tensor *y = coordinates(td_brought(
        td_contiguous(td_to(x, TD_BOOL)), TD_CPU));
    y = td_brought(y, td_device_of(x));
    return td_return(call, td_scope_end_with(y));
}

/* indexing: composites of masks */
static td_tensor *places_of(td_tensor *mask)
{
    td_tensor *rows = td_nonzero(mask);
    return mask && mask->rank == 1 ? td_select(rows, 1, 0) : rows;
}

static bool spread_mask(td_tensor **x, td_tensor **mask)
{
    td_dims both;
    if ((*mask)->dtype != TD_BOOL)
        return td_fail(TD_ERROR_RUNTIME, "mask", "argument 'mask' must "
            "be bool, got %s", td_dtype_name((*mask)->dtype));
    if (!td_broadcast_shapes("mask", *x, *mask, &both))
        return false;
    *x = as_vector(td_expand(*x, both));
    *mask = as_vector(td_expand(*mask, both));
    return !td_failed();
}

TD_COMPOSED(masked_select, x)
{
    td_tensor *mask = td_input(call, 1);
    return spread_mask(&x, &mask)
         ? points_at(x, places_of(mask), 0, x->rank, false) : NULL;
}

TD_KERNEL(masked_scatter, x)
{
    td_tensor *mask = td_input(call, 1);
    td_tensor *source = td_input(call, 2), *at = NULL, *y = x;
    if (spread_mask(&y, &mask))
        at = places_of(mask);
    const int64_t n = at ? at->shape[0] : 0;
    if (at && td_numel(y) != td_numel(x))
        td_refuse(call, "the mask has more elements than the tensor");
    if (at && td_numel(source) < n)
        td_refuse(call, "the mask has %" PRId64 " places, the source %"
                  PRId64 " elements", n, td_numel(source));
    source = td_part(td_reshape(source, TD_DIMS(-1)), 0, 0, n);
    return put_for(call, at, source, 0, y ? y->rank : 1, SET);
}

TD_COMPOSED(take, x)
{
    return td_index_points(td_reshape(x, TD_DIMS(-1)),
                           td_input(call, 1), 0, 1);
}

/* indexing: kernel embedding */
TD_COMPOSED(embedding, index)
{
    td_tensor *w = td_input(call, 1);
    int64_t pad = td_number(call, 0, 0);
    const bool pads = call->attr[0].kind != TD_NONE;
    if (w->rank != 2)
        return td_refuse(call, "argument 'weight' must be a matrix");
    if (pads && (pad < -w->shape[0] || pad >= w->shape[0]))
        return td_refuse(call, "padding_idx %" PRId64 " is not one of %"
            PRId64 " rows", pad, w->shape[0]);
    pad += pad < 0 ? w->shape[0] : 0;
    td_tensor *y = points_at(w, index, 0, 1, false);
    /* indexing: cut what was padding off from the graph */
    if (pads && y && y->requires_grad)
        y = td_where(td_unsqueeze(td_eq_scalar(index, td_int(pad)), -1),
                     td_detach(y), y);
    return y;
}

/* indexing: kernel one_hot */
TD_KERNEL(one_hot, input)
{
    int64_t n = td_number(call, 0, -1);
    const bool none = td_numel(input) == 0;
    if (input->dtype != TD_INT64)
        return td_refuse(call, "argument 'input' must be int64, got %s",
                         td_dtype_name(input->dtype));
    td_scope_begin();
    if (n == 0 || n < -1 || (none && n < 0))
        td_refuse(call, "argument 'num_classes' must be above 0, or -1 "
                  "to infer it from elements of 'input'; got %" PRId64,
                  n);
    if (!td_failed() && !td_self()->symbolic && !none) {
        /* indexing: count the classes */
        const int64_t least = td_item_int(td_min(input));
        const int64_t most = td_item_int(td_max(input));
        if (least < 0)
            td_refuse(call, "argument 'input' must hold classes from 0 on, "
                      "got %" PRId64, least);
        if (n > 0 && most >= n)
            td_refuse(call, "argument 'input' must hold classes below "
                      "num_classes = %" PRId64 ", got %" PRId64, n, most);
        n = n > 0 ? n : most + 1;
    }
    if (n < 0)
        td_fail(TD_ERROR_UNSUPPORTED, "one_hot",
                "num_classes must be given in a trace");
    td_tensor *all = td_count_up(0, n, td_like(input));
    td_tensor *y = td_to(td_eq(td_unsqueeze(input, -1), all), TD_INT64);
    return td_return(call, td_scope_end_with(y));
}
