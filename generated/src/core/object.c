/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
#include "core/runtime.h"

/* memory: listing objects */
/* memory: functions that link and unlink */
static void enter_scope(td_object *object, td_scope *scope)
{
    object->next = scope->first;
    object->link = &scope->first;
    if (object->next != NULL)
        object->next->link = &object->next;
    scope->first = object;
    atomic_store_explicit(&object->scope, scope, memory_order_relaxed);
}
static void leave_scope(td_object *object)
{
    if (object->link == NULL)
        return;
    *object->link = object->next;
    if (object->next != NULL)
        object->next->link = object->link;
    object->next = NULL;
    object->link = NULL;
    atomic_store_explicit(&object->scope, NULL, memory_order_relaxed);
}
/* memory: function scope_at */
static td_object barrier;

static td_scope *scope_at(td_thread *self, int level)
{
    const int top = level < TD_SCOPE_DEPTH ? level : TD_SCOPE_DEPTH;
    td_scope *scope = top > 0 ? &self->scope[top - 1] : NULL;
    return scope && scope->first != &barrier ? scope : NULL;
}
/* memory: function is_beyond */
static bool is_beyond(const td_thread *self)
{
    return self->depth > TD_SCOPE_DEPTH;
}
/* memory: function home_of */
static td_scope *home_of(td_object *object)
{
    return atomic_load_explicit(&object->scope, memory_order_relaxed);
}

static bool is_at_home(td_thread *self, td_object *object)
{
    const uintptr_t home = (uintptr_t)home_of(object);
    return home - (uintptr_t)self->scope < sizeof self->scope;
}

/* memory: making, holding and releasing objects */
/* memory: function td_object_new_unscoped */
void *td_object_new_unscoped(const td_class *class, size_t bytes)
{
    td_process();                   /* its start may find an error */
    td_object *object = td_failed() ? NULL : td_alloc(bytes);
    if (object == NULL)
        return NULL;
    object->class = class;
    object->bytes = bytes;
    atomic_init(&object->count, 1);
    td_count(class->counted_as, 1);
    return object;
}

/* memory: function td_object_new */
void *td_object_new(const td_class *class, size_t bytes)
{
    td_thread *self = td_self();
    td_object *object = td_object_new_unscoped(class, bytes);
    td_scope *scope = scope_at(self, self->depth);
    if (object != NULL && scope != NULL)
        enter_scope(object, scope);
    return object;
}

/* memory: function td_object_count */
int64_t td_object_count(const void *object)
{
    const td_object *o = object;
    return atomic_load_explicit(&o->count, memory_order_acquire);
}

/* memory: function td_retain */
void *td_retain(void *object)
{
    td_object *o = object;
    if (o != NULL)
        atomic_fetch_add_explicit(&o->count, 1, memory_order_relaxed);
    return object;
}

void *td_retain_alive(void *object)
{
    td_object *o = object;
    int count = o ? atomic_load_explicit(&o->count,
                                         memory_order_acquire) : 0;
    while (count > 0)
        if (atomic_compare_exchange_weak(&o->count, &count, count + 1))
            return object;
    return NULL;
}

/* memory: function bury */
static void bury(td_object *object)
{
    /* burial: exercise burial */
    td_thread *self = td_self();
    leave_scope(object);
    object->next = self->dying;
    self->dying = object;
    if (self->burying)
        return;
    self->burying = true;
    while (self->dying != NULL) {
        td_object *dead = self->dying;
        const td_class *class = dead->class;
        self->dying = dead->next;
        if (class->destroy != NULL)
            class->destroy(dead);
        td_free(dead, dead->bytes);
        td_count(class->counted_as, -1);
    }
    self->burying = false;
}

/* memory: function td_release */
void td_release(void *object)
{
    td_object *o = object;
    if (o != NULL
        && atomic_fetch_sub_explicit(&o->count, 1,
                                     memory_order_acq_rel) == 1)
        bury(o);
}

/* memory: opening and closing scopes */
/* memory: function open_level */
static void open_level(const char *operation, td_object *first)
{
    td_thread *self = td_self();
    self->depth++;
    if (is_beyond(self))
        td_fail(TD_ERROR_RUNTIME, operation,
                "scopes nest at most %d deep", TD_SCOPE_DEPTH);
    else
        self->scope[self->depth - 1].first = first;
}

/* memory: function close_level */
static void close_level(td_thread *self)
{
    td_scope *scope = scope_at(self, self->depth);
    const bool empty = scope == NULL || is_beyond(self);
    while (!empty && scope->first != NULL) {
        td_object *object = scope->first;
        leave_scope(object);
        td_release(object);
    }
    self->depth--;
}

/* memory: functions that open and close scopes */
void td_scope_begin(void)
{
    open_level("scope_begin", NULL);
}

void td_scope_end(void)
{
    td_thread *self = td_self();
    if (is_beyond(self) || scope_at(self, self->depth) != NULL)
        close_level(self);
    else
        td_fail(TD_ERROR_RUNTIME, "scope_end", "no scope is open");
}
void td_scope_barrier_begin(void)
{
    open_level("scope_barrier_begin", &barrier);
}

/* memory: function td_scope_barrier_end */
void td_scope_barrier_end(void)
{
    td_thread *self = td_self();
    while (!is_beyond(self) && scope_at(self, self->depth) != NULL)
        close_level(self);
    if (self->depth > 0)
        self->depth--;
    else
        td_fail(TD_ERROR_RUNTIME, "scope_barrier_end",
                "no barrier is open");
}

/* memory: function td_free_context */
void td_free_context(td_frees *release, void *context)
{
    td_error_record pending;
    if (release == NULL)
        return;
    td_error_take(&pending);
    td_scope_barrier_begin();
    release(context);
    td_scope_barrier_end();
    td_error_clear();
    td_error_restore(&pending);
}

/* memory: function td_scope_unwind */
void td_scope_unwind(td_thread *self)
{
    while (self->depth > 0)
        close_level(self);
}

/* memory: moving objects between scopes */
/* memory: struct loan */
typedef struct {
    td_object object;
    td_object *of;
} loan;

TD_CLASS(loan, loan, l)
{
    td_release(l->of);
    td_self()->loans--;
}

/* memory: function move_outward */
static bool move_outward(td_thread *self, td_object *object)
{
    td_scope *from = scope_at(self, self->depth);
    td_object *moved = object;
    /* memory: find what stands for the object */
    if (from == NULL || is_beyond(self))
        return false;
    if (home_of(object) != from)
        moved = self->loans > 0 ? from->first : NULL;
    while (moved != NULL && moved != object
           && !(moved->class == &loan_class
                && ((loan *)moved)->of == object))
        moved = moved->next;
    if (moved == NULL)
        return false;
    td_scope *to = scope_at(self, self->depth - 1);
    leave_scope(moved);
    if (to != NULL)
        enter_scope(moved, to);
    else if (moved != object)
        /* memory: turn the loan into the caller's reference */
        {
            ((loan *)moved)->of = NULL;
            td_release(moved);
        }
    return true;
}

/* memory: function td_keep */
void *td_keep(void *object)
{
    if (object != NULL)
        move_outward(td_self(), object);
    return object;
}

/* memory: function lend */
static void *lend(td_thread *self, td_object *object)
{
    loan *paper = td_object_new(&loan_class, sizeof *paper);
    if (paper == NULL) {
        td_release(object);
        return NULL;
    }
    paper->of = object;
    self->loans++;
    return object;
}

/* memory: function td_adopt */
void *td_adopt(void *object)
{
    td_thread *self = td_self();
    td_scope *scope = scope_at(self, self->depth);
    if (object == NULL || scope == NULL)
        return object;
    if (is_at_home(self, object))
        /* memory: drop a reference the scope does not need */
        {
            if (td_object_count(object) > 1)
                td_release(object);
        }
    else if (td_object_count(object) == 1)
        enter_scope(object, scope);
    else
        return lend(self, object);
    return object;
}

/* memory: function td_share */
void *td_share(void *object)
{
    td_thread *self = td_self();
    if (object == NULL || td_failed())
        return NULL;
    if (scope_at(self, self->depth) && is_at_home(self, object))
        return object;
    return td_adopt(td_retain(object));
}

/* memory: function td_discard */
void td_discard(void *object)
{
    td_thread *self = td_self();
    if (scope_at(self, self->depth) == NULL)
        td_release(object);
}

/* memory: function td_scope_end_with */
void *td_scope_end_with(void *result)
{
    void *kept = td_failed() ? NULL : result;
    if (kept != NULL && !move_outward(td_self(), kept))
        /* memory: end the scope and share a stranger */
        {
            td_retain(kept);
            td_scope_end();
            void *shared = td_share(kept);
            td_release(kept);
            return shared;
        }
    td_scope_end();
    return kept;
}
