/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tools": edit that, not this file. */
/* The MLIR back end: four tools and a linker. */
#include <limits.h>
#include <unistd.h>
#include "compiler/backend-mlir.h"

/* tools: table of the tools */
typedef struct {
    const char *tool, *from, *to;
    const char *flags[12];
} command;

static const command commands[] = {
    { "mlir-opt", "mlir", "low.mlir", {
        "--test-math-polynomial-approximation", "--lower-affine",
        "--convert-scf-to-cf", "--convert-math-to-llvm",
        "--convert-math-to-libm", "--convert-vector-to-llvm",
        "--convert-arith-to-llvm", "--convert-memref-to-llvm",
        "--convert-func-to-llvm=use-bare-ptr-memref-call-conv=1",
        "--convert-cf-to-llvm", "--reconcile-unrealized-casts" } },
    { "mlir-translate", "low.mlir", "ll", { "--mlir-to-llvmir" } },
    { "opt", "ll", "best.ll", { "-O3", "-S", "CPU" } },
    { "llc", "best.ll", "o", { "-O3", "--relocation-model=pic",
        "--fp-contract=fast", "--filetype=obj", "CPU" } },
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

/* tools: functions that run the tools */
static bool find_in(const char *folders, const char *tool,
                    const char *ending, char *path, size_t size)
{
    while (folders != NULL && *folders != '\0') {
        const int n = (int)strcspn(folders, ":");
        if (snprintf(path, size, "%.*s/%s%s", n, folders, tool, ending)
                < (int)size && access(path, X_OK) == 0)
            return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

static bool find_tool(const char *tool, char *path, size_t size)
{
    const char *asked = td_setting("TREADLE_MLIR_BIN");
    if (find_in(asked ? asked : getenv("PATH"), tool, "-15", path, size)
        || find_in(asked, tool, "", path, size))
        return true;
    return td_fail(TD_ERROR_UNSUPPORTED, "compile", "the mlir back end "
        "needs %s-15, which is not in %s; install mlir-15-tools and "
        "llvm-15 or set TREADLE_MLIR_BIN", tool,
        asked ? asked : "the PATH");
}
static bool run_tool(const command *c, const char *folder)
{
    const char *march = td_instruction_set();
    char tool[PATH_MAX], from[PATH_MAX], to[PATH_MAX], cpu[40];
    char *arguments[24] = { TD_SHELL(folder), tool, from };
    int n = 7;
    if (!find_tool(c->tool, tool, sizeof tool))
        return false;
    const bool named = strncmp(march, "-march=", 7) == 0;
    snprintf(cpu, sizeof cpu, "-mcpu=%s", named ? march + 7
             : "generic");
    snprintf(from, sizeof from, "%s/code.%s", folder, c->from);
    snprintf(to, sizeof to, "%s/code.%s", folder, c->to);
    for (int i = 0; i < 12 && c->flags[i] != NULL; i++)
        arguments[n++] = strcmp(c->flags[i], "CPU") == 0 ? cpu
                       : (char *)c->flags[i];
    arguments[n++] = "-o";
    arguments[n] = to;
    return td_run_command(arguments);
}
static bool build_mlir(const char *folder, const char *text,
                       const char *unused)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/code.mlir", folder);
    bool ok = td_write_text(path, "w", text);
    for (int i = 0; ok && i < N_COMMANDS; i++)
        ok = run_tool(&commands[i], folder);
    (void)unused;
    snprintf(path, sizeof path, "%s/code.o", folder);
    return ok && td_build_c(folder, text + strlen(text) + 1, path);
}

/* tools: functions of the MLIR back end */
static bool find_tools(char *path, size_t size)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (!find_tool(commands[i].tool, path, size))
            return false;
    return true;
}

const td_code_backend td_mlir_backend = {
    { "mlir", td_compile_code, td_run_code, td_release_code,
      td_print_code },
    td_emit_mlir, find_tools, build_mlir, true, false
}, td_mlir_loops_backend = {
    { "mlir-loops", td_compile_code, td_run_code, td_release_code,
      td_print_code },
    td_emit_mlir, find_tools, build_mlir, true, true
};
