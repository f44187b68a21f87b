/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
/* Gradients: operators on tensors that require one are recorded, and
   td_backward walks the record.

   A leaf is a tensor that you made; gradients collect in leaves.  The
   record of a pass is freed while the pass runs, unless retain_graph or
   create_graph is set.  Grad mode belongs to a thread.

   Threads: any number may record and run passes over graphs of their
   own that share leaves; each gradient is added once.  Two passes over
   one graph at once are an error.  Gradients, hooks and requires_grad
   of one tensor may be read, set and cleared by several threads: who
   comes last wins, and every reference stays valid.  What is not
   promised are the elements of a tensor that one thread writes while
   another reads it, and a tensor whose shape or data is exchanged
   while another thread uses it.

       td_tensor *x = td_full(TD_DIMS(2), td_float(3),
                      (td_tensor_options){ .requires_grad = true });
       td_tensor *y = td_sum(td_mul(x, x),
                             (td_reduce_options)TD_DEFAULTS);
       td_backward(y, (td_backward_options)TD_DEFAULTS);
       td_tensor *g = td_grad_of(x);       (6, 6)
*/
#pragma once
#include <treadle/op.h>

/* graph: prototypes of gradient properties */
TD_API td_asks td_requires_grad, td_is_leaf;
TD_API td_tensor *td_set_requires_grad(td_tensor *x, bool on);

/* The gradient collected so far, or NULL: a new reference, which the
   scope or the caller owns. */
TD_API td_tensor *td_grad_of(const td_tensor *x);
TD_API bool td_set_grad(td_tensor *x, td_tensor *grad);
TD_API td_of_one td_detach;
TD_API td_tensor *td_base(const td_tensor *x);      /* borrowed of x */

/* Like td_detach, but changes of the result are not noticed by graphs
   that saved `x`: the caller answers for them. */
TD_API td_of_one td_data_of;
TD_API const char *td_grad_fn_name(const td_tensor *x);
TD_API int td_output_nr(const td_tensor *x);

/* graph: prototypes of the passes */
typedef struct td_backward_options {
    td_tensor *gradient;    /* NULL: one, for a root of one element */
    bool retain_graph;      /* keep the nodes for another pass */
    bool create_graph;      /* record the pass: second derivatives */
    td_tensor *const *inputs;   /* add to these only; NULL: to leaves */
    int n_inputs;
} td_backward_options;

typedef struct td_grad_options {
    td_tensor *const *grad_outputs;     /* one an output; or NULL */
    bool retain_graph, create_graph;
    bool allow_unused;      /* NULL, not an error, where none arrives */
    bool inputs_end;        /* the graph goes on behind none of them */
} td_grad_options;

TD_API bool td_backward(td_tensor *root, td_backward_options options);

/* The same from several roots, in one pass.  options.gradient is not
   read; gradients[i] is that of root i, or NULL, and so may be all. */
TD_API bool td_backward_all(td_tensor *const *roots, int n,
                            td_tensor *const *gradients,
                            td_backward_options options);
TD_API bool td_grad(td_tensor *const *outputs, int n_outputs,
                    td_tensor *const *inputs, int n_inputs,
                    td_tensor **results, td_grad_options options);

/* Whether the outputs depend on a leaf that is not among the inputs. */
TD_API bool td_leads_beyond(td_tensor *const *outputs, int n_outputs,
                            td_tensor *const *inputs, int n_inputs);

/* graph: prototypes of the grad mode */
TD_API td_acts td_no_grad_begin, td_no_grad_end,
    td_enable_grad_begin, td_enable_grad_end;
TD_API bool td_grad_enabled(void);

/* graph: prototypes of hooks */
/* NULL, or a reference to what shall stand for grad: of its shape,
   dtype and device, or the pass fails.  It also fails with the error
   that the hook leaves pending; then the graph is released, and what
   leaves have collected is valid but unspecified.  What a hook makes is
   its own. */
typedef td_tensor *td_hook(void *context, td_tensor *grad);
typedef int64_t td_registers(td_tensor *x, td_hook *hook,
                             void *context, td_frees *free_context);
TD_API td_registers td_register_hook;
/* The hook sees the leaf x itself, after x has got its gradient. */
TD_API td_registers td_register_post_hook;
TD_API bool td_remove_hook(td_tensor *x, int64_t id);
TD_API bool td_has_hook(const td_tensor *x, int64_t id);
TD_API bool td_retain_grad(td_tensor *x);
TD_API td_asks td_retains_grad;

/* graph: prototypes of nodes */
typedef struct td_node td_node;
typedef struct td_next {        /* where one gradient of a node goes */
    td_node *node;              /* a new reference, or NULL */
    td_tensor *leaf;            /* a new reference, or NULL */
    int slot;                   /* which result of `node` */
} td_next;

TD_API td_node *td_grad_fn(const td_tensor *x); /* a new reference */
TD_API const char *td_node_text(const td_node *node);
TD_API int td_node_count(const td_node *node);
TD_API td_next td_node_next(const td_node *node, int i);

/* graph: prototypes of custom functions */
typedef struct td_custom_call {
    int n_out;
    td_tensor *const *grad_out; /* NULL where no gradient arrived */
    int n_in;
    const bool *needs;          /* which gradients are asked for */
    td_tensor **grad_in;        /* to be filled with owned references */
    int n_saved;
    td_tensor *const *saved;    /* as given to td_save_for_backward */
} td_custom_call;

/* May fill any of grad_in; what is not needed is released.  A gradient
   must sum to the shape of its operand and is brought to its dtype; any
   other is the error of the pass.  So is false, with the error that is
   pending or, if none is, one that names the function.  An error left
   pending counts as false. */
typedef bool td_custom_backward(void *context, td_custom_call *call);

/* The results (NULL: without gradient) must be new: computed with
   recording off, each given once, none of them recorded already.  An
   operand may be a result if it was changed in place and may be.  The
   context is taken over, also by a call that fails. */
TD_API bool td_record_custom(const char *name,
                             int n_in, td_tensor *const *in,
                             int n_out, td_tensor *const *out,
                             td_custom_backward *backward,
                             void *context,
                             td_frees *free_context);
TD_API bool td_save_for_backward(td_tensor *output, int n,
                                 td_tensor *const *tensors);
TD_API bool td_op_differentiable(const td_op *op);
