/* The hole has a file of its own: what a macro in it does to a name must not
   reach the check. */
#include "ops/random.h"

uint64_t draw_below_between(td_stream stream, uint64_t index, uint64_t n);
uint64_t draw_below_between(td_stream stream, uint64_t index, uint64_t n)
{
    return td_draw_below(stream, index, n);
}
