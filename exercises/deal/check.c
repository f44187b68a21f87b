/* Which tiles a product asks for, and in which thread: the kernels of every level are replaced by one that counts. */
#include <pthread.h>
#include "check.h"
#include "ops/kernels/gemm-kernels.h"

enum { HIGH = 14, WIDE = 32, MOST = 4 };
static struct {
    pthread_mutex_t lock;
    pthread_t thread[MOST];
    int64_t rows[MOST], tiles[MOST], highest, lowest;
    int threads;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void counting_tile(const td_tile *t)
{
    const float *x = t->a, *y = t->b;
    float *z = t->c;
    pthread_mutex_lock(&seen.lock);
    int w = 0;
    while (w < seen.threads && !pthread_equal(seen.thread[w], pthread_self()))
        w++;
    if (w == seen.threads && w < MOST)
        seen.thread[seen.threads++] = pthread_self();
    seen.rows[w] += t->rows, seen.tiles[w]++;
    seen.highest = t->rows > seen.highest ? t->rows : seen.highest;
    seen.lowest = t->rows < seen.lowest ? t->rows : seen.lowest;
    pthread_mutex_unlock(&seen.lock);
    if (t->rows < 1 || t->rows > HIGH)
        return;
    for (int64_t p = 0; t->keep != NULL && p < t->depth; p++)
        memcpy((float *)t->keep + p * t->wide, y + t->at[p], (size_t)t->wide * sizeof *y);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->wide; j++) {
            double sum = 0;
            for (int64_t p = 0; p < t->depth; p++)
                sum += (double)x[i * t->rsa + p * t->csa] * (double)y[t->at[p] + j];
            z[i * t->ldc + j] = (float)(t->alpha * sum + (t->beta == 0 ? 0 : t->beta * (double)z[i * t->ldc + j]));
        }
}

static void plain_pack(int64_t depth, int64_t lanes, int64_t width, const void *from, int64_t across, int64_t along, void *to)
{
    for (int64_t p = 0; p < depth; p++)
        for (int64_t l = 0; l < lanes; l++)
            ((float *)to)[p * lanes + l] = l < width ? ((const float *)from)[l * across + p * along] : 0;
}

static const td_gemm_kernel counting = { .size = 4, .rows = HIGH, .columns = WIDE, .tile = counting_tile, .pack = plain_pack };
#define REPLACE(level, a, b) const td_gemm_level td_gemm_level_##level = { { &counting, &counting } };
TD_ISA_LEVELS(REPLACE, , )

static void check_cut(int64_t m, int64_t n, int64_t k, int threads, int64_t most_rows, int64_t most_tiles)
{
    char what[100];
    float *a = malloc((size_t)(m * k) * 4), *b = malloc((size_t)(k * n) * 4), *c = malloc((size_t)(m * n) * 8), *expected = c + m * n;
    for (int64_t i = 0; i < m * k; i++)
        a[i] = (float)(i * 37 % 11) - 4;
    for (int64_t i = 0; i < k * n; i++)
        b[i] = (float)(i * 53 % 13) - 5;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)a[i * k + p] * (double)b[p * n + j];
            expected[i * n + j] = (float)sum;
        }
    snprintf(what, sizeof what, "%d rows for %d thread%s", (int)m, threads, threads > 1 ? "s" : "");
    check_case(what, "as few tiles as possible, none higher than `most`, equally many for each thread");
    td_set_threads(threads);
    memset(seen.rows, 0, sizeof seen.rows), memset(seen.tiles, 0, sizeof seen.tiles);
    seen.threads = 0, seen.highest = 0, seen.lowest = INT64_MAX;
    td_gemm(TD_FLOAT32, &(td_product){ .m = m, .n = n, .k = k, .alpha = 1, .a = a, .rsa = k, .csa = 1,
                                       .b = b, .rsb = n, .csb = 1, .c = c, .ldc = n });
    check_no_error();
    if (seen.highest > HIGH || seen.lowest < 1)
        check_wrong("  rows in a tile: expected 1 to %d, got %d to %d", HIGH, (int)seen.lowest, (int)seen.highest);
    check_floats(c, expected, (int)(m * n), 0);
    int64_t all = 0;
    const int64_t wide = n > WIDE / 2 ? WIDE : WIDE / 2, slivers = (n + wide - 1) / wide, stretches = (k + DEPTH - 1) / DEPTH;
    for (int w = 0; w < MOST; w++)
        all += seen.tiles[w];
    if (seen.highest - seen.lowest > 1)
        check_wrong("  a tile of %d rows beside one of %d", (int)seen.highest, (int)seen.lowest);
    if (all > most_tiles * slivers * stretches)
        check_wrong("  %d tiles down, expected at most %d", (int)(all / slivers / stretches), (int)most_tiles);
    /* a share is a range of tiles, whoever takes it: what a share holds follows from the tiles and their number */
    const int64_t tiles = all / slivers / stretches;
    int64_t busiest = 0;
    for (int64_t w = 0; w < threads; w++) {
        const int64_t first = w * tiles / threads * m / tiles, last = (w + 1) * tiles / threads * m / tiles;
        busiest = last - first > busiest ? last - first : busiest;
    }
    if (busiest > most_rows)
        check_wrong("  %d rows for the busiest, expected at most %d", (int)busiest, (int)most_rows);
    free(a), free(b), free(c);
}

int main(void)
{
    static const int heights[] = { 2, 13, 14, 15, 16, 28, 29, 43, 64 };
    for (int i = 0; i < 9; i++)
        check_cut(heights[i], 32, 10, 1, heights[i], (heights[i] + 13) / 14);
    check_cut(64, 40, 1000, 1, 64, 5);
    check_cut(64, 40, 1000, 2, 32, 6);
    check_cut(70, 32, 1100, 2, 35, 6);
    check_cut(84, 64, 500, 2, 42, 6);
    check_cut(100, 33, 900, 3, 34, 9);
    check_cut(100, 33, 900, 4, 25, 8);
    check_cut(3, 10, 80000, 4, 1, 3);
    check_cut(20, 600, 200, 2, 20, 2);
    check_cut(33, 20, 30, 4, 33, 3);
    return check_end();
}
