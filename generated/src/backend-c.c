/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* The C back end: a compiler, a cache, a run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <treadle/treadle.h>
#include "backend-c.h"
#include "isa.h"

enum { STAGE_GRAIN = 32 * 1024 };

/* codegen: functions that run the compiler */
static bool wait_for(pid_t child, int seconds, int *status)
{
    const struct timespec pause = { 0, 2 * 1000 * 1000 };
    for (int64_t n = 0; n < (int64_t)seconds * 500; n++) {
        const pid_t done = waitpid(child, status, WNOHANG);
        if (done != 0)
            return done == child;
        nanosleep(&pause, NULL);
    }
    kill(-child, SIGKILL);
    waitpid(child, status, 0);
    return false;
}
static void quote_log(const char *command, const char *path)
{
    char log[160] = "";
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(log, 1, sizeof log - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    log[n] = '\0';
    for (char *c = log; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    td_fail(TD_ERROR_RUNTIME, "compile", "%s failed: %s", command, log);
}

bool td_run_command(char *const *arguments, const char *log)
{
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    const int limit = td_environment_int("TREADLE_CC_SECONDS", 1, 3600,
                                         60);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log,
                                     O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error = posix_spawnp(&child, arguments[0], &files,
                                   &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0)
        return td_fail(TD_ERROR_UNSUPPORTED, "compile", "cannot run "
                       "%s: %s", arguments[0], strerror(error));
    if (!wait_for(child, limit, &status))
        return td_fail(TD_ERROR_RUNTIME, "compile", "%s did not finish "
                       "in %d seconds", arguments[0], limit);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    quote_log(arguments[0], log);
    return false;
}

/* codegen: functions of the cache */
static uint64_t hash(uint64_t h, const char *text)
{
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static bool cache_directory(char *path, size_t size)
{
    const char *asked = getenv("TREADLE_CACHE");
    const char *home = getenv("HOME");
    const bool given = asked != NULL && *asked != '\0';
    int n = snprintf(path, size, "%s%s", given ? asked
                     : home ? home : "/tmp", given ? "" : "/.cache");
    if (n < (int)size)
        mkdir(path, 0700);
    if (!given && n < (int)size) {
        n += snprintf(path + n, size - (size_t)n, "/treadle");
        mkdir(path, 0700);
    }
    if (n >= (int)size)
        return td_fail(TD_ERROR_IO, "compile", "the cache's directory "
                       "has too long a name; set TREADLE_CACHE");
    return access(path, W_OK | X_OK) == 0
        || td_fail(TD_ERROR_IO, "compile", "cannot write to %s: %s; "
                   "set TREADLE_CACHE", path, strerror(errno));
}
enum { SEAL = 48 };

static bool seal_of(FILE *file, int64_t bytes, const char *key,
                    char seal[SEAL + 1])
{
    uint64_t h = 14695981039346656037u;
    rewind(file);
    for (int c; bytes > 0 && (c = getc_unlocked(file)) != EOF;) {
        h = (h ^ (unsigned char)c) * 0x100000001b3u;
        bytes--;
    }
    snprintf(seal, SEAL + 1, "%016llx%.32s", (unsigned long long)h,
             key);
    return bytes == 0;
}

bool td_seal(const char *path, const char *key)
{
    char seal[SEAL + 1];
    FILE *file = fopen(path, "r+");
    bool ok = file != NULL && fseek(file, 0, SEEK_END) == 0
           && seal_of(file, ftell(file), key, seal)
           && fseek(file, 0, SEEK_END) == 0 && fputs(seal, file) >= 0;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    return ok || td_fail(TD_ERROR_IO, "compile", "cannot write %s: %s",
                         path, strerror(errno));
}
static bool is_sealed(const char *path, const char *key)
{
    char seal[SEAL + 1], found[SEAL + 1] = "";
    FILE *file = fopen(path, "r");
    const bool ok = file != NULL && fseek(file, -SEAL, SEEK_END) == 0
        && seal_of(file, ftell(file), key, seal)
        && fread(found, 1, SEAL, file) == SEAL
        && strcmp(seal, found) == 0;
    if (file != NULL)
        fclose(file);
    return ok;
}

void *td_open_cached(const char *path, const char *key,
                     const char *symbol)
{
    void *library = is_sealed(path, key)
        ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL || dlsym(library, symbol) != NULL)
        return library;
    dlclose(library);
    return NULL;
}
bool td_write_source(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool ok = file != NULL && fputs(text, file) >= 0;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    return ok || td_fail(TD_ERROR_IO, "compile", "cannot write %s: %s",
                         path, strerror(errno));
}

const char *td_compiler(void)
{
    const char *asked = getenv("TREADLE_CC");
    return asked != NULL && *asked != '\0' ? asked : "cc";
}

static bool build_c(const char *base, const char *march,
                    const char *text)
{
    char source[320], object[320], log[320];
    snprintf(source, sizeof source, "%s.c", base);
    snprintf(object, sizeof object, "%s.tmp", base);
    snprintf(log, sizeof log, "%s.log", base);
    char *const arguments[] = {
        (char *)td_compiler(), "-O3", (char *)march, "-fno-math-errno",
        "-fno-trapping-math", "-ffp-contract=fast", "-fPIC", "-shared",
        "-w", "-std=gnu11", "-o", object, source, "-lm", NULL
    };
    const bool ok = td_write_source(source, text)
        && td_run_command(arguments, log);
    unlink(source);
    unlink(log);
    return ok;
}

/* codegen: function td_load_code */
static const char *instruction_set(void)
{
    static const char *const levels[] = {
        "-march=x86-64-v2", "-march=x86-64-v3", "-march=x86-64-v4"
    };
    return TD_ISA_COUNT == 3 ? levels[td_process()->isa] : "-O3";
}
void *td_load_code(const char *text, const char *tools, td_build *build)
{
    const char *march = instruction_set();
    char directory[200], base[288], path[264], key[40];
    uint64_t a = hash(hash(hash(14695981039346656037u, tools), march),
                      text);
    snprintf(key, sizeof key, "%016llx%016llx", (unsigned long long)a,
             (unsigned long long)hash(a ^ 0x9e3779b97f4a7c15u, text));
    if (!cache_directory(directory, sizeof directory))
        return NULL;
    snprintf(path, sizeof path, "%s/%s.so", directory, key);
    void *library = td_open_cached(path, key, "treadle_stages");
    if (library != NULL)
        return library;
    snprintf(base, sizeof base, "%s/%s.%d", directory, key,
             (int)getpid());
    const bool built = build(base, march, text);
    snprintf(base + strlen(base), 8, ".tmp");
    if (built && td_seal(base, key) && rename(base, path) != 0)
        td_fail(TD_ERROR_IO, "compile", "cannot write %s: %s", path,
                strerror(errno));
    unlink(base);
    if (td_failed())
        return NULL;
    if ((library = td_open_cached(path, key, "treadle_stages")) == NULL)
        td_fail(TD_ERROR_RUNTIME, "compile",
                "%s made code that does not load", tools);
    return library;
}

/* codegen: struct frame */
typedef struct {
    const td_lowered *l;
    void **memory;              /* by value */
    td_tensor **tensor;         /* of leaves and results, by value */
    td_tensor **leaf;           /* as they were given */
    char *arena;
} frame;

/* codegen: functions that run stages */
static bool is_overwritten(const frame *f, int v)
{
    const td_program *p = f->l->program;
    for (int u = 0; u < p->n_values; u++)
        if (u != v && p->value[u].update >= 0
            && f->l->value[p->value[u].update].buffer == u
            && f->tensor[u]->storage == f->leaf[v]->storage)
            return true;
    return false;
}
static bool find_memory(frame *f, td_tensor *const *inputs)
{
    const td_program *p = f->l->program;
    int input = 0;
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].origin != TD_IR_RESULT)
            f->tensor[v] = f->leaf[v] = p->value[v].tensor
                ? p->value[v].tensor : inputs[input++];
    for (int v = 0; v < p->n_values && !td_failed(); v++) {
        const td_placed *x = &f->l->value[v];
        if (x->kind == TD_LEAF) {
            f->tensor[v] = is_overwritten(f, v) ? td_clone(f->leaf[v])
                         : td_contiguous(f->leaf[v]);
        } else if (x->buffer == v) {
            f->tensor[v] = td_tensor_new(td_shape_of(x->like),
                                         x->like->dtype,
                                         x->like->storage->device);
        }
        if (f->tensor[v] != NULL)
            f->memory[v] = td_at(f->tensor[v]);
        else if (x->place >= 0)
            f->memory[v] = f->arena + x->place;
    }
    f->memory[p->n_values] = f->arena + f->l->bytes;
    for (int v = 0; v < p->n_values; v++) {
        int at = v;
        for (int to; (to = f->l->value[at].buffer) >= 0 && to != at;)
            at = to;
        f->memory[v] = f->memory[at];
    }
    return !td_failed();
}
td_product td_product_of(const td_lowered *l, const td_ir_step *step)
{
    const td_tensor *a = l->value[step->in[0].value].like;
    const td_tensor *b = l->value[step->in[1].value].like;
    return (td_product){ .m = a->shape[0], .n = b->shape[1],
        .k = a->shape[1], .alpha = 1, .rsa = a->strides[0],
        .csa = a->strides[1], .rsb = b->strides[0],
        .csb = b->strides[1], .ldc = b->shape[1] };
}
static td_tensor *tensor_at(const frame *f, int v)
{
    const td_tensor *like = f->l->value[v].like;
    td_dims strides = { like->rank, { 0 } };
    memcpy(strides.at, like->strides, sizeof strides.at);
    char *data = f->memory[f->l->value[v].root];
    return td_from_memory(data + like->offset
            * (int64_t)td_dtype_size(like->dtype), td_shape_of(like),
        strides, (td_tensor_options){ .dtype = like->dtype },
        NULL, NULL);
}

static bool run_product(const frame *f, const td_ir_step *step)
{
    const td_placed *a = &f->l->value[step->in[0].value];
    const td_placed *b = &f->l->value[step->in[1].value];
    const int64_t size = (int64_t)td_dtype_size(a->like->dtype);
    td_product g = td_product_of(f->l, step);
    g.a = (char *)f->memory[a->root] + a->like->offset * size;
    g.b = (char *)f->memory[b->root] + b->like->offset * size;
    g.c = f->memory[step->out[0]];
    return td_gemm(a->like->dtype, &g);
}
static bool run_call(const frame *f, const td_ir_step *step)
{
    td_tensor **at = td_alloc_array((size_t)f->l->program->n_values + 1,
                                    sizeof *at);
    if (at == NULL)
        return false;
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i].kind == TD_TENSOR)
            at[step->in[i].value] = tensor_at(f, step->in[i].value);
        for (int k = 0; k < step->in[i].count; k++)
            at[step->in[i].values[k]]
                = tensor_at(f, step->in[i].values[k]);
    }
    bool ok = !td_failed() && td_ir_replay(step, at);
    for (int k = 0; ok && k < step->n_out; k++) {
        td_tensor *to = tensor_at(f, step->out[k]);
        ok = to != NULL && td_copy_elements(to, at[step->out[k]]);
    }
    td_free(at, ((size_t)f->l->program->n_values + 1) * sizeof *at);
    return ok;
}

static bool run_stage(const frame *f, const td_code *c, int n)
{
    const td_stage *s = &f->l->stage[n];
    const td_ir_step *step = &f->l->program->step[s->step];
    if (s->kind == TD_CALL)
        return run_call(f, step);
    if (c->whole)
        return c->stages[n] == NULL || c->stages[n](f->memory, 0, 1, 0);
    if (s->kind == TD_PRODUCT)
        return run_product(f, step);
    int64_t work = 1;
    for (int d = 1; d < s->rank; d++)
        work *= s->size[d];
    return td_parallel_for(s->size[0], STAGE_GRAIN / work + 1,
                           c->stages[n], f->memory);
}
static bool leave(const frame *f, td_tensor **outputs)
{
    const td_program *p = f->l->program;
    for (int k = 0; k < p->n_outputs && !td_failed(); k++) {
        const int v = p->output[k];
        const bool own = f->l->value[v].buffer == v && f->tensor[v];
        outputs[k] = td_keep(own ? td_share(f->tensor[v])
                                 : td_clone(tensor_at(f, v)));
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

bool td_run_code(void *compiled, td_program *program,
                 td_tensor *const *inputs, int n, td_tensor **outputs)
{
    const td_code *c = compiled;
    const td_lowered *l = c->l;
    const size_t values = (size_t)l->program->n_values + 1;
    const size_t arena = (size_t)(l->bytes + c->scratch) + 1;
    frame f = { .l = l };
    (void)program;
    (void)n;
    td_no_grad_begin();
    td_scope_begin();
    f.tensor = td_alloc_array(3 * values, sizeof *f.tensor);
    f.arena = td_storage_alloc(arena);
    f.leaf = f.tensor ? f.tensor + values : NULL;
    f.memory = f.tensor ? (void **)(f.leaf + values) : NULL;
    if (f.tensor && f.arena && find_memory(&f, inputs))
        for (int k = 0; k < l->n_stages && run_stage(&f, c, k); k++)
            ;
    if (!td_failed())
        leave(&f, outputs);
    td_storage_free(f.arena, arena);
    td_free(f.tensor, 3 * values * sizeof *f.tensor);
    td_scope_end();
    td_no_grad_end();
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

void *td_compile_code(td_program *p, td_emit *emit, const char *tools,
                      td_build *build)
{
    int room = 0;
    td_code *c = td_alloc(sizeof *c);
    if (c == NULL)
        return NULL;
    char *text = (c->l = td_lower(p)) == NULL ? NULL
               : emit(c->l, &room);
    if (!td_failed() && text != NULL)
        c->library = td_load_code(text, tools, build);
    td_free(text, (size_t)room);
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

static void *compile_c(td_program *p)
{
    return td_compile_code(p, td_emit_c, td_compiler(), build_c);
}

const td_backend td_c_backend = {
    "c", compile_c, td_run_code, td_release_code, td_print_code
};
