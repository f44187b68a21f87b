/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* Where the library keeps state: one td_runtime in the process and one
   td_thread in each thread.  Nothing else is global.

   Chapters add fields as they need them, so every prefix of the book
   has the state it uses and no more.  td_process() starts the runtime
   once; what runs inside that start must not call it again.

       td_thread *self = td_self();
       self->depth++;                   // nobody else can see it
       td_runtime *process = td_process();
       process->threads = 2;            // everybody can: atomic */
#pragma once
/* memory: runtime includes */
#include "core/error.h"
#include "core/memory.h"
#include "core/object.h"
/* runtime: runtime includes */
#include <pthread.h>
/* parallel: runtime includes */
#include "core/parallel.h"
/* rows: runtime includes */
/* The highest level this processor runs, and what TREADLE_ISA asks. */
int td_isa_start(void);
/* random: runtime includes */
#include <treadle/random.h>
/* graph: runtime includes */
enum { TD_HANDLE_LOCKS = 32 };
#define TD_GRAD_DEPTH 1024      /* grad modes nest so deep */
/* plugins: runtime includes */
#include <treadle/plugin.h>
/* seeing: runtime includes */
#include <treadle/profile.h>
void td_event_memory(const void *block, int64_t bytes);

/* memory: struct td_thread */
typedef struct td_thread {
    struct td_thread *next;             /* all there ever were */
    atomic_bool taken;                  /* by a living thread */
    /* memory: fields that outlive a thread */
    _Atomic(int64_t) count[TD_COUNTS];  /* written by that thread */
    int64_t most;                       /* gathered bytes at one time */
    td_block *spare[TD_SMALL];          /* the pocket */
    /* memory: td_thread fields */
    td_error_record error;          /* code TD_OK: none is pending */
    td_object *dying;               /* counts of zero, not yet destroyed */
    bool burying;                   /* a td_release below us works it off */
    td_scope scope[TD_SCOPE_DEPTH];
    int depth;                      /* scopes and barriers open */
    int loans;                      /* of them in all these scopes */
    /* parallel: td_thread fields */
    int looping;                    /* loops this thread works in */
    int serial;                     /* td_serial_begin not yet ended */
    void *scratch;                  /* see td_scratch */
    size_t scratch_bytes;
    /* devices: td_thread fields */
    bool symbolic;                  /* shapes only: nothing computes */
    bool watched;                   /* all steps go through the door */
    /* random: td_thread fields */
    td_random_state random;
    bool random_seeded;
    /* graph: td_thread fields */
    bool grad_modes[TD_GRAD_DEPTH]; /* of the modes open: off */
    int grad_depth;                 /* modes open */
    bool grad_off;                  /* the innermost, ready to read */
    int muted;                      /* recorded operators running */
    /* hooks: td_thread fields */
    char grad_fn_name[80];          /* answer of td_grad_fn_name */
    /* inspection: td_thread fields */
    struct td_note *stopped;        /* of the node where a pass stopped */
    struct td_note *first, *blamed; /* not finite: since it, before it */
    struct td_packer *packer;       /* innermost pair of saving hooks */
    /* tracing: td_thread fields */
    struct td_trace *trace;         /* what is being recorded, or NULL */
    td_asks *reads;                 /* of a symbolic one, or NULL */
    /* precision: td_thread fields */
    td_dtype autocast;              /* halves for products, or none */
    /* seeing: td_thread fields */
    int profile, event;             /* of this profile, innermost open */
} td_thread;

/* memory: struct td_runtime */
typedef struct td_runtime {
    /* memory: td_runtime fields */
    atomic_bool running;
    _Atomic(int64_t) fail_in;       /* 0: never; n: the n-th fails */
    _Atomic(td_thread *) all_threads;
    _Atomic(int64_t) count[TD_COUNTS], peak_bytes;
    pthread_mutex_t memory_lock;
    td_block *spare[TD_CLASSES];    /* shared by all threads */
    _Atomic(int64_t) limit;         /* of their bytes */
    bool plain;                     /* keep nothing, round nothing */
    /* runtime: td_runtime fields */
    pthread_key_t key;              /* calls leave_thread when one ends */
    /* parallel: td_runtime fields */
    td_pool pool;
    atomic_int executor, threads;
    atomic_bool deterministic, forked;
    /* tensors: td_runtime fields */
    atomic_int default_dtype;       /* 0: float32 */
    /* printing: td_runtime fields */
    _Atomic(int64_t) print[5];      /* options of printing, plus 2 */
    /* rows: td_runtime fields */
    atomic_int isa;                 /* number of the level in use */
    /* random: td_runtime fields */
    _Atomic uint64_t threads_that_drew;
    /* graph: td_runtime fields */
    pthread_mutex_t handle_locks[TD_HANDLE_LOCKS];
    /* backward: td_runtime fields */
    pthread_mutex_t leaf_lock;      /* sinks, sums of leaves, hooks */
    /* hooks: td_runtime fields */
    _Atomic(int64_t) last_hook;     /* id of the newest hook */
    /* inspection: td_runtime fields */
    atomic_int anomaly;                         /* a td_anomaly */
    _Atomic(void (*)(char *, size_t)) where;    /* a td_place, or NULL */
    /* plugins: td_runtime fields */
    pthread_mutex_t cuda_lock;
    _Atomic(const td_device_table *) cuda;  /* once loaded */
    td_device_table cuda_table;
    /* linalg: td_runtime fields */
    _Atomic(void *) lapack;         /* once opened */
    /* seeing: td_runtime fields */
    atomic_bool profiled, profile_memory;
    pthread_mutex_t profile_lock;   /* of what follows */
    td_place *profile_place;
    td_event *event;
    int events, event_room, profiles;
    bool print_profile;             /* at exit */
} td_runtime;

/* memory: prototypes of the runtime */
#define TD_HIDDEN __attribute__((visibility("hidden")))
extern TD_HIDDEN _Thread_local td_thread *td_thread_place
    __attribute__((tls_model("initial-exec")));
extern TD_HIDDEN td_runtime td_process_state;
td_thread *td_thread_begin(void);
void td_pocket_empty(td_thread *self);
td_acts td_process_start;

static inline td_thread *td_self(void)
{
    td_thread *self = td_thread_place;
    return self != NULL ? self : td_thread_begin();
}

static inline td_runtime *td_process(void)
{
    if (!atomic_load_explicit(&td_process_state.running,
                              memory_order_acquire))
        td_process_start();
    return &td_process_state;
}
void td_scope_unwind(td_thread *self);
/* runtime: prototypes of starting and stopping */
td_acts td_runtime_stop;
int td_environment_int(const char *name, int low, int high,
                       int otherwise);
int td_environment_choice(const char *name, const char *words,
                          int otherwise);
/* Which of words text is; `otherwise` if NULL, and with an error if
   none of them. */
int td_choose(td_error_code code, const char *name, const char *text,
              const char *words, int otherwise);
