/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "inspection": edit that, not this file. */
/* The operator that made the first NaN, and where it was called. */
#include "grad/autograd.h"
#include "core/runtime.h"
#include <treadle/treadle.h>

/* inspection: function td_note_node */
typedef struct td_note {
    td_object object;
    char by[48];        /* the operator, if its result is not finite */
    char text[];
} td_note;

static const td_class note_class = { "note", NULL, TD_COUNT_OTHERS };

void td_note_node(td_node *node)
{
    td_place *where = td_process()->where;
    char text[4096] = "";
    if (where == NULL)
        return;
    where(text, sizeof text);
    const size_t bytes = strlen(text) + 1;
    td_note *note = td_object_new_unscoped(&note_class,
                                           sizeof *note + bytes);
    if (note == NULL)
        return;
    memcpy(note->text, text, bytes);
    td_hang(&node->hooks, TD_SLOT_NOTE, NULL, note, td_release);
}
/* inspection: functions of anomaly mode */
void td_forget_stop(void)
{
    td_thread *self = td_self();
    td_release(self->stopped);
    td_release(self->blamed);
    self->stopped = NULL;
    self->blamed = self->first;
    self->first = NULL;
}

void td_set_anomaly(td_anomaly mode, td_place *where)
{
    td_forget_stop();
    td_process()->where = where;
    td_process()->anomaly = mode;
}

td_anomaly td_anomaly_mode(void)
{
    return (td_anomaly)td_process()->anomaly;
}

const char *td_anomaly_where(void)
{
    const td_note *note = td_self()->stopped;
    return note ? note->text : NULL;
}

const char *td_anomaly_first(const char **where)
{
    const td_note *note = td_self()->blamed;
    *where = note ? note->text : NULL;
    return note ? note->by : NULL;
}
/* inspection: function td_inspect */
static bool has_nan(td_tensor *x, bool or_infinity)
{
    const td_reduce_options all = TD_DEFAULTS;
    td_no_grad_begin();
    td_scope_begin();
    const double sum = td_item_double(td_sum(x, all));
    bool found = or_infinity ? !isfinite(sum) : isnan(sum);
    if (found) {
        x = or_infinity ? td_sub(x, x) : x;
        td_tensor *any = td_any(td_isnan(x), all);
        found = any != NULL && td_item_double(any) != 0;
    }
    td_scope_end();
    td_no_grad_end();
    return found;
}
void td_look_at_result(td_tensor *x, td_node *node)
{
    td_thread *self = td_self();
    if (self->first != NULL || self->watched
        || td_anomaly_mode() != TD_ANOMALY_NAN || !has_nan(x, true))
        return;
    self->first = td_note_of(&node->hooks);
    if (self->first != NULL)
        snprintf(self->first->by, sizeof self->first->by, "%s",
                 td_node_text(node));
}
bool td_inspect(td_node *node, bool ok)
{
    td_thread *self = td_self();
    const bool nan = td_anomaly_mode() == TD_ANOMALY_NAN;
    for (int i = 0; nan && ok && i < node->n_in; i++)
        if (node->grad_in[i] && has_nan(node->grad_in[i], false))
            ok = td_fail(TD_ERROR_RUNTIME, "backward", "Function '%s' "
                         "returned nan values in its %dth output.",
                         td_node_text(node), i);
    td_release(self->stopped);
    self->stopped = ok ? NULL : td_note_of(&node->hooks);
    return ok && !td_failed();
}
