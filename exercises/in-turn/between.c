/* The comparison has a file of its own: what a macro in the hole does to a
   name must not reach the check. */
#define _POSIX_C_SOURCE 200809L
#include "../bench/measure.h"

double times_between(const stopwatch *w, contender *old, contender *new)
{
    return times_as_fast(w, old, new);
}
