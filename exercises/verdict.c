/* What makes a program of a check: it says, in a way that the code under test
   cannot, that the check ran to its end.  SPDX-License-Identifier: MIT

   The runner hands over a file without a name, in which stands a random
   number.  It is taken, and the file emptied, before any other code of the
   program runs.  What the check says then goes to this file: the case that
   is begun, what is wrong, that all is right, and at the end a sum over
   every byte of it that begins at the number.  The last handler of the
   process writes this sum, after those of the code under test, and only if
   the check has returned.  So a program that ends in any other way has said
   nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "verdict.h"

int main_of_the_check(int count, char **argument);     /* a check of ours takes none */
extern void cmocka_set_test_filter(const char *pattern) __attribute__((weak));

static uint64_t sum;
static int file = -1, begun;
static pid_t process;

/* FNV-1a: what is read back must be what was written, in this order. */
static void tell(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        sum = (sum ^ (unsigned char)*c) * 0x100000001b3u;
    for (size_t left = strlen(text); left > 0 && getpid() == process;) {
        const ssize_t written = write(file, text, left);
        if (written <= 0)
            break;
        text += written, left -= (size_t)written;
    }
}

static void seal(const char *verdict)
{
    char text[20];
    tell(verdict);
    snprintf(text, sizeof text, "%016" PRIx64 "\n", sum);
    tell(text);
}

void check_says_case(const char *what)
{
    tell("case ");
    tell(what);
    tell("\n");
}

/* The verdict goes first: the code under test may have filled the disk. */
void check_says_wrong(const char *report)
{
    tell("wrong\n");
    seal(report);
    fflush(stdout);
    _exit(1);
}

enum { NOT_BEGUN, RUNS, RETURNED };

static void at_the_very_end(void)
{
    if (begun == RETURNED && getpid() == process)
        seal("passed\n");
}

/* Before all constructors; the environment is not yet the C library's. */
__attribute__((no_sanitize("address", "undefined")))
static void take_the_number(int count, char **argument, char **environment)
{
    static const char name[] = "TREADLE_CHECK=";
    char text[17] = "";
    (void)count, (void)argument;
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, sizeof name - 1) == 0) {
            for (char *c = *environment + sizeof name - 1; *c != '\0'; *c++ = ' ')
                file = (file < 0 ? 0 : 10 * file) + (*c - '0');
        }
    if (file < 0 || syscall(SYS_pread64, file, text, 16, 0) != 16 || ftruncate(file, 0) != 0)
        return;
    for (const char *c = text; *c != '\0'; c++)
        sum = sum << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    fcntl(file, F_SETFD, FD_CLOEXEC);
    process = getpid();
    atexit(at_the_very_end);
}

__attribute__((section(".preinit_array"), used))
static void (*const first)(int, char **, char **) = take_the_number;

int main(int count, char **argument)
{
    if (begun++ != NOT_BEGUN)
        abort();
    const char *cases = getenv("TREADLE_CASES");       /* of a test of the library's own */
    if (cases != NULL && *cases != '\0' && cmocka_set_test_filter != NULL)
        cmocka_set_test_filter(cases);
    const int status = main_of_the_check(count, argument);
    begun = status == 0 ? RETURNED : begun;
    return status;
}
