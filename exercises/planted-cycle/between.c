/* The function with the hole, for a check that does not see it. */
#include "../tests/leaks.h"

int calls_to_warm_up = WARM_UP, calls_that_count = ROUNDS;

bool leaks_more(void (*work)(void *context), void *context)
{
    return leaks(work, context);
}
