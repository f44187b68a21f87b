/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "products": edit that, not this file. */
#include <string.h>
#include "device.h"
#include "gemm.h"
#include "registry.h"
#include <treadle/matmul.h>
/* products: struct matmul_operand */
typedef struct {
    int rank;
    int64_t shape[TD_MAX_RANK], strides[TD_MAX_RANK];
    const void *data;
    const td_tensor *of;
} matmul_operand;

static matmul_operand operand_of(const td_tensor *x)
{
    matmul_operand operand = { .rank = x->rank, .data = td_at(x),
                               .of = x };
    memcpy(operand.shape, x->shape, sizeof operand.shape);
    memcpy(operand.strides, x->strides, sizeof operand.strides);
    return operand;
}
/* products: function turned */
static matmul_operand turned(matmul_operand x)
{
    const int i = x.rank - 2, j = x.rank - 1;
    const int64_t size = x.shape[i], stride = x.strides[i];
    x.shape[i] = x.shape[j];
    x.strides[i] = x.strides[j];
    x.shape[j] = size;
    x.strides[j] = stride;
    return x;
}
/* products: struct matmul_plan */
typedef struct {
    td_product first;
    td_batching batch;
    td_dims shape;
    const td_tensor *a, *b;     /* where the numbers lie */
} matmul_plan;
/* products: function fail_shapes */
static bool fail_shapes(const char *op, const td_tensor *a,
                        const td_tensor *b, const char *why)
{
    char left[TD_SHAPE_TEXT], right[TD_SHAPE_TEXT];
    return td_fail(TD_ERROR_RUNTIME, op, "shapes %s and %s %s",
                   td_shape_text(a, left), td_shape_text(b, right),
                   why);
}
/* products: function check_types */
static bool check_types(const char *op, const td_tensor *a,
                        const td_tensor *b)
{
    if (a->dtype != b->dtype)
        return td_fail(TD_ERROR_RUNTIME, op,
                       "operands have types %s and %s; both must have "
                       "one", td_dtype_name(a->dtype),
                       td_dtype_name(b->dtype));
    if (!td_dtype_computes(a->dtype) || a->dtype == TD_BOOL)
        return td_fail(TD_ERROR_UNSUPPORTED, op,
                       "not available for %s; convert with to()",
                       td_dtype_name(a->dtype));
    return true;
}
/* products: function plan_matrices */
static void plan_matrices(matmul_plan *plan, const matmul_operand *a,
                          const matmul_operand *b)
{
    td_product *of = &plan->first;
    const int i = a->rank - 1, j = b->rank - 1;
    plan->a = a->of;
    plan->b = b->of;
    *of = (td_product){ .m = 1, .n = 1, .k = a->shape[i], .alpha = 1,
                        .a = a->data, .csa = a->strides[i],
                        .b = b->data };
    if (i > 0) {
        of->m = a->shape[i - 1];
        of->rsa = a->strides[i - 1];
    }
    of->rsb = b->strides[j > 0 ? j - 1 : 0];
    if (j > 0) {
        of->n = b->shape[j];
        of->csb = b->strides[j];
    }
    of->ldc = of->n;
}
/* products: function plan_batch */
static bool plan_batch(matmul_plan *plan, const matmul_operand *a,
                       const matmul_operand *b)
{
    td_batching *batch = &plan->batch;
    const int of_a = a->rank > 2 ? a->rank - 2 : 0;
    const int of_b = b->rank > 2 ? b->rank - 2 : 0;
    batch->rank = of_a > of_b ? of_a : of_b;
    batch->count = 1;
    int64_t stride = plan->first.m * plan->first.n;
    for (int d = batch->rank - 1; d >= 0; d--) {
        const int i = d - batch->rank + of_a;
        const int j = d - batch->rank + of_b;
        const int64_t m = i < 0 ? 1 : a->shape[i];
        const int64_t n = j < 0 ? 1 : b->shape[j];
        if (m != n && m != 1 && n != 1)
            return false;
        batch->shape[d] = m == 1 ? n : m;
        batch->a[d] = m == 1 ? 0 : a->strides[i];
        batch->b[d] = n == 1 ? 0 : b->strides[j];
        batch->c[d] = stride;
        stride *= batch->shape[d];
        batch->count *= batch->shape[d];
    }
    return true;
}
/* products: function plan_shape */
static void plan_shape(matmul_plan *plan, bool rows, bool columns)
{
    td_dims *shape = &plan->shape;
    shape->count = plan->batch.rank;
    memcpy(shape->at, plan->batch.shape, sizeof shape->at);
    if (rows)
        shape->at[shape->count++] = plan->first.m;
    if (columns)
        shape->at[shape->count++] = plan->first.n;
}
/* products: function fold_batch */
static void fold_batch(matmul_plan *plan)
{
    td_product *of = &plan->first;
    td_batching *batch = &plan->batch;
    while (batch->rank > 0) {
        const int d = batch->rank - 1;
        if (of->m == 1)
            of->rsa = batch->a[d];
        if (batch->b[d] != 0 || batch->a[d] != of->m * of->rsa)
            return;
        of->m *= batch->shape[d];
        batch->count = batch->shape[d] ? batch->count / batch->shape[d]
                                       : 1;
        batch->rank = d;
    }
}
/* products: function multiply_elsewhere */
static td_tensor stack_of(const td_batching *batch,
                          const int64_t *steps, const td_tensor *of,
                          int64_t rows, int64_t columns, int64_t down,
                          int64_t along)
{
    td_tensor x = *of;
    const int i = batch->rank, j = i + 1;
    x.rank = i + 2;
    memcpy(x.shape, batch->shape, sizeof x.shape);
    memcpy(x.strides, steps, sizeof x.strides);
    x.shape[i] = rows, x.shape[j] = columns;
    x.strides[i] = down, x.strides[j] = along;
    return x;
}

static bool multiply_elsewhere(const matmul_plan *plan, td_tensor *out,
                               double beta)
{
    const td_product *p = &plan->first;
    const td_batching *t = &plan->batch;
    td_tensor a = stack_of(t, t->a, plan->a, p->m, p->k,
                           p->rsa, p->csa);
    td_tensor b = stack_of(t, t->b, plan->b, p->k, p->n,
                           p->rsb, p->csb);
    td_tensor c = stack_of(t, t->c, out, p->m, p->n, p->ldc, 1);
    const td_value in[] = { td_v_tensor(&a), td_v_tensor(&b) };
    const td_value attr[] = { td_v_float(p->alpha), td_v_float(beta) };
    return td_compute_elsewhere(
        &(td_call){ .n_in = 2, .in = in, .n_attr = 2, .attr = attr,
                    .out = { &c } }, "gemm", out->dtype, false);
}
/* products: function carry_out */
static bool carry_out(matmul_plan *plan, td_tensor *out, double beta)
{
    if (!td_on_host(out))
        return multiply_elsewhere(plan, out, beta);
    fold_batch(plan);
    plan->first.c = td_at(out);
    plan->first.beta = beta;
    return td_gemm_batch(out->dtype, &plan->first, &plan->batch);
}
/* products: kernel matmul */
static bool matmul_like(td_call *call, const char *op)
{
    const td_tensor *x = call->in[0].as.tensor;
    const td_tensor *y = call->in[1].as.tensor;
    if (!check_types(op, x, y))
        return false;
    if (x->rank == 0 || y->rank == 0)
        return fail_shapes(op, x, y, "must have a dimension each");
    const matmul_operand a = operand_of(x), b = operand_of(y);
    if (a.shape[a.rank - 1] != b.shape[b.rank > 1 ? b.rank - 2 : 0])
        return fail_shapes(op, x, y, "do not match: the columns of the "
                           "first must be as many as the rows of the "
                           "second");
    matmul_plan plan;
    plan_matrices(&plan, &a, &b);
    if (!plan_batch(&plan, &a, &b))
        return fail_shapes(op, x, y, "do not broadcast in their batch "
                           "dimensions");
    plan_shape(&plan, a.rank > 1, b.rank > 1);
    td_tensor *out = td_tensor_new(plan.shape, x->dtype,
                                   x->storage->device);
    return td_return(call, out) && carry_out(&plan, out, 0);
}

bool matmul_kernel(td_call *call)
{
    return matmul_like(call, "matmul");
}
/* products: kernel dot */
bool dot_kernel(td_call *call)
{
    const td_tensor *x = call->in[0].as.tensor;
    const td_tensor *y = call->in[1].as.tensor;
    if (x->rank != 1 || y->rank != 1 || x->shape[0] != y->shape[0])
        return fail_shapes("dot", x, y,
                           "must be two vectors of equal length");
    return matmul_like(call, "dot");
}
/* products: kernel bmm */
bool bmm_kernel(td_call *call)
{
    const td_tensor *x = call->in[0].as.tensor;
    const td_tensor *y = call->in[1].as.tensor;
    if (x->rank != 3 || y->rank != 3 || x->shape[0] != y->shape[0])
        return fail_shapes("bmm", x, y, "must be two stacks of equally "
                           "many matrices");
    return matmul_like(call, "bmm");
}
/* products: kernel linear */
bool linear_kernel(td_call *call)
{
    const td_tensor *x = call->in[0].as.tensor;
    const td_tensor *w = call->in[1].as.tensor;
    const td_tensor *bias = call->in[2].kind == TD_NONE
        ? NULL : call->in[2].as.tensor;
    /* products: check the operands of linear */
    if (!check_types("linear", x, w)
        || (bias && !check_types("linear", x, bias)))
        return false;
    if (x->rank == 0 || w->rank != 2
        || x->shape[x->rank - 1] != w->shape[1])
        return fail_shapes("linear", x, w, "do not match: expected an "
                           "input of [..., in] and a weight of [out, in]");
    if (bias && (bias->rank != 1 || bias->shape[0] != w->shape[0]))
        return fail_shapes("linear", w, bias, "do not match: expected a "
                           "weight of [out, in] and a bias of [out]");
    const matmul_operand a = operand_of(x), b = turned(operand_of(w));
    matmul_plan plan;
    plan_matrices(&plan, &a, &b);
    plan_batch(&plan, &a, &b);
    plan_shape(&plan, a.rank > 1, true);
    td_tensor *out = td_tensor_new(plan.shape, x->dtype,
                                   x->storage->device);
    if (!out)
        return false;
    return td_return(call, out)
        && (!bias || td_copy_elements(out, bias))
        && carry_out(&plan, out, bias != NULL);
}
/* products: function factor */
static bool factor(const td_tensor *x, const td_value *value,
                   const char *name, double *out)
{
    const td_scalar s = value->as.scalar;
    *out = td_scalar_double(s);
    if (s.kind == TD_SCALAR_FLOAT && !td_dtype_is_floating(x->dtype))
        return td_fail(TD_ERROR_RUNTIME, "addmm",
                       "%s is %g, but operands of type %s need a whole "
                       "number", name, *out, td_dtype_name(x->dtype));
    return true;
}
/* products: kernel addmm */
bool addmm_kernel(td_call *call)
{
    const td_tensor *x = call->in[0].as.tensor;
    const td_tensor *y = call->in[1].as.tensor;
    const td_tensor *z = call->in[2].as.tensor;
    double beta, alpha;
    if (!check_types("addmm", x, y) || !check_types("addmm", y, z)
        || !factor(x, &call->attr[0], "beta", &beta)
        || !factor(x, &call->attr[1], "alpha", &alpha))
        return false;
    /* products: check the shapes of addmm */
    if (y->rank != 2 || z->rank != 2 || y->shape[1] != z->shape[0])
        return fail_shapes("addmm", y, z, "do not match: expected two "
                           "matrices, [m, k] and [k, n]");
    const int i = x->rank - 2, j = x->rank - 1;
    const int64_t rows = i < 0 ? 1 : x->shape[i];
    const int64_t columns = j < 0 ? 1 : x->shape[j];
    if (x->rank > 2 || (rows != 1 && rows != y->shape[0])
        || (columns != 1 && columns != z->shape[1]))
        return fail_shapes("addmm", y, z, "make a product to whose shape "
                           "the first operand does not broadcast");
    const matmul_operand a = operand_of(y), b = operand_of(z);
    matmul_plan plan;
    plan_matrices(&plan, &a, &b);
    plan_batch(&plan, &a, &b);
    plan_shape(&plan, true, true);
    plan.first.alpha = alpha;
    td_tensor *out = td_tensor_new(plan.shape, x->dtype,
                                   x->storage->device);
    if (!out)
        return false;
    return td_return(call, out)
        && (beta == 0 || td_copy_elements(out, x))
        && carry_out(&plan, out, beta);
}
/* products: functions of the matmul operators */
td_tensor *td_matmul(td_tensor *input, td_tensor *other)
{
    const td_value in[] = { td_v_tensor(input), td_v_tensor(other) };
    return td_run1(&td_ops[TD_OP_matmul], 2, in, 0, NULL);
}
td_tensor *td_dot(td_tensor *input, td_tensor *other)
{
    const td_value in[] = { td_v_tensor(input), td_v_tensor(other) };
    return td_run1(&td_ops[TD_OP_dot], 2, in, 0, NULL);
}

td_tensor *td_bmm(td_tensor *input, td_tensor *mat2)
{
    const td_value in[] = { td_v_tensor(input), td_v_tensor(mat2) };
    return td_run1(&td_ops[TD_OP_bmm], 2, in, 0, NULL);
}
td_tensor *td_linear(td_tensor *input, td_tensor *weight,
                     td_tensor *bias)
{
    const td_value in[] = { td_v_tensor(input), td_v_tensor(weight),
                            bias ? td_v_tensor(bias) : td_v_none() };
    return td_run1(&td_ops[TD_OP_linear], 3, in, 0, NULL);
}
td_tensor *td_addmm(td_tensor *input, td_tensor *mat1, td_tensor *mat2,
                    td_scalar beta, td_scalar alpha)
{
    const td_value in[] = { td_v_tensor(input), td_v_tensor(mat1),
                            td_v_tensor(mat2) };
    const td_value attr[] = { td_v_scalar(beta), td_v_scalar(alpha) };
    return td_run1(&td_ops[TD_OP_addmm], 3, in, 2, attr);
}
