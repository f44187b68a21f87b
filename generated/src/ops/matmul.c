/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "products": edit that, not this file. */
#include "core/device.h"
#include "ops/gemm.h"
#include "core/registry.h"
#include <treadle/matmul.h>
/* products: struct matmul_plan */
typedef struct {
    td_product first;
    td_tensor a, b, c;          /* stacks of matrices */
    td_space batch;             /* of c, a, b */
    td_dims shape;              /* of the result */
} matmul_plan;
/* products: functions that describe factors */
static void describe(td_tensor *y, const td_tensor *x, int missing)
{
    td_describe(y, x);
    if (x->rank > 1)
        return;
    y->rank = 2;
    y->shape[1 - missing] = x->shape[0];
    y->strides[1 - missing] = x->strides[0];
    y->shape[missing] = 1;
    y->strides[missing] = 0;
}
/* products: function check_types */
static bool check_types(const td_tensor *a, const td_tensor *b)
{
    if (a->dtype != b->dtype)
        return td_fail(TD_ERROR_RUNTIME, "matmul",
                       "operands have types %s and %s; both must have "
                       "one", td_dtype_name(a->dtype),
                       td_dtype_name(b->dtype));
    if (!td_dtype_computes(a->dtype) || a->dtype == TD_BOOL)
        return td_fail(TD_ERROR_UNSUPPORTED, "matmul",
                       "not available for %s; convert with to()",
                       td_dtype_name(a->dtype));
    return true;
}
/* products: function product_of */
static td_product product_of(const td_tensor *a, const td_tensor *b)
{
    const int i = a->rank - 2, j = b->rank - 2;
    return (td_product){
        .m = a->shape[i], .k = a->shape[i + 1], .n = b->shape[j + 1],
        .alpha = 1, .ldc = b->shape[j + 1],
        .rsa = a->strides[i], .csa = a->strides[i + 1],
        .rsb = b->strides[j], .csb = b->strides[j + 1] };
}
/* products: function plan_product */
td_dims td_batch_of(const td_tensor *x)
{
    td_dims d = td_shape_of(x);
    d.count = d.count > 2 ? d.count - 2 : 0;
    return d;
}

static bool plan_product(matmul_plan *plan, const td_tensor *x,
                         const td_tensor *y)
{
    td_tensor *a = &plan->a, *b = &plan->b;
    describe(a, x, 0);
    describe(b, y, 1);
    plan->first = product_of(a, b);
    td_dims *out = &plan->shape;
    out->count = 0;
    if (a->rank > 2 || b->rank > 2) {
        const td_dims left = td_batch_of(a), right = td_batch_of(b);
        if (!td_broadcast_dims("matmul: batch", &left, &right, out))
            return false;
    }
    /* products: give the result its rows and columns */
    const int batch = out->count;
    out->at[out->count++] = plan->first.m;
    out->at[out->count++] = plan->first.n;
    plan->c.offset = 0;
    td_lay(&plan->c, out, NULL);
    out->count = batch;
    if (x->rank > 1)
        out->at[out->count++] = plan->first.m;
    if (y->rank > 1)
        out->at[out->count++] = plan->first.n;
    return true;
}
/* products: function plan_batch */
static void plan_batch(matmul_plan *plan, const td_tensor *out)
{
    td_tensor *c = &plan->c, *const factors[] = { &plan->a, &plan->b };
    c->storage = out->storage;
    c->dtype = out->dtype;
    td_space_begin(&plan->batch, c, (1u << (c->rank - 2)) - 1);
    for (int k = 0; k < 2; k++)
        td_space_add(&plan->batch, factors[k],
                     (1u << (factors[k]->rank - 2)) - 1);
}
/* products: function fold_batch */
static void fold_batch(td_product *of, td_space *batch)
{
    while (batch->shape.count > 0) {
        const int d = batch->shape.count - 1;
        const int64_t a = batch->stride[1][d];
        const int64_t size = batch->shape.at[d];
        if (of->m == 1)
            of->rsa = a;
        if (batch->stride[2][d] != 0 || a != of->m * of->rsa)
            return;
        of->m *= size;
        batch->total = size ? batch->total / size : 1;
        batch->shape.count = d;
    }
}
/* products: function multiply_elsewhere */
static td_tensor stack_of(const td_space *batch, int k,
                          const td_tensor *of)
{
    td_tensor x = *of;
    td_lay(&x, &batch->shape, batch->stride[k]);
    x.rank += 2;
    for (int d = 1; d <= 2; d++) {
        x.shape[x.rank - d] = of->shape[of->rank - d];
        x.strides[x.rank - d] = of->strides[of->rank - d];
    }
    return x;
}

static bool multiply_elsewhere(const matmul_plan *plan, double beta)
{
    const td_space *s = &plan->batch;
    td_tensor c = stack_of(s, 0, &plan->c);
    td_tensor a = stack_of(s, 1, &plan->a);
    td_tensor b = stack_of(s, 2, &plan->b);
    const td_value in[] = { td_v_tensor(&a), td_v_tensor(&b) };
    const td_value attr[] = { td_v_float(plan->first.alpha),
                              td_v_float(beta) };
    return td_compute_elsewhere(
        &(td_call){ .n_in = 2, .in = in, .n_attr = 2, .attr = attr,
                    .out = { &c } }, "gemm", c.dtype, false);
}
/* products: function meets_one */
static bool meets_one(const td_space *batch)
{
    bool one = batch->shape.count > 0;
    for (int d = 0; d < batch->shape.count; d++)
        one = one && batch->stride[2][d] == 0;
    return one;
}

/* products: function carry_out */
static bool carry_out(td_call *call, matmul_plan *plan,
                      const td_tensor *start, double beta)
{
    td_tensor *out = td_tensor_new(plan->shape, plan->a.dtype,
                                   plan->a.storage->device);
    if (!td_return(call, out)
        || (beta != 0 && !td_copy_elements(out, start)))
        return false;
    plan_batch(plan, out);
    if (!td_on_host(out))
        return multiply_elsewhere(plan, beta);
    plan->first.beta = beta;
    td_product of = plan->first;
    td_tensor *copy = NULL;
    fold_batch(&of, &plan->batch);
    if (meets_one(&plan->batch)) {
        /* products: lay the matrices one under the other */
        copy = td_copied(&plan->a, plan->a.dtype);
        if (copy == NULL)
            return false;
        td_describe(&plan->a, copy);
        of = plan->first;
        of.rsa = of.k;
        of.csa = 1;
        plan_batch(plan, out);
        fold_batch(&of, &plan->batch);
    }
    const bool done = td_gemm_batch(&of, &plan->batch);
    td_release(copy);
    return done;
}
/* products: kernel matmul */
TD_KERNEL(matmul, x)
{
    const td_tensor *y = td_input(call, 1);
    if (!check_types(x, y))
        return false;
    if (x->rank == 0 || y->rank == 0)
        return td_refuse(call, "operands must have a dimension each");
    if (x->shape[x->rank - 1]
        != y->shape[y->rank > 1 ? y->rank - 2 : 0])
        return td_refuse(call, "shapes do not match: the columns of "
                         "the first must be as many as the rows of "
                         "the second");
    matmul_plan plan;
    return plan_product(&plan, x, y)
        && carry_out(call, &plan, NULL, 0);
}
/* products: kernels dot and bmm */
static bool strictly(td_call *call, int rank, const char *expected)
{
    const td_tensor *x = td_input(call, 0);
    const td_tensor *y = td_input(call, 1);
    if (x->rank != rank || y->rank != rank
        || x->shape[0] != y->shape[0])
        return td_refuse(call, "expected two %s", expected);
    return matmul_kernel(call);
}
bool dot_kernel(td_call *call)
{
    return strictly(call, 1, "vectors of equal length");
}

bool bmm_kernel(td_call *call)
{
    return strictly(call, 3, "stacks of equally many matrices");
}
/* products: kernel linear */
TD_KERNEL(linear, x)
{
    const td_tensor *w = td_input(call, 1);
    const td_tensor *bias = td_input(call, 2);
    /* products: check the operands of linear */
    if (!check_types(x, w) || (bias && !check_types(x, bias)))
        return false;
    if (x->rank == 0 || w->rank != 2
        || x->shape[x->rank - 1] != w->shape[1]
        || (bias && (bias->rank != 1 || bias->shape[0] != w->shape[0])))
        return td_refuse(call, "shapes do not match: expected an input of "
                         "[..., in], a weight of [out, in] and a bias of "
                         "[out]");
    td_tensor turned = td_look(w);
    for (int d = 0; d < 2; d++) {
        turned.shape[d] = w->shape[1 - d];
        turned.strides[d] = w->strides[1 - d];
    }
    matmul_plan plan;
    plan_product(&plan, x, &turned);
    return carry_out(call, &plan, bias, bias != NULL);
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
TD_KERNEL(addmm, x)
{
    const td_tensor *y = td_input(call, 1);
    const td_tensor *z = td_input(call, 2);
    double beta, alpha;
    if (!check_types(x, y) || !check_types(y, z)
        || !factor(x, &call->attr[0], "beta", &beta)
        || !factor(x, &call->attr[1], "alpha", &alpha))
        return false;
    /* products: check the shapes of addmm */
    if (y->rank != 2 || z->rank != 2 || y->shape[1] != z->shape[0])
        return td_refuse(call, "shapes do not match: expected matrices "
                         "mat1 of [m, k] and mat2 of [k, n]");
    const int i = x->rank - 2, j = x->rank - 1;
    const int64_t rows = i < 0 ? 1 : x->shape[i];
    const int64_t columns = j < 0 ? 1 : x->shape[j];
    if (x->rank > 2 || (rows != 1 && rows != y->shape[0])
        || (columns != 1 && columns != z->shape[1]))
        return td_refuse(call, "the first operand does not broadcast to "
                         "the product of the others");
    matmul_plan plan;
    plan_product(&plan, y, z);
    plan.first.alpha = alpha;
    return carry_out(call, &plan, x, beta);
}
/* products: functions of the matmul operators */
TD_OF_TWO(matmul)
TD_OF_TWO(dot)
TD_OF_TWO(bmm)
td_tensor *td_linear(td_tensor *input, td_tensor *weight,
                     td_tensor *bias)
{
    return TD_RUN(linear, (td_v_tensor(input), td_v_tensor(weight),
                           td_v_optional(bias)));
}
td_tensor *td_addmm(td_tensor *input, td_tensor *mat1, td_tensor *mat2,
                    td_scalar beta, td_scalar alpha)
{
    return TD_CALL3(addmm, input, mat1, mat2, td_v_scalar(beta),
                    td_v_scalar(alpha));
}
