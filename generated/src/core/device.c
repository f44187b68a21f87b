/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "devices": edit that, not this file. */
#include "core/device.h"
#include "core/registry.h"
#include "core/space.h"
/* plugins: includes of the table of a device */
const td_device_table *td_load_cuda(const char *operation);

/* devices: function td_device_text */
const char *td_device_text(td_device device, char text[TD_DEVICE_TEXT])
{
    if (device.kind == TD_DEVICE_CPU)
        return "cpu";
    snprintf(text, TD_DEVICE_TEXT, "cuda:%d", device.index);
    return text;
}

/* devices: function td_table_of */
const td_device_table *td_table_of(const char *operation,
                                   td_device device)
{
    const td_device_table *table = NULL;
    if (device.kind == TD_DEVICE_CPU || device.kind > TD_DEVICE_CUDA)
        return td_fail(TD_ERROR_VALUE, operation, "no such device"),
               NULL;
    /* plugins: load the table of the device */
    table = td_load_cuda(operation);
    if (table == NULL)
        td_fail(TD_ERROR_UNSUPPORTED, operation,
                "device cuda is not available in this build");
    else if (device.index < 0 || device.index >= table->count())
        td_fail(TD_ERROR_VALUE, operation, "there is no device "
                "cuda:%d, this machine has %d", device.index,
                table->count());
    else
        return table;
    return NULL;
}

/* devices: function td_fetch */
const void *td_fetch(const td_tensor *x, int64_t at, size_t bytes,
                     void *here)
{
    const char *p = x->storage->data;
    const td_device device = x->storage->device;
    if (!td_has_values(x))
        return td_fail(TD_ERROR_RUNTIME, "item", "the tensor has no "
            "value: it was made while tracing, where only shapes are "
            "known"), NULL;
    p += x->offset * (int64_t)td_dtype_size(x->dtype) + at;
    if (device.kind == TD_DEVICE_CPU)
        return p;
    const td_device_table *table = td_table_of("item", device);
    return table && table->copy(device.index, here, p, bytes, 1)
         ? here : NULL;
}

/* devices: function pack */
static td_array pack_tensor(const td_tensor *x)
{
    td_array a = { .kind = TD_TENSOR, .dtype = x->dtype,
                   .rank = x->rank, .data = td_at(x) };
    memcpy(a.shape, x->shape, sizeof a.shape);
    memcpy(a.strides, x->strides, sizeof a.strides);
    return a;
}

static td_array pack(const td_value *value)
{
    const td_tensor *x = value->as.tensor;
    if (value->kind == TD_SCALAR)
        return (td_array){ .kind = TD_SCALAR,
                           .scalar = value->as.scalar };
    if (value->kind != TD_TENSOR)
        return (td_array){ .kind = TD_NONE };
    if (td_at_home(x) && x->rank == 0)
        return (td_array){ .kind = TD_SCALAR, .dtype = x->dtype,
                           .scalar = td_element(x, 0) };
    return pack_tensor(x);
}

/* devices: function td_compute_elsewhere */
bool td_compute_elsewhere(const td_call *call, const char *what,
                          td_dtype dtype, bool spread)
{
    td_array in[TD_MAX_PARAMETERS], out[TD_MAX_RESULTS];
    td_task task = { .what = what != NULL ? what : call->op->name,
                     .dtype = dtype, .n_in = call->n_in, .in = in,
                     .out = out, .n_attr = call->n_attr,
                     .attr = call->attr };
    if (td_self()->symbolic)
        return true;
    const td_device device = td_device_of(call->out[0]);
    const td_device_table *table = td_table_of(task.what, device);
    for (int k = 0; call->out[k] != NULL; k++)
        out[task.n_out++] = pack_tensor(call->out[k]);
    TD_EACH(i, call, in) {
        in[i] = pack(&call->in[i]);
        if (spread && in[i].kind == TD_TENSOR) {
            td_space s;
            /* devices: show it in the shape of the result */
            td_space_begin(&s, call->out[0], TD_ALL_DIMS);
            td_space_add(&s, call->in[i].as.tensor, TD_ALL_DIMS);
            in[i].rank = out[0].rank;
            memcpy(in[i].shape, out[0].shape, sizeof out[0].shape);
            memcpy(in[i].strides, s.stride[1], sizeof s.stride[1]);
        }
    }
    task.device = device.index;
    return table != NULL && !td_failed() && table->compute(&task);
}

/* devices: function copy_across */
static bool copy_across(td_tensor *out, const td_tensor *in)
{
    const td_device from = td_device_of(in), to = td_device_of(out);
    const bool up = from.kind == TD_DEVICE_CPU;
    const td_device there = up ? to : from;
    const td_device_table *table = td_table_of("copy_", there);
    const size_t size = td_dtype_size(out->dtype);
    return table != NULL
        && table->copy(there.index, td_at(out), td_at(in),
                       (size_t)td_numel(in) * size, up ? 0 : 1)
        && (!up || !in->storage->release
            || table->synchronise(there.index));
}

/* devices: function td_copy_elsewhere */
bool td_copy_elsewhere(td_tensor *out, const td_tensor *in)
{
    const td_device from = td_device_of(in), to = td_device_of(out);
    const bool number = from.kind == TD_DEVICE_CPU && in->rank == 0;
    const td_value operand = td_v_tensor((td_tensor *)in);
    if (td_self()->symbolic || td_numel(out) == 0)
        return true;
    if (td_same_device(from, to)
        || (number && to.kind != TD_DEVICE_CPU))
        return td_compute_elsewhere(
            &(td_call){ .op = &td_ops[TD_OP_copy_], .n_in = 1,
                        .in = &operand, .out = { out } },
            NULL, out->dtype, true);
    td_tensor *between, *there = NULL;
    bool ok;
    if (from.kind == TD_DEVICE_CPU || to.kind == TD_DEVICE_CPU) {
        /* devices: copy in steps */
        if (in->dtype == out->dtype && td_numel(in) == td_numel(out)
            && td_is_contiguous(in) && td_is_contiguous(out))
            return copy_across(out, in);
        between = td_copied(in, out->dtype);
        there = between ? td_tensor_new(td_shape_of(in), out->dtype, to) : NULL;
        ok = there != NULL && copy_across(there, between)
          && td_copy_elements(out, there);
    } else {
        between = td_copied_to(in, in->dtype,
                               TD_CPU);
        ok = between != NULL && td_copy_elsewhere(out, between);
    }
    td_discard(between);
    td_discard(there);
    return ok;
}

/* devices: function td_sent */
td_tensor *td_brought(td_tensor *x, td_device device)
{
    if (x == NULL || td_device_of(x).kind == device.kind)
        return x;
    return td_copied_to(x, x->dtype, device);
}

td_tensor *td_sent(td_tensor *made, td_device device)
{
    td_tensor *there = td_brought(made, device);
    if (there != made)
        td_discard(made);
    return there;
}

bool td_send_results(td_call *call, td_tensor *first)
{
    call->out[0] = first;
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        call->out[k] = td_failed() ? NULL : td_keep(td_sent(
            call->out[k], td_device_of(td_input(call, 0))));
    td_scope_end();
    return !td_failed();
}

/* devices: function td_meet */
static bool joins(const td_call *call, const td_tensor *x,
                  const td_tensor **first)
{
    if (x->storage->data == NULL && !td_self()->symbolic)
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "a tensor of "
                       "shape %s has no value: it was made while "
                       "tracing", td_shape_text(x, (char[192]){ "" }));
    const td_device here = x->storage->device;
    if (here.kind == TD_DEVICE_CPU && x->rank == 0)
        return true;
    if (*first == NULL)
        *first = x;
    const td_device there = (*first)->storage->device;
    if (td_same_device(here, there))
        return true;
    char text[2][TD_DEVICE_TEXT];
    return td_fail(TD_ERROR_RUNTIME, call->op->name, "expected all "
                   "tensors on one device, got %s and %s; move one "
                   "with to()", td_device_text(there, text[0]),
                   td_device_text(here, text[1]));
}
bool td_meet(const td_call *call)
{
    const td_tensor *first = NULL;
    if (td_is(call, copy_))
        return true;
    TD_EACH(i, call, in) {
        td_tensor *const *at;
        const int n = td_tensors_of(&call->in[i], &at);
        for (int k = 0; k < n; k++)
            if (!joins(call, at[k], &first))
                return false;
    }
    return true;
}
