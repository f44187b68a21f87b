/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "hooks": edit that, not this file. */
/* Inside the graph: what a node holds, and how nodes are made. */
#pragma once
#include <pthread.h>
#include "core/call.h"
#include "core/rule.h"

#define TD_TEXT 240
enum { TD_SLOT_POST = -1, TD_SLOT_NOTE = -2 };  /* of no result */
typedef _Atomic(struct td_hook_entry *) td_hook_list;

/* graph: struct td_saved */
typedef struct td_saved {
    td_tensor *tensor;          /* strong, or NULL: not saved */
    uint32_t version;
    int result;                 /* 0, or 1 + the slot of a result */
} td_saved;
/* graph: struct td_edge */
typedef struct td_edge {
    struct td_node *node;       /* strong: who made the operand */
    td_tensor *leaf;            /* strong: or the leaf that it is */
    int slot;                   /* which result of `node` it is */
    td_dtype dtype;
    td_device device;
    td_dims shape;
    td_scalar scalar;           /* the operand, if it was a number */
    td_saved saved;             /* the operand, if the rule needs it */
    struct td_sink *sink;       /* in a pass: where `leaf` collects */
    bool needed;                /* in a pass: a gradient goes here */
} td_edge;
/* graph: struct td_result */
typedef struct td_result {
    td_saved saved;             /* the result, if the rule needs it */
    _Atomic(td_tensor *) watcher;   /* weak: keeps its gradient */
} td_result;
/* graph: struct td_node */
struct td_node {
    td_object object;
    const td_op *op;            /* what ran; NULL: a custom function */
    struct td_custom *custom;   /* strong: that function, or NULL */
    int n_in, n_out, n_attr;
    bool released;              /* the rule has run, all is dropped */
    td_node *again;             /* strong: computes its result again */
    td_edge *in;                /* [n_in]  where gradients go */
    td_result *out;             /* [n_out] what they arrive for */
    td_value *attr;             /* [n_attr] copies */
    td_tensor **grad;           /* [n_out] during a pass: arrived */
    td_tensor **grad_in;        /* [n_in]  during a pass: to send */
    _Atomic(struct td_hook_entry *) hooks;
    /* backward: fields of td_node for one pass */
    _Atomic(struct td_pass *) pass; /* who has claimed this node */
    td_node *previous, *next;       /* neighbours among the claimed */
    td_node *below;                 /* next on the path, or the ready */
    int cursor;                     /* the edge to be looked at next */
    int pending;                    /* gradients still to come */
    bool visited;                   /* the walk has been here */
    bool captured;                  /* its gradient is itself asked for */
    bool runs;                      /* some operand needs a gradient */
};
/* hooks: struct td_custom */
typedef struct td_custom {
    td_object object;
    td_custom_backward *backward;
    void *context;
    td_frees *free_context;
    int n_saved;
    td_saved *saved;            /* [n_saved] */
    td_tensor **shown;          /* [n_saved] to the rule that runs */
    char name[48];
} td_custom;
/* graph: enumeration of rule kinds */
typedef enum {
    TD_RULE_UNKNOWN,        /* no row: an error if gradients need it */
    TD_RULE_FUNCTION,       /* RULE: one node, with this rule */
    TD_RULE_NONE,           /* NO_RULE: its results have no gradient */
    TD_RULE_COMPOSITE       /* COMPOSITE: calls operators with rules */
} td_rule_kind;
/* graph: struct td_rule_entry */
#define SAVES_INPUT(i) (UINT32_C(1) << (i))
#define SAVES_OUTPUT(k) (UINT32_C(1) << (16 + (k)))
#define SAVES_OTHER SAVES_INPUT(1), SAVES_INPUT(0)
#define MUTATES (UINT32_C(1) << 31)

enum { TD_MASKS = 7 };

typedef struct td_rule_entry {
    td_rule_kind kind;
    td_rule *apply;
    uint32_t saves[TD_MASKS];   /* for the gradient of each operand */
} td_rule_entry;
/* hooks: prototypes of the graph */
td_node *td_node_for(const td_call *call);  /* the caller's, or NULL */
/* Bytes that a value keeps elsewhere; a copy with those in `room`. */
size_t td_bytes_behind(const td_value *value);
td_value td_value_copy(const td_value *value, void *room);
td_kernel td_record_call, td_change_by_copy;
void td_follow_base(td_tensor *x);
void td_count_leaf_view(td_tensor *x, bool on);
bool td_any_requires_grad(const td_value *value);
bool td_wants_record(const td_call *call);
bool td_may_change(const td_call *call);

/* x; a view whose base was changed in place learns of it first */
static inline td_tensor *td_follow(td_tensor *x)
{
    if (x->base != NULL && x->seen != x->base->rebased)
        td_follow_base(x);
    return x;
}

static inline uint32_t td_version_of(const td_tensor *x)
{
    return (uint32_t)atomic_load_explicit(&x->storage->version,
                                          memory_order_acquire);
}
bool td_is_tensor(const char *operation, const td_tensor *x);
bool td_same_kind(const char *operation, const td_tensor *grad,
                  const td_tensor *x);
const char *td_kind_text(char text[TD_TEXT], const td_tensor *x);
void td_grad_mode_push(bool off);
void td_grad_mode_restore(int depth);
td_node *td_node_new(int n_in, int n_out, int n_attr, size_t room);
void td_node_drop(td_node *node);
void td_node_attach(td_tensor *x, td_node *node, int slot);
const char *td_node_name(const td_node *node);
void td_edge_connect(td_edge *edge, const td_tensor *x);
void td_save(td_saved *saved, td_tensor *x);
bool td_save_result(td_saved *saved, td_tensor *result, int slot);
td_tensor *td_unpack(const td_backward_pass *b, const td_saved *saved,
                     const char *role, int index);
bool td_call_hooks(td_hook_list *list, int slot, td_tensor **grad);
bool td_call_post_hooks(td_tensor *leaf);
void td_drop_hooks(td_hook_list *list);
void *td_note_of(td_hook_list *list);   /* a new reference, or NULL */
int64_t td_hang(td_hook_list *end, int slot, td_hook *call,
                void *context, td_frees *free_context);
td_rule td_custom_apply;
td_frees td_custom_drop;
pthread_mutex_t *td_lock(const void *object);   /* its lock, locked */
pthread_mutex_t *td_lock_leaves(void);          /* leaf_lock, locked */
td_node *td_hold_node(const td_tensor *x, int *slot);
td_tensor *td_hold_grad(const td_tensor *x);
bool td_swap_grad(td_tensor *x, td_tensor *old, td_tensor *new);
void td_watch(td_tensor *x, td_node *old, int slot);
td_tensor *td_hold_watcher(td_node *node, int slot);
extern td_rule_entry td_rules[];
const td_rule_entry *td_rule_of(const td_op *op);
uint32_t td_saves(const td_op *op, const td_call *call);
/* gradcheck: further prototypes of the graph */
/* The gradients of x[0..n), given v for y; zeros where none arrives. */
bool td_pull_back(td_tensor *y, td_tensor *v, int n,
                  td_tensor *const *x, td_tensor **pulled, bool record);
/* inspection: further prototypes of the graph */
void td_note_node(td_node *node);
bool td_inspect(td_node *node, bool ok);
td_acts td_forget_stop;
void td_look_at_result(td_tensor *x, td_node *node);
/* By the hooks that are set, or as `again`, which is then its own. */
void *td_pack(td_tensor *x, td_node *again);
bool td_is_packed(const void *saved);
td_tensor *td_unpack_by_hook(const td_backward_pass *b,
                             const td_saved *saved);
void td_note_recipe(td_node *node, const td_call *call);
td_node *td_again(const td_tensor *x);      /* the caller's, or NULL */
/* tracing: further prototypes of the graph */
typedef enum {
    TD_TRACE_KNOWN, TD_TRACE_READ, TD_TRACE_SET, TD_TRACE_STALE
} td_trace_use;

/* Where the open trace keeps the gradient of x, which is about to be
   used in this way; NULL: nowhere, or memory has ended. */
td_tensor **td_trace_slot(const td_tensor *x, td_trace_use use);
