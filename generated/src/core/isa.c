/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "core/isa.h"

#define TD_ISA_WORD(level, a, b) #level "|"
static const char words[] = TD_ISA_LEVELS(TD_ISA_WORD, , ) "base";
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
int td_isa_start(void)
{
    const int best = td_isa_best();
    const int asked = td_environment_choice("TREADLE_ISA", words, best)
                    % TD_ISA_COUNT;
    return asked < best ? asked : best;
}

/* rows: functions td_isa and td_set_isa */
const char *td_isa(void)
{
    return level_names[td_process()->isa];
}

bool td_set_isa(const char *name)
{
    const int level = td_choose(TD_ERROR_VALUE, "set_isa", name, words,
                                0) % TD_ISA_COUNT;
    if (level > td_isa_best())
        td_fail(TD_ERROR_VALUE, "set_isa", "this processor has no "
                "level '%s'; the highest is %s", name,
                level_names[td_isa_best()]);
    if (!td_failed())
        td_process()->isa = level;
    return !td_failed();
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
