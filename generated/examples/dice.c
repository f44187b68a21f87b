/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
/* Dice, thirds and threads. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <treadle/treadle.h>
enum { THROWS = 60000, MANY = 1000000 };
static const td_tensor_options plain = TD_DEFAULTS;

/* random: count how often each third comes */
static void print_thirds(void)
{
    const uint64_t n = (uint64_t)3 << 62, third = (uint64_t)1 << 62;
    td_manual_seed(1);
    const int64_t *word = td_data(td_randint(INT64_MIN, INT64_MAX,
                                             TD_DIMS(THROWS), plain));
    const int64_t *fair = td_data(td_randint(-(int64_t)(n / 2),
        (int64_t)(n / 2), TD_DIMS(THROWS), plain));
    int64_t rest[3] = { 0 }, ours[3] = { 0 };
    for (int i = 0; i < THROWS; i++) {
        rest[(uint64_t)word[i] % n / third]++;
        ours[((uint64_t)fair[i] + n / 2) / third]++;
    }
    printf("x %% n       %6d %6d %6d\n", (int)rest[0], (int)rest[1],
           (int)rest[2]);
    printf("refusing    %6d %6d %6d\n", (int)ours[0], (int)ours[1],
           (int)ours[2]);
}
/* random: throw dice on several threads */
static void print_dice(void)
{
    static int64_t first[THROWS];
    for (int threads = 1; threads <= 4; threads++) {
        int faces[7] = { 0 };
        td_set_threads(threads);
        td_manual_seed(6);
        const int64_t *face = td_data(td_randint(1, 7, TD_DIMS(THROWS),
                                                 plain));
        for (int i = 0; i < THROWS; i++)
            faces[face[i]]++;
        if (threads == 1)
            memcpy(first, face, sizeof first);
        printf("threads %d: ", threads);
        for (int k = 1; k <= 6; k++)
            printf(" %5d", faces[k]);
        printf("  %s\n", memcmp(first, face, sizeof first) == 0
               ? "the same throws" : "other throws");
    }
}
/* random: time each distribution */
static const td_dims many = { 1, { MANY } };
static td_tensor *uniform(void) { return td_rand(many, plain); }
static td_tensor *normal(void) { return td_randn(many, plain); }
static td_tensor *die(void)
{
    return td_randint(1, 7, many, plain);
}
static td_tensor *order(void) { return td_randperm(MANY); }
static td_tensor *zeros(void) { return td_zeros(many, plain); }

static void print_costs(void)
{
    static const struct { const char *name; td_tensor *(*draw)(void); }
        cases[] = { { "zeros", zeros }, { "uniform", uniform },
                    { "die", die }, { "shuffle", order },
                    { "normal", normal } };
    td_set_threads(1);
    printf("distribution,ns\n");
    for (int i = 0; i < 5; i++) {
        double best = 1e9;
        for (int k = 0; k < 20; k++) {
            struct timespec a, b;
            td_scope_begin();
            clock_gettime(CLOCK_MONOTONIC, &a);
            cases[i].draw();
            clock_gettime(CLOCK_MONOTONIC, &b);
            td_scope_end();
            const double took = 1e9 * (double)(b.tv_sec - a.tv_sec)
                              + (double)(b.tv_nsec - a.tv_nsec);
            best = took < best ? took : best;
        }
        printf("%s,%.3f\n", cases[i].name, best / MANY);
    }
}

int main(int count, char **argument)
{
    const char *what = count > 1 ? argument[1] : "";
    td_scope_begin();
    if (strcmp(what, "thirds") == 0)
        print_thirds();
    else if (strcmp(what, "cost") == 0)
        print_costs();
    else
        print_dice();
    td_scope_end();
    return td_failed();
}
