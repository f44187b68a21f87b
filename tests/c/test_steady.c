/* needs: networks */

/* A steady training step asks the system for no memory.

   The functions that ask are defined here once more, in front of the C
   library's, and count.  Only what the whole process does after a warm-up
   counts.  Each way to allocate has a process of its own. */
#include "treadle_test.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static atomic_long asked;

#if defined __GLIBC__ && !SANITIZED
#define COUNTED 1
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    asked++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    asked++;
    return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    asked++;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    asked++;
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    asked++;
    *out = __libc_memalign(alignment, bytes);
    return *out == NULL ? 12 : 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file,
           off_t offset)
{
    asked++;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file,
                           offset);
}
#else
#define COUNTED 0
#endif

enum { BATCH = 256, WARM_UP = 20, STEPS = 50 };

typedef struct {
    td_module *net;
    td_optimiser *sgd;
    td_tensor *x, *labels;
} training;

static training set_up(void)
{
    td_tensor *p[6];
    td_module *layers[] = {
        td_linear_module(784, 256, (td_linear_options){ 0 }),
        td_relu_module(),
        td_linear_module(256, 128, (td_linear_options){ 0 }),
        td_relu_module(),
        td_linear_module(128, 10, (td_linear_options){ 0 })
    };
    training t = { .net = td_sequential(layers, 5) };
    const int n = td_parameters(t.net, p, 6);
    t.sgd = td_sgd(p, n, 0.01, (td_sgd_options){ .momentum = 0.9 });
    t.x = td_randn(TD_DIMS(BATCH, 784), plain);
    t.labels = td_randint(0, 10, TD_DIMS(BATCH), plain);
    return t;
}

static void step(const training *t)
{
    td_scope_begin();
    td_zero_grad(t->sgd);
    td_tensor *loss = td_cross_entropy(td_forward(t->net, t->x), t->labels,
                                       (td_cross_entropy_options){ 0 });
    td_backward(loss, (td_backward_options){ 0 });
    td_step(t->sgd);
    td_scope_end();
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* What STEPS steps cost after the warm-up. */
typedef struct { int64_t granted, system; long asked, faults; } cost;

static cost train(void)
{
    td_scope_begin();
    const training t = set_up();
    for (int i = 0; i < WARM_UP; i++)
        step(&t);
    const td_memory_info before = td_memory_stats();
    cost c = { .asked = asked, .faults = faults() };
    for (int i = 0; i < STEPS; i++)
        step(&t);
    c.asked = asked - c.asked;
    c.faults = faults() - c.faults;
    const td_memory_info after = td_memory_stats();
    c.granted = after.allocations - before.allocations;
    c.system = after.system_allocations - before.system_allocations;
    td_scope_end();
    fprintf(stderr, "  %d steps: %lld allocations, %lld from the system; "
            "%ld requests, %ld page faults\n", STEPS, (long long)c.granted,
            (long long)c.system, c.asked, c.faults);
    return c;
}

static int keeps(void)
{
    const cost c = train();
    return td_failed() || c.granted < 50 * STEPS || c.system != 0
        || c.asked != 0 || c.faults > STEPS;
}

/* So that nobody can say the counters are broken.  Page faults are the
   system's own affair: the C library may keep large blocks, too. */
static int keeps_nothing(void)
{
    const cost c = train();
    return td_failed() || c.system != c.granted
        || (COUNTED && c.asked < c.granted);
}

static char *program;

static void a_steady_step_asks_for_no_memory(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(again(program, "cache", "TREADLE_ALLOC", "cache"), 0);
}

static void a_plain_step_asks_for_all_of_it(void **state)
{
    assert_int_equal(again(program, "plain", "TREADLE_ALLOC", "plain"), 0);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1)
        return strcmp(argv[1], "cache") == 0 ? keeps() : keeps_nothing();
    const struct CMUnitTest tests[] = {
        CASE(a_steady_step_asks_for_no_memory),
        CASE(a_plain_step_asks_for_all_of_it),
    };
    return cmocka_run_group_tests_name("steady", tests, NULL, NULL);
}
