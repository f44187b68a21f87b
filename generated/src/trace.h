/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tracing": edit that, not this file. */
/* What the door calls while a trace is open. */
#ifndef TREADLE_SRC_TRACE_H
#define TREADLE_SRC_TRACE_H
#include <treadle/op.h>

int td_trace_enter(const td_call *call);    /* 0: nothing to leave */
bool td_trace_leave(td_call *call, int level, bool ok);

/* The gradient of x is about to be set; false if memory ends. */
bool td_trace_gradient(td_tensor *x);
#endif
