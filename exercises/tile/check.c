/* A kernel under the watch: reports, numbers, sectors and banks. */
#define _POSIX_C_SOURCE 200809L       /* setenv */
#include "check.h"

const char *transposed_by_tiles(float *result, const float *matrix, int rows, int columns);
struct emulated_counts { double sectors, rounds, requests, idleness; };
struct emulated_counts emulator_counts(const char *kernel);

/* The emulator's sentence: kernel and place, then what happened, in lines that fit. */
static void check_silence(const char *report)
{
    char lines[1000] = "";
    if (report[0] == '\0')
        return;
    const char *happened = strstr(strstr(report, ": ") + 2, ": ") + 1;
    for (int at = 0, column = 0; *report != '\0' && at < 900; report++, column++) {
        const bool full = report == happened
            || (*report == ' ' && column + (int)strcspn(report + 1, " ") > 70);
        at += sprintf(lines + at, full ? "\n            " : "%c", *report);
        column = full ? 0 : column;
    }
    check_wrong("  report    %s", lines);
}

static void check_matrix(int rows, int columns, const char *seed)
{
    char what[100];
    const int n = rows * columns;
    float *matrix = malloc(3 * (size_t)n * sizeof *matrix), *result = matrix + n, *expected = result + n;
    for (int i = 0; i < n; i++) {
        matrix[i] = (float)i;
        expected[i % columns * rows + i / columns] = (float)i;
    }
    snprintf(what, sizeof what, "a matrix of %d rows, %d columns, threads in the order of seed %s", rows, columns, seed);
    check_case(what, "out[c * rows + r] = in[r * columns + c]");
    setenv("TREADLE_CUDA_SEED", seed, 1);
    check_silence(transposed_by_tiles(result, matrix, rows, columns));
    check_floats(result, expected, n, 0);
    free(matrix);
}

static void check_count(const char *what, double got, double allowed)
{
    check_case("requests of whole warps, on the matrices above", what);
    if (got > allowed)
        check_wrong("  expected  at most %g\n  got       %.3g", allowed, got);
}

int main(void)
{
    check_matrix(64, 64, "1");
    check_matrix(64, 64, "2");
    const struct emulated_counts counts = emulator_counts("transpose_by<1>");
    check_count("sectors of device memory, of a request on average: a row of 32 floats lies in 4",
                counts.sectors, 4);
    check_count("rounds of the banks, of a request on average: 32 words of 32 banks take 1",
                counts.rounds, 1);
    check_count("accesses of the busiest thread, to those of all threads on average: 1 if they share the work",
                counts.idleness, 1);
    check_count("requests to device memory: every element is read once and written once, 32 at a time",
                counts.requests, 2 * 2 * 64 * 64 / 32);
    check_matrix(40, 33, "3");
    check_matrix(5, 70, "4");
    check_matrix(70, 1, "5");
    return check_end();
}
