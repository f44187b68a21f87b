/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "core/isa.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TD_ISA_WORD(level, a, b) "|" #level
#define TD_ISA_STRING(level, a, b) #level,
static const char *const level_names[]
    = { TD_ISA_LEVELS(TD_ISA_STRING, , ) };

/* rows: function td_isa_best */
int td_isa_best(void)
{
#ifdef TD_HAVE_ISA_v4
    const bool v2 = __builtin_cpu_supports("sse4.2");
    const bool v3 = v2 && __builtin_cpu_supports("avx2")
                 && __builtin_cpu_supports("fma")
                 && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f")
                 && __builtin_cpu_supports("avx512bw")
                 && __builtin_cpu_supports("avx512dq")
                 && __builtin_cpu_supports("avx512vl");
    return v2 + v3 + v4;
#else
    return 0;
#endif
}

/* rows: function td_isa_start */
static int number_of(const char *name)
{
    for (int i = 0; i < TD_ISA_COUNT; i++)
        if (strcmp(name, level_names[i]) == 0)
            return i;
    return strcmp(name, "base") == 0 ? 0 : -1;
}

int td_isa_start(void)
{
    const char *wish = getenv("TREADLE_ISA");
    const int best = td_isa_best();
    const int asked = wish != NULL && number_of(wish) >= 0
        ? number_of(wish)
        : td_environment_choice(
              "TREADLE_ISA", &TD_ISA_LEVELS(TD_ISA_WORD, , )[1], best);
    return asked < best ? asked : best;
}

/* rows: functions td_isa and td_set_isa */
const char *td_isa(void)
{
    return level_names[td_process()->isa];
}

bool td_set_isa(const char *name)
{
    const int level = number_of(name);
    if (level < 0 || level > td_isa_best())
        return td_fail(TD_ERROR_VALUE, "set_isa",
                       "this processor and build have no level '%s'; "
                       "the highest is %s",
                       name, level_names[td_isa_best()]);
    td_process()->isa = level;
    return true;
}

/* rows: function td_cache_info */
td_cache_sizes td_cache_info(void)
{
    int64_t bytes[4] = { 0 };
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            break;
        if (fscanf(file, "%" SCNd64, &bytes[i]) == 1)
            bytes[i] *= 1024;
        fclose(file);
    }
    return (td_cache_sizes){ bytes[0], bytes[2], bytes[3] };
}
