/* needs: parallel graph modules losses optimisers random networks */

/* Threads that do anything to shared leaves, at random, for TREADLE_STRESS
   seconds; TREADLE_SEED says which numbers.  Values may be any, handles,
   counts and locks may not. */
#define _GNU_SOURCE
#include "treadle_test.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LEAVES = 3, MOST_THREADS = 4 };

static const td_reduce_options all_of = TD_DEFAULTS;
static const td_backward_options once = TD_DEFAULTS;

typedef struct {
    td_tensor *leaf[LEAVES], *base, *view;      /* the base has changed since the view was made */
    td_optimiser *sgd;
    pthread_mutex_t alone;
    struct timespec until;
    atomic_bool failed;
} world;

typedef struct { world *of; uint64_t state; } worker;

static uint64_t next(worker *w)
{
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return w->state >> 33;
}

static td_tensor *some_leaf(worker *w) { return w->of->leaf[next(w) % LEAVES]; }
static td_tensor *no_change(void *context, td_tensor *grad) { return NULL; }

static td_tensor *loss_of(td_tensor *p)
{
    return td_sum(td_tanh(td_mul(p, td_full(TD_DIMS(), td_float(2), plain))), all_of);
}

static void do_pass(worker *w) { td_backward(loss_of(some_leaf(w)), once); }
static void do_step(worker *w) { td_step(w->of->sgd); }
static void do_zero_grad(worker *w) { td_zero_grad(w->of->sgd); }
static void do_drop(worker *w) { td_set_grad(some_leaf(w), NULL); }

static void do_pass_of_all(worker *w)
{
    td_tensor *sum = loss_of(w->of->leaf[0]);
    for (int i = 1; i < LEAVES; i++)
        sum = td_add(sum, loss_of(w->of->leaf[i]));
    td_backward(sum, once);
}

static void do_set(worker *w)
{
    td_tensor *p = some_leaf(w);
    td_set_grad(p, td_zeros(td_shape_of(p), plain));
}

static void do_read(worker *w)
{
    td_tensor *g = td_grad_of(some_leaf(w));
    if (g != NULL)
        td_sum(td_clone(g), all_of);
}

static void do_zero(worker *w)
{
    td_tensor *g = td_grad_of(some_leaf(w));
    if (g != NULL)
        td_zero_(g);
}

static void do_hook(worker *w)
{
    td_tensor *p = some_leaf(w);
    const int64_t id = next(w) % 2 ? td_register_hook(p, no_change, NULL, NULL)
                                   : td_register_post_hook(p, no_change, NULL, NULL);
    td_backward(loss_of(p), once);
    td_remove_hook(p, id);
}

static void do_retain(worker *w)
{
    td_tensor *y = td_mul(some_leaf(w), td_full(TD_DIMS(), td_float(3), plain));
    td_retain_grad(y);
    td_backward(td_sum(td_mul(y, y), all_of), once);
    td_grad_of(y);
}

/* The view shows 3 base, so the slope is 3; two passes over one graph are refused. */
static void do_view(worker *w)
{
    td_tensor *got = NULL, *sum = td_sum(td_mul(w->of->view, td_full(TD_DIMS(), td_float(1), plain)), all_of);
    pthread_mutex_lock(&w->of->alone);
    const bool ok = td_grad(&sum, 1, &w->of->base, 1, &got, (td_grad_options){ .retain_graph = true });
    pthread_mutex_unlock(&w->of->alone);
    if (ok && td_item_double(td_sum(got, all_of)) != 3.0 * 6)
        td_fail(TD_ERROR_VALUE, "do_view", "the slope of a view");
}

/* Whether a process is in the runtime of a sanitizer, which may lose its own locks in a fork: they are held by threads
   that do not come along, and the child sleeps or spins for ever.  It is stopped for the look: of a process that runs
   the system does not say where. */
static bool is_in_the_sanitizer(pid_t child)
{
    char path[64], line[256] = "";
    siginfo_t stopped;
    kill(child, SIGSTOP);
    waitid(P_PID, (id_t)child, &stopped, WSTOPPED | WEXITED | WNOWAIT);
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)child);
    FILE *file = fopen(path, "r");
    const char *last = file && fgets(line, sizeof line, file) ? strrchr(line, ' ') : NULL;
    if (file != NULL)
        fclose(file);
    kill(child, SIGCONT);
    Dl_info at;
    return last != NULL && dladdr((void *)(uintptr_t)strtoull(last, NULL, 16), &at) != 0
        && (strstr(at.dli_fname, "libasan") || strstr(at.dli_fname, "libtsan"));
}

/* A pass, a step and a look at the result, by a thread that is alone; one more is not allowed to a child under the
   thread sanitizer. */
static void in_child(void)
{
    alarm(120);
    td_error_clear();
    td_set_threads(1);
    td_tensor *p = td_ones(TD_DIMS(20000), (td_tensor_options){ .requires_grad = true });
    td_optimiser *sgd = td_sgd(&p, 1, 0.5, (td_sgd_options)TD_DEFAULTS);
    td_backward(loss_of(p), once);
    td_step(sgd);
    const double left = td_item_double(td_sum(p, all_of));      /* each is 1 - tanh'(2) */
    if (td_failed() || left < 0.92 * 20000 || left > 0.94 * 20000)
        fprintf(stderr, "child of a fork: %s, sum %g\n", td_error_message(), left);
    _exit(td_failed() || left < 0.92 * 20000 || left > 0.94 * 20000);
}

static void do_fork(worker *w)
{
    if (next(w) % 20 != 0)
        return;
    const pid_t child = fork();
    if (child == 0)
        in_child();
    int status = -1, looks = 0;
    bool ended = false, lost = false;
    for (int waited = 0; waited < 30000 && !ended && !lost; waited++) {
        usleep(2000);
        ended = waitpid(child, &status, WNOHANG) == child;
        looks = !ended && waited > 1000 && is_in_the_sanitizer(child) ? looks + 1 : 0;
        lost = looks == 100;
    }
    if (!ended) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    if (status != 0 && !lost)
        td_fail(TD_ERROR_RUNTIME, "do_fork", "the child of a fork ended with %x", (unsigned)status);
}

static void (*const operations[])(worker *) = {
    do_pass, do_pass_of_all, do_step, do_zero_grad, do_drop, do_set, do_read, do_zero, do_hook, do_retain, do_view, do_fork
};

static bool time_is_left(const world *w)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec < w->until.tv_sec || (now.tv_sec == w->until.tv_sec && now.tv_nsec < w->until.tv_nsec);
}

static void *work(void *context)
{
    worker *w = context;
    while (time_is_left(w->of) && !atomic_load(&w->of->failed)) {
        const size_t which = next(w) % (sizeof operations / sizeof *operations);
        td_scope_begin();
        operations[which](w);
        td_scope_end();
        /* A step between a forward and its backward is refused. */
        if (td_failed() && strstr(td_error_message(), "modified in place") == NULL) {
            print_error("operation %d: %s\n", (int)which, td_error_message());
            atomic_store(&w->of->failed, true);
        }
        td_error_clear();
    }
    return NULL;
}

static void make_world(world *w, double seconds)
{
    for (int i = 0; i < LEAVES; i++)
        w->leaf[i] = td_ones(TD_DIMS(i == 2 ? 20000 : 3 + i), (td_tensor_options){ .requires_grad = true });
    w->sgd = td_sgd(w->leaf, LEAVES, 1e-4, (td_sgd_options){ .momentum = 0.5 });
    w->base = td_ones(TD_DIMS(7), (td_tensor_options){ .requires_grad = true });
    td_tensor *changed = td_mul(w->base, td_full(TD_DIMS(), td_float(1), plain));
    w->view = td_slice(changed, 0, (td_opt_i64)td_some(1), (td_opt_i64)td_some(7), 1);
    td_mul_(changed, td_full(TD_DIMS(), td_float(3), plain));
    pthread_mutex_init(&w->alone, NULL);
    clock_gettime(CLOCK_MONOTONIC, &w->until);
    const int64_t at = w->until.tv_nsec + (int64_t)(seconds * 1e9);
    w->until.tv_sec += at / 1000000000;
    w->until.tv_nsec = at % 1000000000;
}

static void stress(int threads)
{
    const char *asked = getenv("TREADLE_STRESS"), *seed = getenv("TREADLE_SEED");
    const uint64_t start = seed ? strtoull(seed, NULL, 10) : 1;
    const double each = (asked ? atof(asked) : 2) / 4;
    pthread_t thread[MOST_THREADS];
    worker workers[MOST_THREADS];
    for (int round = 0; round < 2; round++) {
        world w = { .failed = false };
        td_scope_begin();
        make_world(&w, each);
        for (int i = 0; i < threads; i++) {
            workers[i] = (worker){ &w, start * 1000 + (uint64_t)(10 * round + i) };
            assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < threads; i++)
            assert_int_equal(pthread_join(thread[i], NULL), 0);
        td_scope_end();
        pthread_mutex_destroy(&w.alone);
        if (atomic_load(&w.failed))
            fail_msg("TREADLE_SEED=%llu, %d threads", (unsigned long long)start, threads);
    }
}

static void two_threads_do_anything(void **state) { alarm(900); stress(2); }
static void four_threads_do_anything(void **state) { alarm(900); stress(4); }

int main(void)
{
    const struct CMUnitTest tests[] = { CASE(two_threads_do_anything), CASE(four_threads_do_anything) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
