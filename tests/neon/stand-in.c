/* What the C tests need of cmocka and zlib, for a machine whose own
   libraries are not at hand: Debian has compilers for ARM, but no cmocka
   and no zlib to link with.  Reports in TAP; nothing is inflated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { SKIPPED = 1, FAILED = 2 };
static jmp_buf test_left;

void _skip(const char *file, int line)
{
    printf("# skipped at %s:%d\n", file, line);
    longjmp(test_left, SKIPPED);
}

void _fail(const char *file, int line)
{
    printf("# %s:%d: failed\n", file, line);
    longjmp(test_left, FAILED);
}

static void print_lines(const char *format, va_list arguments)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, arguments);
    printf("# %s\n", text);
}

void print_message(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_lines(format, arguments);
    va_end(arguments);
}

void print_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_lines(format, arguments);
    va_end(arguments);
}

void _assert_true(LargestIntegralType good, const char *what,
                  const char *file, int line)
{
    if (!good) {
        print_error("%s", what);
        _fail(file, line);
    }
}

static void compare(bool good, LargestIntegralType a, LargestIntegralType b,
                    const char *file, int line)
{
    if (!good) {
        print_error("%#jx, %#jx", a, b);
        _fail(file, line);
    }
}

void _assert_int_equal(LargestIntegralType a, LargestIntegralType b,
                       const char *file, int line)
{
    compare(a == b, a, b, file, line);
}

void _assert_int_not_equal(LargestIntegralType a, LargestIntegralType b,
                           const char *file, int line)
{
    compare(a != b, a, b, file, line);
}

void _assert_in_range(LargestIntegralType x, LargestIntegralType low,
                      LargestIntegralType high, const char *file, int line)
{
    compare(low <= x && x <= high, x, high, file, line);
}

void _assert_float_equal(float a, float b, float most, const char *file,
                         int line)
{
    _assert_true(fabsf(a - b) <= most, "floats are equal", file, line);
}

void _assert_string_equal(const char *a, const char *b, const char *file,
                          int line)
{
    if (strcmp(a, b) != 0) {
        print_error("\"%s\" is not \"%s\"", a, b);
        _fail(file, line);
    }
}

void _assert_string_not_equal(const char *a, const char *b,
                              const char *file, int line)
{
    _assert_true(strcmp(a, b) != 0, a, file, line);
}

void _assert_memory_equal(const void *a, const void *b, size_t size,
                          const char *file, int line)
{
    _assert_true(memcmp(a, b, size) == 0, "bytes are equal", file, line);
}

void _assert_memory_not_equal(const void *a, const void *b, size_t size,
                              const char *file, int line)
{
    _assert_true(memcmp(a, b, size) != 0, "bytes differ", file, line);
}

/* The teardown runs after a failure, too. */
static int run(const struct CMUnitTest *test)
{
    static void *state;
    state = test->initial_state;
    const int how = setjmp(test_left);
    if (how == 0) {
        if (test->setup_func && test->setup_func(&state) != 0)
            return FAILED;
        test->test_func(&state);
    }
    const int left = setjmp(test_left);
    if (left == 0 && test->teardown_func && test->teardown_func(&state) != 0)
        return FAILED;
    return left ? FAILED : how;
}

int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests,
                            size_t n, CMFixtureFunction setup,
                            CMFixtureFunction teardown)
{
    void *state = NULL;
    int failed = 0;
    printf("1..%zu\n", n);
    const bool ready = setup == NULL || setup(&state) == 0;
    for (size_t i = 0; i < n; i++) {
        const int how = ready ? run(&tests[i]) : FAILED;
        failed += how == FAILED;
        printf("%sok %zu - %s%s\n", how == FAILED ? "not " : "", i + 1,
               tests[i].name, how == SKIPPED ? " # SKIP" : "");
        fflush(stdout);
    }
    if (ready && teardown)
        teardown(&state);
    return failed;
}

void cmocka_set_test_filter(const char *pattern)
{
}

/* A plain file is read; a packed one is not recognised. */
gzFile gzopen(const char *path, const char *mode)
{
    return (gzFile)(void *)fopen(path, mode);
}

static FILE *behind(gzFile file)
{
    return (FILE *)(void *)file;
}

z_size_t gzfread(voidp out, z_size_t size, z_size_t n, gzFile file)
{
    return fread(out, size, n, behind(file));
}

int gzdirect(gzFile file)
{
    return 1;
}

const char *gzerror(gzFile file, int *error)
{
    *error = Z_OK;
    return "";
}

int gzrewind(gzFile file)
{
    return fseek(behind(file), 0, SEEK_SET);
}

int gzclose_r(gzFile file)
{
    return file != NULL ? fclose(behind(file)) : Z_STREAM_ERROR;
}
