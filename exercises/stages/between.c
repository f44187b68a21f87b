/* The way of a call with stages of the check's own in place of the library's: what
   stands in the hole is compiled here once more, and what it calls is written down. */
#define td_run          run_of_the_check
#define td_note_view    note_view_of_the_check
#define td_open_parts   enter_0
#define td_close_parts  leave_0
#define td_mute         enter_1
#define td_unmute       leave_1
#define td_record_results leave_2
#define td_begin_change enter_3
#define td_end_change   leave_3
#define td_trace_enter  enter_4
#define td_trace_leave  leave_4
#define td_enter_event  enter_5
#define td_leave_event  leave_5
#include "core/call.c"

const int stages_of_the_check = TD_STAGE_COUNT;

bool pass_between(td_call *call, unsigned set, td_kernel *kernel)
{
    td_plan plan = { .stages = set, .kernel = kernel };
    return pass_stages(call, &plan);
}

void exchange_kernel(td_plan *plan, td_kernel *kernel)
{
    plan->kernel = kernel;
}
