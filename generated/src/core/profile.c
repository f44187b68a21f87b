/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "seeing": edit that, not this file. */
/* Events: what ran, from when to when, inside what. */
#include "core/runtime.h"
#include "core/call.h"
#include <time.h>

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}
/* seeing: function append_event */
/* name NULL: of memory, the block and its bytes. */
static bool append_event(const char *name, td_event_kind kind,
                         const void *block, int64_t bytes)
{
    td_runtime *p = td_process();
    td_thread *self = td_self();
    char place[4096];
    place[0] = '\0';
    if (name != NULL && p->profiled && p->profile_place != NULL)
        p->profile_place(place, sizeof place);
    pthread_mutex_lock(&p->profile_lock);
    if (p->profiled && p->events == p->event_room) {
        /* seeing: make room for more events */
        const int room = 2 * p->event_room + 1000;
        td_event *more = realloc(p->event, sizeof *more * (size_t)room);
        if (more != NULL) {
            p->event = more;
            p->event_room = room;
        } else
            p->profiled = 0;
    }
    const bool on = p->profiled != 0;
    if (on) {
        /* seeing: write down the event that begins */
        if (self->profile != p->profiles)
            self->event = -1;
        self->profile = p->profiles;
        td_event *e = &p->event[p->events];
        td_event *outer = self->event < 0 ? NULL : &p->event[self->event];
        *e = (td_event){ .kind = kind, .bytes = bytes, .outer = self->event,
                         .thread = (uintptr_t)pthread_self(),
                         .block = (uintptr_t)block };
        if (name != NULL) {
            /* seeing: name the event and stand in it */
            if (kind == TD_EVENT_FORWARD && outer != NULL
                && outer->kind != TD_EVENT_USER)
                e->kind = outer->kind == TD_EVENT_RULE ? TD_EVENT_BACKWARD
                                                       : outer->kind;
            e->total = -1;
            e->place = p->profile_place ? strdup(place) : NULL;
            e->name = strdup(name);
            if (e->name == NULL)
                p->profiled = 0;
            self->event = p->events;
        } else if (outer != NULL)
            outer->self_bytes += bytes;
        p->events++;
        e->start = now();
    }
    pthread_mutex_unlock(&p->profile_lock);
    return on;
}
/* seeing: function close_account */
static void close_account(td_event *event, td_event *e, int64_t end)
{
    /* self-time: exercise self-time */
    e->total = end - e->start;
    e->self += e->total;
    e->bytes += e->self_bytes;
    if (e->outer >= 0) {
        event[e->outer].self -= e->total;
        event[e->outer].bytes += e->bytes;
    }
    for (int k = e->outer; k >= 0 && !e->again; k = event[k].outer)
        e->again = event[k].kind == e->kind
                && strcmp(event[k].name, e->name) == 0;
}
/* seeing: functions that begin and end events */
bool td_event_begin(const char *name, td_event_kind kind)
{
    return append_event(name, kind, NULL, 0);
}

void td_event_memory(const void *block, int64_t bytes)
{
    append_event(NULL, TD_EVENT_MEMORY, block, bytes);
}
void td_event_end(void)
{
    td_runtime *p = td_process();
    td_thread *self = td_self();
    const int64_t end = now();
    pthread_mutex_lock(&p->profile_lock);
    if (p->profiled && self->profile == p->profiles
        && self->event >= 0) {
        td_event *e = &p->event[self->event];
        close_account(p->event, e, end);
        self->event = e->outer;
    }
    pthread_mutex_unlock(&p->profile_lock);
}
/* seeing: stage of the profile */
bool td_enter_event(td_call *call, td_plan *plan)
{
    (void)plan;
    td_event_begin(call->op->name, TD_EVENT_FORWARD);
    return true;
}

bool td_leave_event(td_call *call, bool ok)
{
    (void)call;
    td_event_end();
    return ok;
}
/* seeing: functions that begin and end a profile */
bool td_profile_begin(td_profile_options options)
{
    td_runtime *p = td_process();
    if (td_failed())
        return false;
    if (p->print_profile) {
        p->print_profile = false;
        td_profile_print(stderr);
    }
    pthread_mutex_lock(&p->profile_lock);
    const bool free = p->profiled == 0;
    if (free) {
        p->profiles++;
        p->profile_place = options.place;
        p->profile_memory = options.memory;
        p->profiled = true;
    }
    pthread_mutex_unlock(&p->profile_lock);
    return free || td_fail(TD_ERROR_RUNTIME, "profile",
                           "another profile is running");
}

td_event *td_profile_end(int *n)
{
    td_runtime *p = td_process();
    pthread_mutex_lock(&p->profile_lock);
    td_event *event = p->event;
    *n = p->events;
    const bool on = p->profiled != 0;
    p->profiled = 0;
    p->profile_memory = false;
    p->event = NULL;
    p->events = p->event_room = 0;
    pthread_mutex_unlock(&p->profile_lock);
    if (on)
        return event != NULL ? event : calloc(1, sizeof *event);
    td_profile_free(event, *n);
    td_fail(TD_ERROR_RUNTIME, "profile",
            "none is running, or it has run out of memory");
    return NULL;
}

void td_profile_free(td_event *event, int n)
{
    for (int i = 0; i < n; i++) {
        free(event[i].name);
        free(event[i].place);
    }
    free(event);
}
/* seeing: function td_profile_print */
static int by_self(const void *a, const void *b)
{
    const td_event *x = a, *y = b;
    return (x->self < y->self) - (x->self > y->self);
}

bool td_profile_print(FILE *out)
{
    int n, rows = 0;
    int64_t all = 0;
    td_event *event = td_profile_end(&n);
    if (event == NULL)
        return false;
    /* seeing: fold the events into rows */
    for (int i = 0; i < n; i++) {
        td_event e = event[i];
        int k = 0;
        if (e.kind == TD_EVENT_MEMORY || e.total < 0)
            continue;
        while (k < rows && (event[k].kind != e.kind
                            || strcmp(event[k].name, e.name) != 0))
            k++;
        if (k == rows) {
            event[i] = event[rows];
            event[rows++] = e;
            event[k].total = event[k].self = event[k].outer = 0;
        }
        event[k].total += e.again ? 0 : e.total;
        event[k].self += e.self;
        event[k].outer++;
        all += e.self;
    }
    qsort(event, (size_t)rows, sizeof *event, by_self);
    fprintf(out, "%-32s %12s %6s %12s %9s\n", "Name", "Self us",
            "%", "Total us", "Calls");
    for (const td_event *e = event; e < event + rows; e++)
        fprintf(out, "%-21.21s%-11s %12.1f %6.2f %12.1f %9d\n",
                e->name, e->kind == TD_EVENT_BACKWARD ? " (backward)"
                : "", (double)e->self / 1e3, (double)e->self * 100
                / (double)all, (double)e->total / 1e3, e->outer);
    td_profile_free(event, n);
    return true;
}
