/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tracing": edit that, not this file. */
/* Traces, programs and what compiles them.

   A trace records the operators that this thread runs.  While it is
   symbolic nothing is computed: tensors made then have shapes and no
   values.  The program it ends in runs again and again.

       td_trace_begin(true);
       td_tensor *x = td_trace_input(TD_DIMS(16, 10), TD_FLOAT32, cpu);
       td_tensor *y = td_linear(x, w, b);
       td_program *p = td_trace_end(&y, 1);
       td_compile_options best = TD_DEFAULTS;
       td_executable *e = td_compile(p, best);
       td_execute(e, &data, 1, &y); */
#pragma once
#include <treadle/tensor.h>

typedef struct td_program td_program;           /* objects: */
typedef struct td_executable td_executable;     /* td_release them */

typedef struct {
    const char *backend;    /* NULL: the best that works here */
    const char *name;       /* of the program in a profile, or NULL */
} td_compile_options;

/* tracing: prototypes of tracing */
/* Starts to record; what was being recorded goes on after the end. */
TD_API bool td_trace_begin(bool symbolic);

/* An argument of the program being traced; symbolic: without values. */
TD_API td_tensor *td_trace_input(td_dims shape, td_dtype dtype,
                                 td_device device);

/* Ends the newest trace, also when an error is pending (then NULL).
   The program returns the n outputs; tensors it did not make are
   captured: kept alive, read at each run, and written if the trace
   changed them; their gradients are left as the trace left them. */
TD_API td_program *td_trace_end(td_tensor *const *outputs, int n);

/* Between the two, this thread computes as if no trace were open. */
typedef struct {
    void *trace;
    bool symbolic, watched;
} td_suspended;

TD_API td_suspended td_trace_suspend(void);
TD_API void td_trace_resume(td_suspended s);

/* The program as text; returns its length, like snprintf. */
TD_API int64_t td_program_print(const td_program *p, char *buffer,
                                int64_t capacity);

/* The program of such a text; captured values become inputs. */
TD_API td_program *td_program_parse(const char *text);

/* Values defined once and before use, types as the operators say. */
TD_API bool td_program_verify(const td_program *p);
typedef int td_program_count(const td_program *p);
TD_API td_program_count td_program_inputs, td_program_outputs,
    td_program_steps;

/* Interprets the program; outputs are new tensors.  Captured tensors
   and gradients are written after the last step, or not at all. */
TD_API bool td_program_run(td_program *p, td_tensor *const *inputs,
                           int n, td_tensor **outputs);

/* Whether captured tensors still have the type, shape, need and
   presence of a gradient that the trace met; if not, it is no use. */
TD_API bool td_program_holds(td_program *p);

/* Whether only its function will do: the program writes to memory that
   these inputs share, with each other or with what was captured, and it
   reads all of them as they were; an input has a gradient or gaps,
   which inputs of a trace have not; the trace met what no program can
   leave, or td_program_holds a change of numbers that it looked at. */
TD_API bool td_program_overlaps(const td_program *p,
                                td_tensor *const *inputs, int n);

/* TD_ERROR_VALUE for an unknown back end, its own error if it fails. */
TD_API td_executable *td_compile(td_program *p,
                                 td_compile_options options);
TD_API bool td_execute(td_executable *e, td_tensor *const *inputs,
                       int n, td_tensor **outputs);
TD_API const char *td_executable_backend(const td_executable *e);

/* Why no better back end was taken; empty if the first one was. */
TD_API const char *td_executable_note(const td_executable *e);

/* What runs, as text for readers; returns its length, like snprintf. */
TD_API int64_t td_executable_print(const td_executable *e, char *buffer,
                                   int64_t capacity);
