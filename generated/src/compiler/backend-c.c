/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* The C back end: a compiler, a cache, a run. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
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
static int spawn(pid_t *child, char *const *arguments, int end)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    for (int file = 1; file <= 3; file++)
        posix_spawn_file_actions_adddup2(&files, end, file);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP
        | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
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

static bool listen_to(int line, int seconds, report *r)
{
    const int64_t end = milliseconds() + (int64_t)seconds * 1000;
    char piece[4096];
    for (int64_t left; (left = end - milliseconds()) > 0; ) {
        struct pollfd file = { .fd = line, .events = POLLIN };
        if (poll(&file, 1, (int)left) <= 0)
            continue;
        const ssize_t n = read(line, piece, sizeof piece);
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
    int line[2];                /* our end, the command's end */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) != 0)
        return td_fail(TD_ERROR_IO, "compile", "cannot make a socket: "
                       "%s", strerror(errno));
    const int error = spawn(&child, arguments, line[1]);
    close(line[1]);
    const bool ended = error == 0 && listen_to(line[0], limit, &r);
    if (error == 0 && !ended)
        send(line[0], "\n", 1, MSG_NOSIGNAL);
    close(line[0]);
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

bool td_write_text(const char *path, const char *mode,
                   const char *text)
{
    FILE *file = fopen(path, mode);
    bool ok = file != NULL && fputs(text, file) >= 0;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    return ok || cannot("write", path);
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

static bool sealed(const char *path, const char *key, bool fresh)
{
    char seal[SEAL + 1], found[SEAL + 1];
    uint64_t h = 14695981039346656037u;
    struct stat s;
    const int number = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK
                                  | O_CLOEXEC);
    FILE *file = number >= 0 ? fdopen(number, "r") : NULL;
    if (file == NULL)
        return false;
    long bytes = fstat(number, &s) == 0 && S_ISREG(s.st_mode)
        && is_private(&s) ? (long)s.st_size - (fresh ? 0 : SEAL) : -1;
    for (int c; bytes > 0 && (c = getc_unlocked(file)) != EOF; bytes--)
        h = (h ^ (unsigned char)c) * 0x100000001b3u;
    snprintf(seal, SEAL + 1, "%016llx%.32s", (unsigned long long)h,
             key);
    found[fread(found, 1, SEAL, file)] = '\0';
    fclose(file);
    return bytes == 0 && (fresh ? td_write_text(path, "a", seal)
                                : strcmp(seal, found) == 0);
}
static void *open_cached(const char *path, const char *key)
{
    void *library = sealed(path, key, false)
                  ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL || dlsym(library, "treadle_stages") != NULL)
        return library;
    dlclose(library);
    return NULL;
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
    return td_write_text(source, "w", text)
        && td_run_command(arguments);
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
    if (build(folder, text, NULL)
        && (chmod(made, 0700) != 0 || !sealed(made, key, true)
            || rename(made, path) != 0))
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
    td_tensor *arena;           /* of what runs as one function */
} frame;

/* codegen: functions that run stages */
static bool find_leaves(frame *f, const td_program *given,
                        td_tensor *const *at)
{
    const td_program *p = f->l->program;
    for (int v = 0, k = 0; v < p->n_values && !td_failed(); v++) {
        td_tensor *x = p->value[v].tensor;
        if (x == NULL && p->value[v].origin != TD_IR_RESULT) {
            /* codegen: go on to the next input of the given program */
            while (given->value[k].origin == TD_IR_RESULT
                   || given->value[k].tensor != NULL)
                k++;
            x = at[k++];
        }
        if (x == NULL)
            continue;
        f->leaf[v] = td_tensor_alias(x);
        f->tensor[v] = td_contiguous(f->leaf[v]);
        if (f->tensor[v])
            f->memory[v] = td_at(f->tensor[v]);
    }
    return !td_failed();
}
static void find_memory(frame *f, const td_stage *s)
{
    const int v = f->l->value[s->out].root;
    const td_placed *x = &f->l->value[v];
    int own = v;
    for (; x->buffer >= 0 && x->buffer != own; x = &f->l->value[own])
        own = x->buffer;
    char *at = f->memory[own];
    if (!at && f->arena && x->place >= 0)
        at = (char *)td_at(f->arena) + x->place;
    td_scope_barrier_begin();
    if (!at && (f->tensor[own] = td_tensor_like(x->like, s->type)))
        at = td_at(f->tensor[own]);
    td_scope_barrier_end();
    f->memory[v] = f->memory[own] = at;
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
static void find_operands(frame *f, const td_ir_step *step)
{
    TD_EACH(k, step, values) {
        const int v = step->value[k];
        const td_placed *x = &f->l->value[v];
        f->at[v] = x->root == v && f->tensor[v]
            && td_ir_same_layout(f->tensor[v], x->like)
             ? f->tensor[v] : tensor_at(f, v);
    }
}

static bool run_call(frame *f, const td_ir_step *step)
{
    const td_lowered *l = f->l;
    unsigned in_place = 0;
    int n = 0;
    td_scope_begin();
    TD_EACH(i, step, in) {
        const td_ir_operand *o = &step->in[i];
        if (o->count > 0 && td_traits_of(step->op)->mutated >> i & 1)
            in_place |= (unsigned)(l->value[step->out[n++]].buffer
                == l->value[o->values[0]].root) << i;
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
static void hand_over(frame *f, td_tensor **outputs)
{
    const td_program *p = f->l->program;
    for (int k = 0; k < p->n_outputs && !td_failed(); k++) {
        const int v = p->output[k];
        td_tensor *y = f->l->value[v].buffer == v ? f->tensor[v] : NULL;
        const bool own = y && is_as_planned(y, f->l->value[v].like);
        if (own)
            f->tensor[v] = NULL;
        outputs[k] = own ? td_adopt(y) : td_clone(tensor_at(f, v));
    }
    TD_EACH(v, p, values) {
        const int u = p->value[v].update;
        if (u >= 0 && f->l->value[u].buffer != v)
            f->at[u] = tensor_at(f, u);
    }
}

static void bury(frame *f, int v)
{
    if (f->l->value[v].kind == TD_LEAF)
        return;
    td_release(f->tensor[v]);
    f->tensor[v] = NULL;
}

static bool run_stages(frame *f, const td_code *c, td_tensor **outputs)
{
    const td_lowered *l = f->l;
    for (int n = 0, found = 0;; n++) {
        /* codegen: find memory for what is written next */
        for (; found < l->n_stages && (found <= n || n >= l->writes
               || (c->by->whole && l->stage[found].kind != TD_CALL)); found++) {
            if (l->stage[found].kind != TD_CALL)
                find_memory(f, &l->stage[found]);
            else
                find_operands(f, l->stage[found].step);
        }
        if (n == l->writes)
            hand_over(f, outputs);
        if (td_failed() || n == l->n_stages || !run_stage(f, c, n))
            return !td_failed();
        for (int v = l->stage[n].dying; v >= 0;
             v = l->value[v].next_dying)
            bury(f, v);
    }
}
static void write_updates(const frame *f)
{
    const td_program *p = f->l->program;
    for (int v = 0; v < p->n_values && !td_failed(); v++) {
        const int u = p->value[v].update;
        if (u < 0)
            continue;
        td_tensor *old = f->leaf[v], *now = f->l->value[u].buffer == v
                                          ? f->tensor[v] : f->at[u];
        if (old->storage != now->storage)
            td_copy_(old, now);
        else
            td_bump_version(old);
    }
}

bool td_run_code(void *compiled, td_program *p, td_tensor **at,
                 td_tensor **outputs)
{
    const td_code *c = compiled;
    const td_lowered *l = c->l;
    const size_t values = (size_t)l->program->n_values + 1;
    void **table = TD_ARRAY(table, 4 * values);
    if (table == NULL)
        return false;
    frame f = { .l = l, .memory = table,
        .arena = !c->by->whole ? NULL
            : td_tensor_new(TD_DIMS(l->bytes), TD_UINT8,
                            TD_CPU),
        .tensor = (td_tensor **)table + values,
        .leaf = (td_tensor **)table + 2 * values,
        .at = (td_tensor **)table + 3 * values };
    if (find_leaves(&f, p, at) && run_stages(&f, c, outputs))
        write_updates(&f);
    TD_EACH(v, l->program, values)
        bury(&f, v);
    TD_FREE_ARRAY(table, 4 * values);
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
