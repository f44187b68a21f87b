/* Warps that are let go, seen by kernels whose lanes talk.  SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L       /* setenv */
#include "check.h"

enum { SUM, STEPS, RETURN, MEMORY, BLOCK, TURNS, TORN, DONE, RACES };
const char *talked(int which, int n, int *result, const int *numbers);

static int in[1024], got[1024], should[1024];

/* The emulator's sentence, in lines that fit. */
static void check_report(const char *report, const char *wanted)
{
    char lines[1000] = "";
    if (*wanted ? strstr(report, wanted) != NULL : *report == '\0')
        return;
    for (int at = 0, column = 0; *report != '\0' && at < 900; report++, column++) {
        const bool full = *report == ' ' && column + (int)strcspn(report + 1, " ") > 70;
        at += sprintf(lines + at, full ? "\n            " : "%c", *report);
        column = full ? 0 : column;
    }
    check_wrong("  expected  %s%s\n  report    %s", *wanted ? "a report: " : "no report", wanted, *lines ? lines : "none");
}

static unsigned other(unsigned *next, int m, int n, int from)
{
    return from < 32 && m / 32 * 32 + from < n ? next[m / 32 * 32 + from] : next[m];
}

static void expect(int which, int n)
{
    static const unsigned gone[] = { 1u, 0x80000000u, ~0u, ~(1u << 13), 0x55550001u, 0, ~0u };
    unsigned v[1024], next[1024];
    const int steps[] = { 5, 9, 5, 6, 0, 0, 0, 3 };
    for (int m = 0; m < n; m++)
        v[m] = (unsigned)in[m];
    for (int step = 0; step < steps[which]; step++) {
        memcpy(next, v, sizeof next);
        for (int m = 0; m < n; m++) {
            const int lane = m % 32, w = m / 32 * 32, end = w + 32 < n ? w + 32 : n;
            if (which == SUM)
                v[m] = next[m] + other(next, m, n, lane ^ 16 >> step);
            else if (which == STEPS)
                v[m] = 3 * next[m] + other(next, m, n, (lane + 1 + step) % 32);
            else if (which == RETURN)
                v[m] = 2 * next[m] + other(next, m, n, 13);
            else if (which == MEMORY)
                v[m] = next[m] + next[w + (lane + 1) % (end - w)];
            else if (w / 32 < (n - 1) / 32)
                v[m] = next[m] + 5 * other(next, m, n, (lane + 3) % 32);
        }
    }
    for (int m = 0; m < n; m++)
        should[m] = which == RETURN && gone[m / 32] >> m % 32 & 1 ? -1 : (int)v[m];
    if (which == BLOCK)
        for (int m = 0; m < n; m++)
            for (int k = should[m] = 0; m < 32 && k < n; k++)
                should[m] += in[k];
}

static void check_talk(const char *what, int which, int n, const char *seed)
{
    static const char *const formulas[] = {
        "v += v of lane (l xor k), for k = 16, 8, 4, 2, 1", "v = 3 v + v of lane (l + 1 + step) % 32, nine times",
        "v = 2 v + v of lane 13, five times, by all that have not returned", "word[m] = v, wait twice, v += word of the next lane, wait; six times",
        "the sum of a warp in each warp, a barrier, the sum of those in the first", "", "",
        "v += 5 v of lane (l + 3) % 32, three times, but for the last warp" };
    char text[150];
    snprintf(text, sizeof text, "%s, a block of %d threads%s%s", what, n, seed ? " in the order of seed " : "", seed ? seed : "");
    check_case(text, formulas[which]);
    if (seed)
        setenv("TREADLE_CUDA_SEED", seed, 1);
    else
        unsetenv("TREADLE_CUDA_SEED");
    memset(got, 0, sizeof got);
    check_report(talked(which, n, got, in), "");
    expect(which, n);
    for (int m = 0; m < n; m++)
        if (got[m] != should[m])
            check_wrong("  first bad thread %d of %d\n  expected  %d\n  got       %d", m, n, should[m], got[m]);
}

static void check_torn(const char *what, int lane, int n, const char *words)
{
    char text[150];
    snprintf(text, sizeof text, "a lane at the barrier holds its warp: %s", what);
    check_case(text, "a warp goes on when each lane waits for it or has returned");
    unsetenv("TREADLE_CUDA_SEED");
    in[0] = lane;
    check_report(talked(TORN, n, got, in), words);
    for (int m = lane / 32 * 32; m < lane / 32 * 32 + 32 && m < n; m++)
        if (got[m] != m)
            check_wrong("  first bad thread %d of %d\n  expected  that it waits\n  got       that it went on", m, n);
    in[0] = 11;
}

static void check_turns(int n)
{
    char text[100];
    const int warps = (n + 31) / 32;
    snprintf(text, sizeof text, "%d warps take turns", warps);
    check_case(text, "all warps that can go on are let go in one call, so each has its first turn before any has its second");
    unsetenv("TREADLE_CUDA_SEED");
    check_report(talked(TURNS, n, got, in), "");
    for (int k = 0; k < 4 * warps; k++)
        if (got[k] != k % warps)
            check_wrong("  first bad turn %d of %d\n  expected  warp %d\n  got       warp %d", k, 4 * warps, k % warps, got[k]);
}

int main(void)
{
    for (int m = 0; m < 1024; m++)
        in[m] = m * 37 % 101 + 11;
    check_talk("a sum over a warp", SUM, 40, NULL);
    check_talk("a sum over a warp", SUM, 32, NULL);
    check_talk("a sum over a warp", SUM, 1, "4");
    check_talk("numbers that go round in steps", STEPS, 64, NULL);
    check_talk("numbers that go round in steps", STEPS, 70, "1");
    check_talk("from lane to lane through memory", MEMORY, 64, NULL);
    check_talk("from lane to lane through memory", MEMORY, 47, "2");
    check_talk("lanes that have returned", RETURN, 32, NULL);
    check_talk("lanes that have returned", RETURN, 224, NULL);
    check_talk("lanes that have returned", RETURN, 205, "3");
    check_talk("the last warp has returned while another talks", DONE, 96, NULL);
    check_talk("the last warp has returned while another talks", DONE, 65, "5");
    check_talk("a warp at the barrier while another talks", BLOCK, 96, NULL);
    check_talk("a warp at the barrier while another talks", BLOCK, 224, "6");
    check_talk("a warp at the barrier while another talks", BLOCK, 1024, "7");
    check_turns(96);
    check_turns(33);
    check_torn("lane 5 of the first warp of two", 5, 64, "divergent barrier: 33 of 64 threads wait at it");
    check_torn("lane 0 of the second warp", 32, 96, "divergent barrier: 65 of 96 threads wait at it");
    check_torn("the last of a warp of four lanes", 35, 36, "divergent barrier: 33 of 36 threads wait at it");
    check_torn("the only warp, all other lanes wait for it", 31, 32, "divergent barrier: 1 of 32 threads wait at it");
    check_talk("after blocks that were given up", STEPS, 40, NULL);
    check_talk("after blocks that were given up", RETURN, 70, "8");
    check_case("neighbours that nothing keeps apart", "meetings that are over keep nothing apart that comes later");
    check_report(talked(RACES, 64, got, in), "data race on word");
    return check_end();
}
