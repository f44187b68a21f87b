/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: leak */
/* A test that asks anything whether it leaves more behind. */
#pragma once
#include <treadle/treadle.h>

/* leak: function leaks */
enum { WARM_UP = 8, ROUNDS = 24 };

/* Whether calls of `work` leave more behind, the more there are. */
static inline bool leaks(void (*work)(void *context), void *context)
{
    /* planted-cycle: exercise planted-cycle */
    td_memory_info before = td_memory_stats();
    for (int call = 0; call < WARM_UP + ROUNDS; call++) {
        if (call == WARM_UP)
            before = td_memory_stats();
        td_scope_begin();
        work(context);
        td_scope_end();
        td_error_clear();
    }
    const td_memory_info after = td_memory_stats();
    return after.live_tensors > before.live_tensors
        || after.live_nodes > before.live_nodes
        || after.live_objects > before.live_objects
        || after.bytes > before.bytes;
}
