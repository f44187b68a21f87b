/* The emulator of kernels: fibers, launches and, checked, a watch. */
#include "emulator.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <ucontext.h>
#include <vector>

extern "C" void emulator_switch(void **from, void *to);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
__asm__(".text\n.globl emulator_switch\n.hidden emulator_switch\n"
        "emulator_switch:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n"
        "  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n"
        "  pop %r12\n  pop %rbx\n  pop %rbp\n  ret\n");
#define TD_OWN_SWITCH
#endif

struct fiber {
    std::unique_ptr<char[]> stack;
#ifdef TD_OWN_SWITCH
    void *at;                   /* where it was left */
#else
    ucontext_t at;
#endif
};
enum { STACK = 64 * 1024 };

static void prepare(fiber *f, void (*entry)())
{
    f->stack.reset(new char[STACK]);
#ifdef TD_OWN_SWITCH
    void **top = reinterpret_cast<void **>(f->stack.get() + STACK) - 2;
    f->at = top - 6;
    top[0] = reinterpret_cast<void *>(entry);
#else
    getcontext(&f->at);
    f->at.uc_stack.ss_sp = f->stack.get();
    f->at.uc_stack.ss_size = STACK;
    makecontext(&f->at, entry, 0);
#endif
}

static void hand_over(fiber *from, fiber *to)
{
#ifdef TD_OWN_SWITCH
    emulator_switch(&from->at, to->at);
#else
    swapcontext(&from->at, &to->at);
#endif
}

struct touch {
    unsigned launch;            /* 0: never */
    int block;
    unsigned barriers;
    unsigned meetings : 20, thread : 11, atomic : 1;
    const void *site;
};

struct shadow {
    touch write[2], read[2];    /* the second: of another thread */
    bool filled;                /* something is in it */
};

struct area {
    const char *name;           /* a shared array's: by its address */
    char *data;
    size_t bytes;
    bool locked;                    /* the host's, not the device's */
    std::vector<shadow> shadows;    /* made when first touched */
};

enum state { READY, AT_BARRIER, AT_WARP, DONE };

struct member {
    emulated_place place;
    state at;
    int fiber;                  /* the one it began in */
    const void *site;           /* of the barrier it waits at */
    unsigned meetings;          /* with its warp, so far */
};

enum { MOST = 1024, ARENA = 256 * 1024, GUARD = 1024 };

struct crew {
    int count, number, next, running;
    member members[MOST];
    int order[MOST];            /* in which they begin and go on */
    fiber home, fibers[MOST];
    const std::function<void()> *call;
    const char *kernel;
    unsigned barriers;          /* passed in this block, so far */
    alignas(64) char arena[ARENA];      /* shared memory */
    size_t used;
    std::vector<area> arrays;           /* in it */
    uint64_t slots[2][MOST];    /* words on their way between lanes */
};
static thread_local crew *now;
thread_local emulated_place *emulated;

static thread_local cudaError_t last_error;
static thread_local char words[800];    /* of the last wait */
static emulated_loop *parallel_for;

cudaError_t cudaGetLastError()
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error"
         : error == cudaErrorMemoryAllocation ? "out of memory"
         : error == cudaErrorInvalidConfiguration
           ? "invalid configuration argument"
         : error == cudaErrorInvalidDevice ? "invalid device ordinal"
         : error == cudaErrorLaunchFailure ? words
         : "invalid argument";
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *text = getenv("TREADLE_CUDA_DEVICES");
    *count = text ? atoi(text) : 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    int count;
    cudaGetDeviceCount(&count);
    return device >= 0 && device < count ? cudaSuccess
                                         : cudaErrorInvalidDevice;
}

const char *emulator_first_report() { return words; }

void emulator_use(emulated_loop *loop) { parallel_for = loop; }

typedef std::shared_ptr<bool> mark;     /* reached? */
struct emulated_event { mark last; };

struct job {
    std::function<void()> run;
    mark after;                         /* or NULL */
};

enum { LONGEST = 256 };                 /* jobs that wait in a stream */

struct emulated_stream {
    std::deque<job> jobs;
    char report[sizeof words];          /* the first, until asked for */
};
static std::mutex turn;                 /* who holds it, works */
static auto &streams = *new std::vector<emulated_stream *>{
    new emulated_stream() };            /* the first: of stream 0 */
static emulated_stream *running;

struct place { char text[160]; };

static place place_of(const void *site)
{
    place p = { "an unknown place" };
    Dl_info info;
    char command[512];
    if (site == NULL || !dladdr(site, &info))
        return p;
    snprintf(command, sizeof command, "addr2line -sie '%s' 0x%lx "
             "2>/dev/null | sed 's/ .*//'", info.dli_fname,
             (unsigned long)((const char *)site
             - (const char *)info.dli_fbase - 1));
    FILE *pipe = popen(command, "r");
    while (pipe != NULL && fgets(p.text, sizeof p.text, pipe) != NULL
           && strncmp(p.text, "emulator.h:", 11) == 0)
        continue;
    p.text[strcspn(p.text, "\n")] = '\0';
    if (pipe != NULL)
        pclose(pipe);
    return p;
}

__attribute__((format(printf, 2, 3)))
static void report(const void *site, const char *format, ...)
{
    char what[400];
    va_list args;
    static std::mutex one_by_one;
    std::lock_guard lock(one_by_one);
    if (running->report[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(running->report, sizeof words, "%s: %s: %s",
             now ? now->kernel : "", place_of(site).text, what);
}

static void begin_member(crew *c, int m, int in)
{
    c->running = m;
    c->members[m].fiber = in;
    emulated = &c->members[m].place;
}

static void work()
{
    for (;;) {
        crew *c = now;
        const int in = c->members[c->running].fiber;
        (*c->call)();
        c->members[c->running].at = DONE;
        if (c->next < c->count) {
            begin_member(c, c->order[c->next++], in);
            continue;
        }
        hand_over(&c->fibers[in], &c->home);
    }
}

void emulated_wait(bool for_warp)
{
    crew *c = now;
    member *m = &c->members[c->running];
    m->at = for_warp ? AT_WARP : AT_BARRIER;
    m->site = __builtin_return_address(0);
    hand_over(&c->fibers[m->fiber], &c->home);
}
int emulated_lane() { return now->running % 32; }

uint64_t emulated_exchange(uint64_t word, int lane)
{
    crew *c = now;
    const int self = c->running, from = self / 32 * 32 + lane;
    uint64_t *slots = c->slots[c->members[self].meetings % 2];
    slots[self] = word;
    emulated_wait(true);
    return lane < 32 && from < c->count ? slots[from] : word;
}

static void let_all_run(crew *c)
{
    for (int k = 0; k < c->count; k++) {
        const int m = c->order[k], in = c->members[m].fiber;
        if (c->members[m].at != READY)
            continue;
        c->next = std::max(c->next, k + 1);
        if (c->fibers[in].stack == NULL)
            prepare(&c->fibers[in], work);
        begin_member(c, m, in);
        hand_over(&c->home, &c->fibers[in]);
    }
}

static int count_at(const crew *c, int from, int to, state at)
{
    int n = 0;
    for (int m = from; m < to; m++)
        n += c->members[m].at == at;
    return n;
}

static bool release_warps(crew *c)
{
    bool any = false;
    for (int w = 0; w < c->count; w += 32) {
        const int end = std::min(w + 32, c->count);
        const int here = count_at(c, w, end, AT_WARP);
        if (here == 0 || here + count_at(c, w, end, DONE) < end - w)
            continue;
        for (int m = w; m < end; m++)
            if (c->members[m].at == AT_WARP) {
                c->members[m].at = READY;
                c->members[m].meetings++;
            }
        any = true;
    }
    return any;
}

static bool check_barrier(crew *c)
{
    const int waiting = count_at(c, 0, c->count, AT_BARRIER);
    const member *first = c->members;
    while (waiting > 0 && first->at != AT_BARRIER)
        first++;
    for (int m = 0; m < c->count; m++) {
        const member *x = &c->members[m];
        if (x->at == AT_BARRIER && x->site == first->site)
            continue;
        report(first->site,
               "divergent barrier: %d of %d threads wait at it, thread "
               "%d %s", waiting, c->count, m,
               x->at == DONE ? "has returned" : x->at == AT_WARP
               ? "waits for its warp" : "waits at another");
        return false;
    }
    return true;
}

static void run_block(crew *c)
{
    c->arrays.clear();
    c->used = GUARD;
    c->barriers = 0;
    c->next = 0;
    for (;;) {
        let_all_run(c);
        if (release_warps(c))
            continue;
        if (count_at(c, 0, c->count, DONE) == c->count)
            return;
        if (!check_barrier(c))
            break;
        c->barriers++;
        for (int m = 0; m < c->count; m++)
            if (c->members[m].at == AT_BARRIER)
                c->members[m].at = READY;
    }
    for (fiber &f : c->fibers)
        f.stack = NULL;
}

void *emulated_shared(const char *name, size_t bytes)
{
    crew *c = now;
    for (const area &a : c->arrays)
        if (a.name == name)
            return a.data;
    if (c->used + bytes + GUARD > ARENA) {
        fprintf(stderr, "emulator: %s wants more shared memory than "
                "there is\n", c->kernel);
        abort();
    }
    char *data = c->arena + c->used;
    c->arrays.push_back({ name, data, bytes, false, {} });
    c->used += (bytes + GUARD + 63) / 64 * 64;
    return data;
}

static size_t dice(int64_t number, size_t sides)
{
    const char *seed = getenv("TREADLE_CUDA_SEED");
    if (seed == NULL)
        return sides - 1;
    uint64_t x = (strtoull(seed, NULL, 10) + 1) * 0x9e3779b97f4a7c15u
               + (uint64_t)number;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return (size_t)(x >> 32) % sides;
}

static void shuffle_order(crew *c, int64_t number)
{
    const bool any = getenv("TREADLE_CUDA_SEED") != NULL;
    for (int m = any ? c->count - 1 : 0; m > 0; m--)
        std::swap(c->order[m], c->order[dice(number * MOST + m,
                                             (size_t)m + 1)]);
}

static void run_next(emulated_stream *wanted)
{
    static int64_t turns;
    std::vector<emulated_stream *> ready;
    for (emulated_stream *s : streams)
        if (!s->jobs.empty() && (s->jobs.front().after == NULL
                                 || *s->jobs.front().after))
            ready.push_back(s);
    const auto at = std::find(ready.begin(), ready.end(), wanted);
    if (at != ready.end())
        std::iter_swap(at, ready.end() - 1);
    running = ready[dice(turns++, ready.size())];
    const job next = std::move(running->jobs.front());
    running->jobs.pop_front();
    next.run();
}
static void enqueue(cudaStream_t stream, std::function<void()> run,
                    mark after = NULL)
{
    const std::lock_guard lock(turn);
    emulated_stream *s = stream ? stream : streams[0];
    s->jobs.push_back({ std::move(run), after });
    if (s->jobs.size() > LONGEST)
        run_next(s);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const std::lock_guard lock(turn);
    emulated_stream *s = stream ? stream : streams[0];
    while (!s->jobs.empty())
        run_next(s);
    memcpy(words, s->report, sizeof words);
    s->report[0] = '\0';
    return words[0] ? cudaErrorLaunchFailure : cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    const std::lock_guard lock(turn);
    streams.push_back(*out = new emulated_stream());
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    *out = new emulated_event();
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const mark fresh = event->last = std::make_shared<bool>(false);
    enqueue(stream, [=] { *fresh = true; });
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned)
{
    enqueue(stream, [] {}, event->last);
    return cudaSuccess;
}

static std::map<char *, area> blocks;      /* by address */
static std::mutex blocks_lock;
static size_t bytes_taken;

static size_t bytes_there()
{
    const char *text = getenv("TREADLE_CUDA_MEMORY");
    return text ? strtoull(text, NULL, 10) : (size_t)2 << 30;
}

static cudaError_t give_out(void **out, size_t bytes, bool locked)
{
    std::lock_guard lock(blocks_lock);
    const size_t counted = locked ? 0 : bytes;
    char *room = bytes_taken + counted > bytes_there() ? NULL
        : static_cast<char *>(aligned_alloc(256,
              (bytes + 2 * GUARD + 255) / 256 * 256));
    if (room == NULL)
        return cudaErrorMemoryAllocation;
    bytes_taken += counted;
    *out = room + GUARD;
    blocks[room + GUARD] = { "an allocation", room + GUARD, bytes,
                             locked, {} };
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return give_out(out, bytes, false);
}

cudaError_t cudaFree(void *data)
{
    std::lock_guard working(turn);
    for (size_t i = 0; i < streams.size(); i++)
        while (!streams[i]->jobs.empty())
            run_next(streams[i]);
    std::lock_guard lock(blocks_lock);
    auto it = blocks.find(static_cast<char *>(data));
    if (data == NULL)
        return cudaSuccess;
    if (it == blocks.end())
        return cudaErrorInvalidValue;
    bytes_taken -= it->second.locked ? 0 : it->second.bytes;
    free(it->second.data - GUARD);
    blocks.erase(it);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    std::lock_guard lock(blocks_lock);
    *total = bytes_there();
    *left = *total > bytes_taken ? *total - bytes_taken : 0;
    return cudaSuccess;
}
static area *block_near(char *p)
{
    const std::lock_guard lock(blocks_lock);
    auto it = blocks.upper_bound(p + GUARD);
    if (it == blocks.begin())
        return NULL;
    area *b = &(--it)->second;
    return p < b->data + b->bytes + GUARD ? b : NULL;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return give_out(out, bytes, true);
}

cudaError_t cudaFreeHost(void *data)
{
    return cudaFree(data);
}

static bool is_in(const void *data, size_t bytes, bool locked)
{
    const area *b = block_near((char *)data);
    return b != NULL && b->locked == locked && b->data <= data
        && (char *)data + bytes <= b->data + b->bytes;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes,
                            cudaStream_t stream)
{
    enqueue(stream, [=] { memset(to, byte, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream)
{
    if ((kind != cudaMemcpyDeviceToHost && !is_in(to, bytes, false))
        || (kind != cudaMemcpyHostToDevice
            && !is_in(from, bytes, false)))
        return cudaErrorInvalidValue;
    if (kind == cudaMemcpyHostToDevice && !is_in(from, bytes, true))
        enqueue(stream, [to, staged = std::string((const char *)from,
                                                  bytes)] {
            memcpy(to, staged.data(), staged.size());
        });
    else
        enqueue(stream, [=] { memmove(to, from, bytes); });
    return kind == cudaMemcpyDeviceToHost
         ? cudaStreamSynchronize(stream) : cudaSuccess;
}

struct mean {
    double sum, n;
    void add(double x) { sum += x, n++; }
    double value() const { return sum / std::max(1e-9, n); }
};
struct tally {
    mean sectors, rounds;       /* of a request */
    double longest;             /* accesses of the busiest thread */
    mean share;                 /* of a thread in all of them */
};
static std::map<std::string, tally> tallies;

emulated_counts emulator_counts(const char *kernel)
{
    const tally &sum = tallies[kernel];
    return { sum.sectors.value(), sum.rounds.value(), sum.sectors.n,
             sum.longest / std::max(1e-9, sum.share.value()) };
}

static bool ordered(const touch *old, const touch *fresh)
{
    if (old->launch != fresh->launch)
        return true;
    if (old->block != fresh->block)
        return false;
    return old->thread == fresh->thread
        || old->barriers != fresh->barriers
        || (old->thread / 32 == fresh->thread / 32
            && old->meetings != fresh->meetings);
}

static int distance(const touch *a, const touch *b)
{
    return a->block != b->block ? 2 : a->thread / 32 != b->thread / 32;
}

static void remember(touch *pair, const touch *t)
{
    if (ordered(&pair[0], t))
        pair[0] = *t;
    else if (ordered(&pair[1], t)
             || distance(&pair[0], t) > distance(&pair[0], &pair[1]))
        pair[1] = *t;
}

static bool race(const touch *old, const touch *fresh, const char *what,
                 const char *did)
{
    if (ordered(old, fresh) || (old->atomic && fresh->atomic))
        return false;
    if (running->report[0] == '\0')
        report(fresh->site, "data race on %s: block %d, thread %d %s "
               "what block %d, thread %d touched at %s, with no "
               "barrier between", what, fresh->block, fresh->thread,
               did, old->block, old->thread,
               place_of(old->site).text);
    return true;
}

static void touch_byte(shadow *s, const touch *t, bool write,
                       const char *what)
{
    const char *did = write ? "overwrites" : "reads";
    bool found = false;
    for (int k = 0; k < 2; k++)
        found = found || race(&s->write[k], t, what, did)
             || (write && race(&s->read[k], t, what, did));
    if (found)
        *s = shadow();
    remember(write ? s->write : s->read, t);
    s->filled = s->filled || found || write;
}

typedef std::tuple<const void *, int, unsigned> ask;
static std::map<ask, std::set<uintptr_t>> asked, asked_shared;
static std::map<std::pair<const void *, int>, unsigned> visits;
static const bool counting = getenv("TREADLE_CUDA_REPORT") != NULL;

static void count(std::map<ask, std::set<uintptr_t>> *in,
                  const touch *t, char *p, size_t n, uintptr_t unit)
{
    if (!counting || t->atomic)
        return;
    const ask key(t->site, t->thread / 32,
                  visits[{ t->site, t->thread }]++);
    for (uintptr_t at = (uintptr_t)p / unit;
         at <= ((uintptr_t)p + n - 1) / unit; at++)
        (*in)[key].insert(at);
}

static void add_up(const char *kernel)
{
    tally *sum = &tallies[kernel];
    for (auto &request : asked)
        sum->sectors.add((double)request.second.size());
    for (auto &request : asked_shared) {
        int bank[32] = { 0 }, most = 0;
        for (uintptr_t word : request.second)
            most = std::max(most, ++bank[word % 32]);
        sum->rounds.add(most);
    }
    std::map<int, double> work;
    sum->share.n += now->count;
    for (auto &visit : visits) {
        double &mine = work[visit.first.second];
        mine += visit.second;
        sum->longest = std::max(sum->longest, mine);
        sum->share.sum += visit.second;
    }
    asked.clear();
    asked_shared.clear();
    visits.clear();
}

static void watch_area(area *a, char *p, size_t n, const touch *t,
                       bool write, bool shared)
{
    const long at = p - a->data;
    if (p < a->data || p + n > a->data + a->bytes) {
        report(t->site, "%s outside of %s%s: byte %ld of %zu, "
               "block %d, thread %d", write ? "write" : "read",
               shared ? "shared array " : "", a->name, at, a->bytes,
               t->block, t->thread);
        return;
    }
    a->shadows.resize(a->bytes);
    for (shadow *s = &a->shadows[at], *end = s + n; s < end; s++) {
        if (shared && !write && !s->filled) {
            report(t->site, "uninitialised read of shared array %s "
                   "at byte %ld: block %d, thread %d", a->name, at,
                   t->block, t->thread);
            s->filled = true;
        }
        touch_byte(s, t, write, a->name);
    }
    count(shared ? &asked_shared : &asked, t, p, n, shared ? 4 : 32);
}

static unsigned launches;

void watch(const volatile void *address, size_t n, bool write,
           const void *site, bool atomic = false)
{
    crew *c = now;
    char *p = static_cast<char *>(const_cast<void *>(address));
    if (c == NULL)
        return;
    const member *m = &c->members[c->running];
    const char *stack = c->fibers[m->fiber].stack.get();
    if (p >= stack && p < stack + STACK)
        return;
    const touch t = { launches, c->number, c->barriers,
                      m->meetings & 0xfffff,
                      (unsigned)c->running & 0x7ff, atomic, site };
    const bool shared = p >= c->arena && p < c->arena + ARENA;
    area *a = shared ? NULL : block_near(p);
    for (area &array : c->arrays)
        if (shared && (a == NULL || array.data <= p))
            a = &array;
    if (a != NULL)
        watch_area(a, p, n, &t, write, shared);
}

#ifdef TD_CHECKED
enum { WATCHING = true };
struct printer {
    ~printer()
    {
        if (!counting)
            return;
        fprintf(stderr, "%-24s %16s %20s\n", "kernel",
                "sectors/request", "bank rounds/request");
        for (auto &k : tallies)
            fprintf(stderr, "%-24s %16.1f %20.1f\n", k.first.c_str(),
                    k.second.sectors.value(), k.second.rounds.value());
    }
};
static const printer at_exit;

#define SITE __builtin_return_address(0)
#define WATCH(kind, write, n)                                          \
    void __tsan_##kind##n(void *p) { watch(p, n, write, SITE); }
#define WATCH_SIZE(n)                                                  \
    WATCH(read, false, n) WATCH(write, true, n)                        \
    WATCH(unaligned_read, false, n) WATCH(unaligned_write, true, n)
#define WATCH_ATOMIC(bits, T)                                          \
    T __tsan_atomic##bits##_load(const volatile T *p, int)             \
    { watch(p, sizeof(T), false, SITE, true);                          \
      return __atomic_load_n(p, __ATOMIC_RELAXED); }                   \
    void __tsan_atomic##bits##_store(volatile T *p, T v, int)          \
    { watch(p, sizeof(T), true, SITE, true);                           \
      __atomic_store_n(p, v, __ATOMIC_RELAXED); }                      \
    T __tsan_atomic##bits##_compare_exchange_val(                      \
        volatile T *p, T old, T fresh, int, int)                       \
    { watch(p, sizeof(T), true, SITE, true);                           \
      __atomic_compare_exchange_n(p, &old, fresh, false,               \
          __ATOMIC_RELAXED, __ATOMIC_RELAXED);                         \
      return old; }                                                    \
    int __tsan_atomic##bits##_compare_exchange_strong(                 \
        volatile T *p, T *old, T fresh, int, int)                      \
    { watch(p, sizeof(T), true, SITE, true);                           \
      return __atomic_compare_exchange_n(p, old, fresh, false,         \
          __ATOMIC_RELAXED, __ATOMIC_RELAXED); }
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_read_range(void *p, size_t n) { watch(p, n, false, SITE); }
void __tsan_write_range(void *p, size_t n) { watch(p, n, true, SITE); }
WATCH_SIZE(1) WATCH_SIZE(2) WATCH_SIZE(4) WATCH_SIZE(8) WATCH_SIZE(16)
WATCH_ATOMIC(8, uint8_t) WATCH_ATOMIC(32, uint32_t)
WATCH_ATOMIC(64, uint64_t)
}
#else
enum { WATCHING = false };
#endif

struct launch {
    const char *kernel;
    dim3 grid, block;
    std::function<void()> call;
};

static int64_t volume(dim3 of)
{
    return (int64_t)of.x * of.y * of.z;
}

static dim3 place_in(dim3 of, int64_t number)
{
    return dim3((unsigned)(number % of.x),
                (unsigned)(number / of.x % of.y),
                (unsigned)(number / of.x / of.y));
}

static void seat(crew *c, const launch *l, int64_t number)
{
    const dim3 block = place_in(l->grid, number);
    c->count = (int)volume(l->block);
    for (int m = 0; m < c->count; m++) {
        c->members[m] = { { place_in(l->block, m), block, l->block,
                            l->grid }, READY, m, NULL, 0 };
        c->order[m] = m;
    }
    c->number = (int)number;
    c->kernel = l->kernel;
    c->call = &l->call;
    shuffle_order(c, number);
}

static bool run_blocks(void *context, int64_t begin, int64_t end, int)
{
    static thread_local crew own;       /* zero: no stacks yet */
    now = &own;
    for (int64_t n = begin; n < end; n++) {
        seat(&own, static_cast<const launch *>(context), n);
        run_block(&own);
        if (WATCHING)
            add_up(own.kernel);
    }
    now = NULL;
    return true;
}

void emulate(const char *kernel, dim3 grid, dim3 block,
             cudaStream_t stream, std::function<void()> call)
{
    launch l = { kernel, grid, block, std::move(call) };
    const int64_t blocks = volume(grid), threads = volume(block);
    if (blocks == 0 || threads == 0 || threads > MOST
        || grid.y > 65535 || grid.z > 65535)
        last_error = cudaErrorInvalidConfiguration;
    else
        enqueue(stream, [l, blocks]() mutable {
            launches++;
            if (WATCHING || parallel_for == NULL
                || !parallel_for(blocks, 1, run_blocks, &l))
                run_blocks(&l, 0, blocks, 0);
        });
}
