/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "seeing": edit that, not this file. */
/* Where time and memory go.

       td_profile_begin((td_profile_options)TD_DEFAULTS);
       train();
       td_profile_print(stdout);
*/
#pragma once
#include <stdio.h>
#include <treadle/functional.h>

/* seeing: struct td_event */
typedef enum {
    TD_EVENT_FORWARD,
    TD_EVENT_BACKWARD,          /* an operator that a rule calls */
    TD_EVENT_RULE,
    TD_EVENT_USER,
    TD_EVENT_MEMORY
} td_event_kind;

typedef struct td_event {
    char *name, *place;         /* place NULL: nobody asked */
    int64_t start, total;       /* ns; total < 0: it has not ended */
    int64_t self;               /* of the total, in no inner event */
    int64_t bytes, self_bytes;  /* taken minus given back */
    td_event_kind kind;
    bool again;                 /* inside an event of its own name */
    int outer;                  /* its number, or -1 */
    uintptr_t thread, block;    /* block: the memory's, by its kind */
} td_event;

/* seeing: prototypes of the profile */
typedef struct {
    bool memory;                /* what is taken and given back, too */
    td_place *place;            /* or NULL: places are not noted */
} td_profile_options;

TD_API bool td_profile_begin(td_profile_options options);

/* The events until now, *n of them, outer before inner ones; they are
   the caller's, who frees them. */
TD_API td_event *td_profile_end(int *n);
TD_API void td_profile_free(td_event *event, int n);

/* Ends the profile and prints a row for each name. */
TD_API bool td_profile_print(FILE *out);

/* An event of one's own, TD_EVENT_USER, inside the innermost that
   this thread has begun and not ended; false: nothing is recorded. */
TD_API bool td_event_begin(const char *name, td_event_kind kind);
TD_API td_acts td_event_end;
