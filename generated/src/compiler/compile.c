/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "programs": edit that, not this file. */
/* Back ends, and what they make. */
#include "compiler/ir.h"
/* codegen: includes of back ends */
#include "compiler/backend-c.h"
/* tools: includes of back ends */
#include "compiler/backend-mlir.h"

/* programs: back end that interprets */
static const td_backend td_interpreter_backend = {
    .name = "interpreter", .run = td_interpret
};

static const td_backend *const td_backends[] = {
    /* codegen: back ends */
    &td_c_backend.head,
    /* tools: back ends */
    &td_mlir_backend.head, &td_mlir_loops_backend.head,
    &td_interpreter_backend, NULL
};

/* programs: class of executables */
TD_CLASS(executable, td_executable, e)
{
    if (e->code != NULL)
        e->backend->release(e->code);
    td_release(e->program);
}

/* programs: function td_compile */
td_executable *td_compile(td_program *p, td_compile_options options)
{
    td_executable *e = NULL;
    const char *wanted = options.backend;
    if (td_failed() || !td_program_verify(p)
        || (e = td_object_new(&executable_class, sizeof *e)) == NULL)
        return NULL;
    e->program = td_retain(p);
    snprintf(e->name, sizeof e->name, "%s",
             options.name != NULL ? options.name : "program");
    for (const td_backend *const *b = td_backends; *b != NULL; b++) {
        if (wanted != NULL && strcmp(wanted, (*b)->name) != 0)
            continue;
        e->backend = *b;
        if ((*b)->compile == NULL
            || (e->code = (*b)->compile(*b, p)) != NULL)
            return e;
        if (wanted != NULL || td_error() == TD_ERROR_MEMORY)
            break;
        if (e->note[0] == '\0')
            snprintf(e->note, sizeof e->note, "%s", td_error_message());
        td_error_clear();
    }
    if (!td_failed())
        td_fail(TD_ERROR_VALUE, "compile", "there is no back end '%s'",
                wanted);
    td_discard(e);
    return NULL;
}

/* programs: function td_execute */
bool td_execute(td_executable *e, td_tensor *const *inputs, int n,
                td_tensor **outputs)
{
    if (e == NULL)
        return td_fail(TD_ERROR_VALUE, "execute",
                       "the executable is NULL");
    if (td_failed())
        return false;
    TD_EACH(k, e->program, returned)
        outputs[k] = NULL;
    /* seeing: watch a program begin */
    const bool watched = td_process_state.profiled
                      && td_event_begin(e->name, TD_EVENT_FORWARD);
    const bool ok = td_ir_run(td_self()->trace != NULL ? td_interpret
                              : e->backend->run, e->code, e->program,
                              inputs, n, outputs);
    /* seeing: watch a program end */
    if (watched)
        td_event_end();
    return ok;
}

const char *td_executable_backend(const td_executable *e)
{
    return e->backend->name;
}

const char *td_executable_note(const td_executable *e)
{
    return e->note;
}

/* programs: function td_executable_print */
int64_t td_executable_print(const td_executable *e, char *buffer,
                            int64_t capacity)
{
    return e->backend->print != NULL
        ? e->backend->print(e->code, buffer, capacity)
        : td_program_print(e->program, buffer, capacity);
}
