/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "functional": edit that, not this file. */
/* Derivatives as functions, anomaly mode, and saved tensors elsewhere.

       static td_tensor *f(void *context, td_tensor *const *in)
       {
           return td_sum(td_mul(in[0], in[0]), ...);
       }
       ...
       td_tensor *h;
       td_hessian(f, NULL, 1, &x, &h);     (2, 0; 0, 2)

   Inputs may require gradients or not, and keep theirs as they are.
   Results belong to the scope and are not recorded. */
#pragma once
#include <treadle/gradcheck.h>

/* functional: prototypes of derivatives as functions */
/* f(in); pulled[i] is v times the Jacobian by input i. */
TD_API td_tensor *td_vjp(td_check_function *f, void *context, int n_in,
                         td_tensor *const *in, td_tensor *v,
                         td_tensor **pulled);
/* f(in); *pushed is the Jacobian times the directions t[n_in]. */
TD_API td_tensor *td_jvp(td_check_function *f, void *context, int n_in,
                         td_tensor *const *in, td_tensor *const *t,
                         td_tensor **pushed);
typedef bool td_derives(td_check_function *f, void *context, int n_in,
                        td_tensor *const *in, td_tensor **blocks);
/* blocks[n_in]: the shape of f(in), then that of the input. */
TD_API td_derives td_jacobian;
/* blocks[n_in * n_in], for a result of one element. */
TD_API td_derives td_hessian;

/* inspection: prototypes of anomaly mode */
typedef enum {
    TD_ANOMALY_OFF,
    TD_ANOMALY_NOTE,        /* nodes note where they were made */
    TD_ANOMALY_NAN          /* and a NaN in a gradient is an error */
} td_anomaly;

/* Writes where the program is; longer text is cut off. */
typedef void td_place(char *text, size_t room);

/* For the whole process.  `where` may be NULL: no notes. */
TD_API void td_set_anomaly(td_anomaly mode, td_place *where);
TD_API td_anomaly td_anomaly_mode(void);

/* Where the operator was recorded at whose rule the last pass of this
   thread stopped; NULL if that is unknown. */
TD_API const char *td_anomaly_where(void);

/* Which operator made the first result that was not finite before that
   pass, and where; NULL if none did. */
TD_API const char *td_anomaly_first(const char **where);

/* inspection: prototypes of saved tensor hooks */
typedef struct td_saved_hooks {
    /* What to keep for x, a detached alias; NULL after td_fail. */
    void *(*pack)(void *context, td_tensor *x);
    /* A reference to the tensor again; NULL after td_fail. */
    td_tensor *(*unpack)(void *context, void *packed);
    td_frees *free_packed;
    void *context;
    td_frees *free_context;
} td_saved_hooks;

/* For operators that this thread records until the end.  They nest;
   the innermost pair packs. */
TD_API bool td_saved_hooks_begin(td_saved_hooks hooks);
TD_API td_acts td_saved_hooks_end;
