/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* The C back end: a compiler, a cache, a run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <treadle/treadle.h>
#include "compiler/backend-c.h"
#include "core/isa.h"

enum { STAGE_GRAIN = 32 * 1024 };

/* codegen: functions that run the compiler */
const char td_supervisor[] =
    "(read x; kill -9 0) <&3 >/dev/null 2>&1 & "
    "TMPDIR=$1 LC_ALL=C; export TMPDIR LC_ALL; shift; "
    "\"$@\" 3<&- </dev/null; status=$?; "
    "kill -9 $!; wait $! 2>/dev/null; printf '\\0%d\\n' $status";
typedef struct {
    int words[2], leash[2];     /* our end, the command's end */
} line;

static int move_up(int file)    /* above those that a shell uses */
{
    const int high = fcntl(file, F_DUPFD_CLOEXEC, 4);
    close(file);
    return high;
}

static void hang_up(line *l, int end)
{
    close(l->words[end]);
    close(l->leash[end]);
}

static bool open_line(line *l)
{
    *l = (line){ { -1, -1 }, { -1, -1 } };
    if (pipe2(l->words, O_CLOEXEC) == 0
        && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
                      l->leash) == 0
        && (l->words[1] = move_up(l->words[1])) >= 0
        && (l->leash[1] = move_up(l->leash[1])) >= 0)
        return true;
    td_fail(TD_ERROR_IO, "compile", "cannot make a pipe: %s",
            strerror(errno));
    hang_up(l, 0);
    hang_up(l, 1);
    return false;
}
static int spawn(pid_t *child, char *const *arguments, const line *l)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, l->words[1], 1);
    posix_spawn_file_actions_adddup2(&files, l->words[1], 2);
    posix_spawn_file_actions_adddup2(&files, l->leash[1], 3);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP
        | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &usual);
    const int error = posix_spawn(child, arguments[0], &files, &how,
                                  arguments, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}
typedef struct {
    char said[240];
    int length, status;         /* -1: the shell has not told */
} report;

static bool note(report *r, const char *piece, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        const char c = piece[i];
        if (r->status >= 0 && c == '\n')
            return true;
        if (r->status >= 0)
            r->status = r->status * 10 + (c - '0');
        else if (c == '\0')
            r->status = 0;
        else if (r->length + 1 < (int)sizeof r->said)
            r->said[r->length++] = c < ' ' || c > '~' ? ' ' : c;
    }
    return false;
}

static int64_t milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool listen_to(int words, int seconds, report *r)
{
    const int64_t end = milliseconds() + (int64_t)seconds * 1000;
    char piece[4096];
    for (int64_t left; (left = end - milliseconds()) > 0; ) {
        struct pollfd file = { .fd = words, .events = POLLIN };
        if (poll(&file, 1, (int)left) <= 0)
            continue;
        const ssize_t n = read(words, piece, sizeof piece);
        if (n == 0 || (n < 0 && errno != EINTR) || note(r, piece, n))
            return true;
    }
    return false;
}
static bool judge(const char *command, const report *r)
{
    char how[32] = "";
    if (r->status == 0)
        return true;
    if (r->status == 126 || r->status == 127)
        return td_fail(TD_ERROR_UNSUPPORTED, "compile", "cannot run "
                       "%.160s: %s", command, r->said);
    if (r->status > 128)
        snprintf(how, sizeof how, " by signal %d", r->status - 128);
    return td_fail(TD_ERROR_RUNTIME, "compile", "%.160s failed%s: %s",
                   command, r->status < 0 ? " before its end" : how,
                   r->said);
}

bool td_run_command(char *const *arguments)
{
    const char *command = arguments[5];
    const int limit = td_environment_int("TREADLE_CC_SECONDS", 1, 3600,
                                         60);
    report r = { .status = -1 };
    pid_t child;
    line l;
    if (!open_line(&l))
        return false;
    const int error = spawn(&child, arguments, &l);
    hang_up(&l, 1);
    const bool ended = error == 0 && listen_to(l.words[0], limit, &r);
    if (error == 0 && !ended)
        send(l.leash[0], "\n", 1, MSG_NOSIGNAL);
    hang_up(&l, 0);
    while (error == 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (error != 0)
        return td_fail(TD_ERROR_UNSUPPORTED, "compile", "cannot run "
                       "/bin/sh: %s", strerror(error));
    return ended ? judge(command, &r)
        : td_fail(TD_ERROR_RUNTIME, "compile", "%.160s did not finish "
                  "in %d seconds", command, limit);
}

/* codegen: functions of the cache */
const char *td_setting(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

static bool name_cache(char *path)
{
    const char *asked = td_setting("TREADLE_CACHE");
    const char *shared = td_setting("XDG_CACHE_HOME");
    const char *home = td_setting("HOME");
    const int n = asked ? snprintf(path, PATH_MAX, "%s", asked)
        : shared && *shared == '/'
        ? snprintf(path, PATH_MAX, "%s/treadle", shared)
        : home ? snprintf(path, PATH_MAX, "%s/.cache/treadle", home)
        : snprintf(path, PATH_MAX, "/tmp/treadle-%u",
                   (unsigned)geteuid());
    char *last = strrchr(path, '/');
    if (asked == NULL && last > path) {
        *last = '\0';
        mkdir(path, 0700);
        *last = '/';
    }
    mkdir(path, 0700);
    return n < PATH_MAX;
}
enum { CACHE_ROOM = PATH_MAX - 96 };    /* names grow by less */

static bool is_private(const struct stat *s)
{
    return s->st_uid == geteuid() && (s->st_mode & 022) == 0;
}

static bool cannot(const char *what, const char *path)
{
    return td_fail(TD_ERROR_IO, "compile", "cannot %s %.200s: %s; set "
                   "TREADLE_CACHE", what, path, strerror(errno));
}

static bool cache_directory(char *real)
{
    char path[PATH_MAX];
    struct stat s;
    if (!name_cache(path) || lstat(path, &s) != 0)
        return cannot("use the cache", path);
    const bool planted = S_ISLNK(s.st_mode) && s.st_uid != geteuid();
    if (realpath(path, real) == NULL || lstat(real, &s) != 0
        || !S_ISDIR(s.st_mode) || planted || !is_private(&s))
        return td_fail(TD_ERROR_IO, "compile", "the cache %.200s is "
                       "not a folder that only we can write to (owner "
                       "%u, mode %o); set TREADLE_CACHE", path,
                       (unsigned)s.st_uid, (unsigned)s.st_mode & 07777);
    return strlen(real) < CACHE_ROOM
        || td_fail(TD_ERROR_IO, "compile", "the name of the cache "
                   "%.200s is too long; set TREADLE_CACHE", path);
}
enum { SEAL = 48 };

static bool seal_of(FILE *file, long end, const char *key,
                    char seal[SEAL + 1])
{
    uint64_t h = 14695981039346656037u;
    long bytes = fseek(file, end, SEEK_END) == 0 ? ftell(file) : -1;
    rewind(file);
    for (int c; bytes > 0 && (c = getc_unlocked(file)) != EOF;) {
        h = (h ^ (unsigned char)c) * 0x100000001b3u;
        bytes--;
    }
    snprintf(seal, SEAL + 1, "%016llx%.32s", (unsigned long long)h,
             key);
    return bytes == 0;
}

static bool written(const char *path, FILE *file, bool ok)
{
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    return ok || cannot("write", path);
}

static bool seal(const char *path, const char *key)
{
    char text[SEAL + 1];
    FILE *file = fopen(path, "r+");
    return written(path, file, file && seal_of(file, 0, key, text)
        && fseek(file, 0, SEEK_END) == 0 && fputs(text, file) >= 0
        && fchmod(fileno(file), 0700) == 0);
}
static bool is_sealed(const char *path, const char *key)
{
    char seal[SEAL + 1], found[SEAL + 1] = "";
    struct stat s;
    const int number = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK
                                  | O_CLOEXEC);
    FILE *file = number >= 0 ? fdopen(number, "r") : NULL;
    const bool ok = file != NULL && fstat(number, &s) == 0
        && S_ISREG(s.st_mode) && is_private(&s)
        && seal_of(file, -SEAL, key, seal)
        && fread(found, 1, SEAL, file) == SEAL
        && strcmp(seal, found) == 0;
    if (file != NULL)
        fclose(file);
    return ok;
}

static void *open_cached(const char *path, const char *key)
{
    void *library = is_sealed(path, key)
        ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL || dlsym(library, "treadle_stages") != NULL)
        return library;
    dlclose(library);
    return NULL;
}
bool td_write_source(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return written(path, file, file && fputs(text, file) >= 0);
}

static const char *compiler(void)
{
    const char *asked = td_setting("TREADLE_CC");
    return asked != NULL ? asked : "cc";
}
/* codegen: function td_instruction_set */
const char *td_instruction_set(void)
{
    static const char *const levels[] = {
        "-march=x86-64", "-march=x86-64-v2", "-march=x86-64-v3",
        "-march=x86-64-v4"
    };
    return TD_ISA_COUNT > 1 ? levels[td_process()->isa] : "-O3";
}

bool td_build_c(const char *folder, const char *text,
                const char *object)
{
    char source[PATH_MAX], library[PATH_MAX];
    snprintf(source, sizeof source, "%s/code.c", folder);
    snprintf(library, sizeof library, "%s/code.so", folder);
    char *const arguments[] = {
        TD_SHELL(folder), (char *)compiler(), "-O3",
        (char *)td_instruction_set(), "-fno-math-errno",
        "-fno-trapping-math", "-ffp-contract=fast", "-fPIC", "-shared",
        "-w", "-std=gnu11", "-o", library, source,
        (char *)(object ? object : "-lm"), "-lm", NULL
    };
    return td_write_source(source, text) && td_run_command(arguments);
}

/* codegen: function load_code */
static int remove_one(const char *path, const struct stat *s, int kind,
                      struct FTW *walk)
{
    (void)s, (void)kind, (void)walk;
    return remove(path);
}

static bool make_library(const char *cache, const char *path,
                         const char *key, const char *text,
                         td_build *build)
{
    char folder[CACHE_ROOM + 32], made[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s/build-XXXXXX", CACHE_ROOM,
             cache);
    if (mkdtemp(folder) == NULL)
        return cannot("write to", cache);
    snprintf(made, sizeof made, "%s/code.so", folder);
    if (build(folder, text, NULL) && seal(made, key)
        && rename(made, path) != 0)
        cannot("write", path);
    if (td_setting("TREADLE_MLIR_KEEP") == NULL)
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return !td_failed();
}
static void *load_code(const char *text, const char *tools,
                       td_build *build)
{
    char cache[PATH_MAX], path[PATH_MAX], key[40];
    uint64_t a = td_hash_text(td_hash_text(0, tools),
                              td_instruction_set());
    a = td_hash_text(a, text);
    snprintf(key, sizeof key, "%016llx%016llx", (unsigned long long)a,
             (unsigned long long)td_hash_text(a, text));
    if (!cache_directory(cache))
        return NULL;
    snprintf(path, sizeof path, "%.*s/%s.so", CACHE_ROOM, cache, key);
    void *library = open_cached(path, key);
    if (library == NULL && make_library(cache, path, key, text, build)
        && (library = open_cached(path, key)) == NULL)
        td_fail(TD_ERROR_RUNTIME, "compile",
                "%.200s made code that does not load", tools);
    return library;
}

/* codegen: struct frame */
typedef struct {
    const td_lowered *l;
    void **memory;              /* by value */
    td_tensor **tensor;         /* of leaves and results, by value */
    td_tensor **leaf;           /* as they were given */
    td_tensor **at;             /* operands and results of a call */
    int *owner;                 /* of storages that are written over */
    char *arena;
} frame;

/* codegen: functions that run stages */
static int *owner_of(const frame *f, int v)
{
    const td_storage *s = f->leaf[v]->storage;
    const uintptr_t places = (uintptr_t)f->l->program->n_values + 1;
    uintptr_t at = (uintptr_t)s / 64 % places;
    while (f->owner[at] > 0
           && f->leaf[f->owner[at] - 1]->storage != s)
        at = (at + 1) % places;
    return &f->owner[at];
}

static bool find_leaves(frame *f)
{
    const td_program *p = f->l->program;
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].update >= 0
            && f->l->value[p->value[v].update].buffer == v)
            *owner_of(f, v) = v + 1;
    for (int v = 0; v < p->n_values && !td_failed(); v++) {
        if (f->leaf[v] == NULL)
            continue;
        const int u = *owner_of(f, v) - 1;
        f->tensor[v] = u >= 0 && u != v ? td_clone(f->leaf[v])
                     : td_contiguous(f->leaf[v]);
    }
    return !td_failed();
}
static bool find_memory(frame *f, const td_program *given,
                        td_tensor *const *at)
{
    const td_program *p = f->l->program;
    for (int v = 0, k = 0; v < p->n_values; v++) {
        f->leaf[v] = p->value[v].tensor;
        if (f->leaf[v] || p->value[v].origin == TD_IR_RESULT)
            continue;
        while (given->value[k].origin == TD_IR_RESULT
               || given->value[k].tensor != NULL)
            k++;
        f->leaf[v] = at[k++];
    }
    if (!find_leaves(f))
        return false;
    for (int v = 0; v < p->n_values && !td_failed(); v++) {
        const td_placed *x = &f->l->value[v];
        if (x->buffer == v && x->kind != TD_CALL)
            f->tensor[v] = td_tensor_like(x->like, x->like->dtype);
        if (f->tensor[v] != NULL)
            f->memory[v] = td_at(f->tensor[v]);
        else if (x->place >= 0)
            f->memory[v] = f->arena + x->place;
    }
    for (int v = 0; v < p->n_values; v++) {
        int own = v;
        for (int to; (to = f->l->value[own].buffer) >= 0 && to != own;)
            own = to;
        f->memory[v] = f->memory[own];
    }
    return !td_failed();
}
static td_tensor *tensor_at(const frame *f, int v)
{
    const td_tensor *like = f->l->value[v].like;
    td_dims strides = { like->rank, { 0 } };
    memcpy(strides.at, like->strides, sizeof strides.at);
    char *data = f->memory[f->l->value[v].root];
    return td_from_memory(data + like->offset
            * (int64_t)td_dtype_size(like->dtype), td_shape_of(like),
        strides, TD_OF(like->dtype),
        NULL, NULL);
}

static char *address(const frame *f, const td_load *x)
{
    return (char *)f->memory[x->value]
         + x->offset * (int64_t)td_dtype_size(x->type);
}

static bool run_product(const frame *f, const td_stage *s)
{
    const td_load *a = &s->load[0], *b = &s->load[1];
    const td_product g = {
        .m = s->full[0], .n = s->full[1], .k = s->full[2], .alpha = 1,
        .a = address(f, a), .rsa = a->stride[0], .csa = a->stride[2],
        .b = address(f, b), .rsb = b->stride[2], .csb = b->stride[1],
        .c = f->memory[s->out], .ldc = s->full[1] };
    return td_gemm(s->type, &g);
}
static bool is_as_planned(const td_tensor *y, const td_tensor *like)
{
    return atomic_load(&y->storage->count) == 1
        && td_ir_same_layout(y, like);
}

static bool take_result(frame *f, int v)
{
    td_tensor *y = f->at[v], *own = y;
    const td_placed *x = &f->l->value[v];
    if (x->buffer >= 0 && x->buffer != v) { /* changed in place */
        f->memory[v] = f->memory[x->buffer];
        return true;
    }
    if (!is_as_planned(y, x->like))
        own = td_tensor_new(TD_DIMS(x->like->storage->bytes
            / (int64_t)td_dtype_size(y->dtype)), y->dtype,
            y->storage->device);
    if (own == NULL)
        return false;
    f->tensor[v] = td_retain(own);
    f->memory[v] = own->storage->data;
    return own == y || td_copy_elements(tensor_at(f, v), y);
}
static bool run_call(frame *f, const td_ir_step *step)
{
    const td_lowered *l = f->l;
    unsigned in_place = 0;
    int n = 0;
    td_scope_begin();
    for (int k = 0; k < step->n_values; k++) {
        const int v = step->value[k];
        f->at[v] = l->value[v].root == v && f->tensor[v]
            && is_as_planned(f->tensor[v], l->value[v].like)
             ? f->tensor[v] : tensor_at(f, v);
    }
    for (int i = 0; i < step->n_in; i++) {
        const td_ir_operand *o = &step->in[i];
        if (o->count > 0 && td_traits_of(step->op)->mutated >> i & 1)
            in_place |= (unsigned)(l->value[step->out[n++]].buffer
                                   == o->values[0]) << i;
    }
    bool ok = !td_failed() && td_ir_replay(step, f->at, in_place);
    for (int k = 0; ok && k < step->n_out; k++)
        ok = take_result(f, step->out[k]);
    td_scope_end();
    return ok;
}

static bool run_loop(const frame *f, const td_stage *s,
                     td_stage_body *body)
{
    void *memory[TD_LOADS + 1];
    int64_t work = 1;
    for (int k = 0; k <= s->n_loads; k++)
        memory[k] = f->memory[s->load[k].value];
    for (int d = 1; d < s->rank; d++)
        work *= s->size[d];
    return td_parallel_for(s->size[0], STAGE_GRAIN / work + 1, body,
                           memory);
}
static bool run_stage(frame *f, const td_code *c, int n)
{
    const td_stage *s = &f->l->stage[n];
    if (s->kind == TD_CALL)
        return run_call(f, s->step);
    if (s->kind == TD_PRODUCT && !c->by->products)
        return run_product(f, s);
    if (c->by->whole)
        return c->stages[n] == NULL || c->stages[n](f->memory, 0, 1, 0);
    return run_loop(f, s, c->stages[n]);
}
static void bury(frame *f, int v)
{
    if (f->l->value[v].kind != TD_CALL)
        return;
    td_release(f->tensor[v]);
    f->tensor[v] = NULL;
}

static bool run_stages(frame *f, const td_code *c)
{
    const td_lowered *l = f->l;
    for (int n = 0; n < l->n_stages && run_stage(f, c, n); n++)
        for (int v = l->stage[n].dying; v >= 0;
             v = l->value[v].next_dying)
            bury(f, v);
    return !td_failed();
}
static bool leave(frame *f, td_tensor **outputs)
{
    const td_program *p = f->l->program;
    for (int k = 0; k < p->n_outputs && !td_failed(); k++) {
        const int v = p->output[k];
        td_tensor *y = f->l->value[v].buffer == v ? f->tensor[v] : NULL;
        const bool own = y && is_as_planned(y, f->l->value[v].like);
        if (own)
            f->tensor[v] = NULL;
        if (own && f->l->value[v].kind == TD_CALL)
            td_adopt(y);
        outputs[k] = own ? y : td_clone(tensor_at(f, v));
    }
    for (int v = 0; v < p->n_values && !td_failed(); v++) {
        const int u = p->value[v].update;
        if (u < 0)
            continue;
        td_tensor *old = f->leaf[v];
        if (f->l->value[u].buffer != v)
            td_copy_(old, tensor_at(f, u));
        else if (old->storage != f->tensor[v]->storage)
            td_copy_(old, f->tensor[v]);
        else
            td_bump_version(old);
    }
    return !td_failed();
}

bool td_run_code(void *compiled, td_program *p, td_tensor **at,
                 td_tensor **outputs)
{
    const td_code *c = compiled;
    const td_lowered *l = c->l;
    const size_t values = (size_t)l->program->n_values + 1;
    const size_t arena = (size_t)l->bytes + 1;
    void **table = TD_ARRAY(table, 5 * values);
    if (table == NULL)
        return false;
    frame f = { .l = l, .arena = td_storage_alloc(arena),
        .memory = table, .tensor = (td_tensor **)table + values,
        .leaf = (td_tensor **)table + 2 * values,
        .at = (td_tensor **)table + 3 * values,
        .owner = (int *)(table + 4 * values) };
    if (f.arena && find_memory(&f, p, at) && run_stages(&f, c))
        leave(&f, outputs);
    for (int v = 0; v < l->program->n_values; v++)
        bury(&f, v);
    td_storage_free(f.arena, arena);
    TD_FREE_ARRAY(table, 5 * values);
    return !td_failed();
}

/* codegen: functions of the C back end */
void td_release_code(void *compiled)
{
    td_code *c = compiled;
    if (c->library != NULL)
        dlclose(c->library);
    td_lowered_free(c->l);
    td_free(c, sizeof *c);
}

void *td_compile_code(const td_backend *b, td_program *p)
{
    const td_code_backend *by = (const td_code_backend *)b;
    char tools[PATH_MAX];
    td_code *c = by->find(tools, sizeof tools) ? td_alloc(sizeof *c)
                                               : NULL;
    if (c == NULL)
        return NULL;
    c->by = by;
    char *text = (c->l = td_lower(p)) == NULL ? NULL
               : by->emit(c->l, by->products);
    if (!td_failed() && text != NULL)
        c->library = load_code(text, tools, by->build);
    free(text);
    if (c->library != NULL) {
        c->stages = dlsym(c->library, "treadle_stages");
        return c;
    }
    td_release_code(c);
    return NULL;
}

int64_t td_print_code(const void *compiled, char *out, int64_t room)
{
    return td_lowered_print(((const td_code *)compiled)->l, out, room);
}

static bool find_compiler(char *tools, size_t room)
{
    snprintf(tools, room, "%s", compiler());
    return true;
}

const td_code_backend td_c_backend = {
    { "c", td_compile_code, td_run_code, td_release_code,
      td_print_code },
    td_emit_c, find_compiler, td_build_c, false, false
};
