/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "products": edit that, not this file. */
#include "ops/kernels/gemm-kernels.h"
enum {
    PACK_GRAIN = 16 * 1024,        /* numbers copied */
    WORK_GRAIN = 1024 * 1024,      /* multiplications */
    VECTOR_GRAIN = 128 * 1024,     /* numbers read once */
    TILE_BYTES = 14 * 2 * 64,      /* the largest tile */
    STRETCH = 4096                 /* steps of a dot product */
};
/* products: choose the gemm kernels */
static const td_gemm_kernel *gemm_kernel(td_dtype dtype)
{
    return TD_ISA_PICK(td_gemm_level)->of[dtype == TD_FLOAT64];
}
/* matmul: struct gemm */
typedef struct {
    const td_gemm_kernel *kernel;
    td_product of;
    bool a_in_place;      /* read a where it stands */
    bool b_in_place;      /* and slivers of b that lie in rows */
    bool by_rows;         /* threads share rows of c, or columns */
    bool alone;           /* each packs slivers when they come */
    int64_t tiles, wide;  /* of rows of a; columns of a sliver */
    int64_t j0, columns;  /* the band of b: first column and width */
    int64_t slivers;      /* of the band */
    int64_t p0, depth;    /* the stretch of p */
    double beta;          /* of.beta on the first stretch, then 1 */
    char *panel;          /* packed slivers of b */
    const int64_t *at, *packed;     /* rows of b, and of a sliver */
} gemm;
/* matmul: count and find pieces */
static inline int64_t pieces(int64_t whole, int64_t piece)
{
    return (whole + piece - 1) / piece;
}
static inline const char *element(const gemm *g, const void *base,
                                  int64_t index)
{
    return (const char *)base + index * (int64_t)g->kernel->size;
}
/* matmul: decide what stays in place */
static inline int64_t row_of(const gemm *g, int64_t tile)
{
    return tile * g->of.m / g->tiles;
}
static inline bool sliver_in_rows(const gemm *g, int64_t s)
{
    return g->of.rows != NULL || (g->of.csb == 1
        && g->j0 + (s + 1) * g->wide <= g->of.n);
}
static inline bool sliver_in_place(const gemm *g, int64_t s)
{
    return g->of.rows != NULL
        || (g->b_in_place && sliver_in_rows(g, s));
}
/* matmul: function block_bytes */
static size_t block_bytes(const gemm *g)
{
    const int64_t depth = td_least(DEPTH, g->of.k);
    const int64_t rows = td_least(BLOCK * g->kernel->rows, g->of.m);
    const size_t bytes = (size_t)(depth * rows) * g->kernel->size;
    return (bytes + 63) / 64 * 64 + 64;
}
/* matmul: function pack_sliver */
static char *sliver_of(const gemm *g, int64_t s)
{
    return g->panel + (size_t)(s * g->wide * g->depth)
                          * g->kernel->size;
}

static void pack_sliver(const gemm *g, int64_t s, char *to)
{
    const td_gemm_kernel *kernel = g->kernel;
    const int64_t j = g->j0 + s * g->wide;
    const int64_t width = td_least(g->wide, g->of.n - j);
    kernel->pack(g->depth, g->wide, width,
                 element(g, g->of.b, g->p0 * g->of.rsb + j * g->of.csb),
                 g->of.csb, g->of.rsb, to);
}
/* matmul: function pack_panel */
TD_BODY(pack_slivers, const gemm, g)
{
    for (int64_t s = begin; s < end; s++)
        if (!sliver_in_place(g, s))
            pack_sliver(g, s, sliver_of(g, s));
    return true;
}

static bool pack_panel(gemm *g)
{
    const int64_t grain = PACK_GRAIN
        / (g->wide * g->depth + 1) + 1;
    return td_parallel_for(g->slivers, grain, pack_slivers, g);
}
/* matmul: function pack_rows_of_a */
static void pack_rows_of_a(const gemm *g, int64_t r, int64_t first,
                           char *block)
{
    const int64_t i = row_of(g, r), rows = row_of(g, r + 1) - i;
    g->kernel->pack(g->depth, rows, rows,
                    element(g, g->of.a,
                            i * g->of.rsa + g->p0 * g->of.csa),
                    g->of.rsa, g->of.csa,
                    block + (size_t)((i - first) * g->depth)
                                * g->kernel->size);
}
/* matmul: function multiply_corner */
static void multiply_corner(const gemm *g, td_tile *tile,
                            int64_t columns)
{
    _Alignas(64) char corner[TILE_BYTES];
    const int64_t size = (int64_t)g->kernel->size;
    const int64_t row = g->wide * size;
    const int64_t line = tile->ldc * size;
    const size_t used = (size_t)(columns * size);
    char *c = tile->c;
    if (tile->beta != 0)
        memset(corner, 0, sizeof corner);
    for (int64_t i = 0; tile->beta != 0 && i < tile->rows; i++)
        memcpy(corner + i * row, c + i * line, used);
    tile->c = corner;
    tile->ldc = g->wide;
    g->kernel->tile(tile);
    for (int64_t i = 0; i < tile->rows; i++)
        memcpy(c + i * line, corner + i * row, used);
}
/* matmul: function multiply_tile */
/* Tile r of the block [first, last) of tiles, and sliver s; asks for
   lines of a. */
static void multiply_tile(const gemm *g, int64_t r, int64_t first,
                          int64_t last, int64_t s, bool asks,
                          const char *block, char *sliver)
{
    const td_gemm_kernel *kernel = g->kernel;
    const int64_t i = row_of(g, r), rows = row_of(g, r + 1) - i;
    const int64_t above = i - row_of(g, first);
    const int64_t j = g->j0 + s * g->wide;
    const int64_t columns = td_least(g->wide, g->of.n - j);
    td_tile tile = {
        .rows = rows, .wide = g->wide, .depth = g->depth,
        .alpha = g->of.alpha, .beta = g->beta,
        .a = element(g, block, above * g->depth),
        .rsa = 1, .csa = rows,
        .b = sliver,
        .at = g->packed, .follow = true,
        .c = (char *)g->of.c
           + (i * g->of.ldc + j) * (int64_t)kernel->size,
        .ldc = g->of.ldc, .next = g->panel,
    };
    /* matmul: read small operands in place */
    if (g->a_in_place) {
        tile.a = element(g, g->of.a, i * g->of.rsa + g->p0 * g->of.csa);
        tile.rsa = g->of.rsa;
        tile.csa = g->of.csa;
    }
    const bool placed = sliver_in_place(g, s);
    if (placed || (g->alone && r == first && sliver_in_rows(g, s))) {
        tile.follow = false;
        tile.keep = placed ? NULL : sliver;
        tile.b = element(g, g->of.b, j * g->of.csb);
        tile.at = g->at;
    }
    /* matmul: ask for the next sliver */
    const int64_t bytes = g->wide * (int64_t)kernel->size;
    const int64_t line = (last - 1 - r) * 64;
    if (asks && g->a_in_place && g->of.csa != 1 && g->of.rsa == 1) {
        tile.ahead = g->of.csa * (int64_t)kernel->size;
        tile.next = (const char *)tile.a
                  + (2 * rows - 1) * (int64_t)kernel->size;
    } else if (!g->alone && !placed) {
        tile.ahead = bytes / (last - first);
        tile.next = sliver_of(g, s + 1)
                  + (r - first) * tile.ahead * g->depth;
    } else if (g->alone && line < bytes) {
        tile.ahead = g->of.rsb * (int64_t)kernel->size;
        tile.next = element(g, g->of.b, g->p0 * g->of.rsb
                                        + (j + g->wide) * g->of.csb) + line;
    }
    /* matmul: store the tile or its corner */
    if (columns == g->wide)
        kernel->tile(&tile);
    else
        multiply_corner(g, &tile, columns);
}
/* matmul: function multiply_part */
/* Tiles in rows [r0, r1) and slivers [s0, s1) of the panel. */
static bool multiply_part(const gemm *g, int64_t r0, int64_t r1,
                          int64_t s0, int64_t s1)
{
    const size_t bytes = block_bytes(g), sliver
        = (size_t)(g->wide * g->depth) * g->kernel->size;
    char *block = td_scratch(bytes + sliver);
    if (!block)
        return false;
    for (int64_t first = r0; first < r1; first += BLOCK) {
        const int64_t last = td_least(first + BLOCK, r1);
        for (int64_t r = first; r < last; r++)
            if (!g->a_in_place)
                pack_rows_of_a(g, r, row_of(g, first), block);
        for (int64_t s = s0; s < s1; s++) {
            char *b = g->alone ? block + bytes : sliver_of(g, s);
            if (g->alone && !sliver_in_rows(g, s))
                pack_sliver(g, s, b);
            for (int64_t r = first; r < last; r++)
                multiply_tile(g, r, first, last, s, s == s0, block, b);
        }
    }
    return true;
}
/* matmul: function multiply_panel */
TD_BODY(multiply_share, const gemm, g)
{
    return g->by_rows ? multiply_part(g, begin, end, 0, g->slivers)
                      : multiply_part(g, 0, g->tiles, begin, end);
}
static bool multiply_panel(gemm *g)
{
    const int64_t strip = g->kernel->rows * g->wide * (g->depth + 1)
                        * (g->by_rows ? g->slivers : g->tiles);
    return td_parallel_for(g->by_rows ? g->tiles : g->slivers,
                           WORK_GRAIN / strip + 1, multiply_share, g);
}
/* matmul: function multiply_bands */
static bool multiply_bands(gemm *g)
{
    const int64_t k = g->of.k, visits = (k - 1) / DEPTH + 1;
    const int64_t stretch = pieces(k, 8 * visits) * 8;
    int64_t at[DEPTH], packed[DEPTH];
    g->at = at, g->packed = packed;
    for (g->j0 = 0; g->j0 < g->of.n; g->j0 += PANEL) {
        g->columns = td_least(PANEL, g->of.n - g->j0);
        g->slivers = pieces(g->columns, g->wide);
        /* matmul: decide who packs slivers */
        g->by_rows = g->tiles >= g->slivers;
        const int64_t own = g->by_rows ? g->tiles / td_worker_count()
                                       : g->tiles;
        g->alone = own <= BLOCK && g->wide >= g->kernel->columns
                && (!g->by_rows || own >= BLOCK / 4 || g->of.csb == 1);
        g->beta = g->of.beta;
        g->p0 = 0;
        do {
            g->depth = td_least(stretch, k - g->p0);
            /* matmul: find where rows of $B$ begin */
            for (int64_t p = 0; p < g->depth; p++) {
                at[p] = g->of.rows != NULL ? g->of.rows[g->p0 + p]
                                           : (g->p0 + p) * g->of.rsb;
                packed[p] = p * g->wide;
            }
            if (!(g->alone || pack_panel(g)) || !multiply_panel(g))
                return false;
            g->p0 += stretch;
            g->beta = 1;
        } while (g->p0 < k);
    }
    return true;
}
/* matmul: function multiply_vector */
static const char *stretch_of(const gemm *g, const void *x,
                              int64_t step, int64_t p, int64_t depth,
                              char *room)
{
    const char *from = element(g, x, p * step);
    if (step == 1)
        return from;
    g->kernel->pack(depth, 1, 1, from, 1, step, room);
    return room;
}

TD_BODY(multiply_vector, const gemm, g)
{
    td_product of = g->of;
    const size_t half = STRETCH * g->kernel->size;
    char *room = td_scratch(2 * half);
    int64_t p = 0;
    if (!room)
        return false;
    of.n = end - begin;
    of.c = (char *)of.c + begin * (int64_t)g->kernel->size;
    do {
        of.k = td_least(STRETCH, g->of.k - p);
        of.a = stretch_of(g, g->of.a, of.csa, p, of.k, room);
        of.b = stretch_of(g, element(g, g->of.b, begin * of.csb),
                          of.rsb, p, of.k, room + half);
        g->kernel->dots(&of);
        of.beta = 1;
        p += STRETCH;
    } while (p < g->of.k);
    return true;
}
/* matmul: function dots_are_quicker */
static bool dots_are_quicker(const gemm *g)
{
    const double m = (double)g->of.m, n = (double)g->of.n;
    const double k = (double)g->of.k;
    const double wide = (double)pieces(g->of.n, g->wide)
                      * (double)g->wide;
    const double dots = 24. * (double)pieces(g->of.m, 4)
                      * (double)pieces(g->of.n, 6) * (k + 100);
    return g->of.csa == 1 && m * k <= 65536
        && dots < k * (m * wide + 8 * (m + n));
}
/* matmul: function td_gemm */
bool td_gemm(td_dtype dtype, const td_product *product)
{
    gemm g = { .kernel = gemm_kernel(dtype), .of = *product };
    const td_product *of = &g.of;
    if (of->m == 0 || of->n == 0)
        return true;
    /* matmul: make a column a row */
    if (of->n == 1 && of->ldc == 1 && of->rows == NULL) {
        const td_product row = { 1, of->m, of->k, of->alpha, of->beta,
            of->b, of->csb, of->rsb, of->a, of->csa, of->rsa, of->c, 1,
            NULL };
        g.of = row;
    }
    const int64_t wide = g.kernel->columns;
    g.wide = of->m == 1 && of->n >= 4 * wide ? 4 * wide
           : of->n <= wide / 2 ? wide / 2 : wide;
    if (of->rows == NULL && (of->rsb == 1 || of->n == 1)
        && (of->m == 1 || dots_are_quicker(&g)))
        return td_parallel_for(of->n, VECTOR_GRAIN / (of->m * of->k + 1)
                               + 1, multiply_vector, &g);
    g.tiles = pieces(of->m, g.kernel->rows);
    const double work = (double)of->m * (double)of->n * (double)of->k;
    const int64_t across = g.kernel->rows * (int64_t)g.kernel->size;
    const bool lies = of->csa == 1 || (of->rsa == 1 && across > 48);
    g.a_in_place = work <= 1e6
        || (lies && (of->rsa * of->csa <= 256 || of->n <= 256));
    g.b_in_place = work <= 1e6 || g.tiles == 1;
    /* sgemm: deal the rows to the threads */
    const int64_t m = of->m, most = g.kernel->rows;
    const bool shared = work > 2 * WORK_GRAIN && g.tiles
        >= pieces(td_least(of->n, PANEL), g.wide);
    const int64_t threads = shared ? td_worker_count() : 1;
    /* deal: exercise deal */
    const int64_t fewest = (m + most - 1) / most;
    const int64_t dealt = (fewest + threads - 1) / threads * threads;
    g.tiles = dealt < m ? dealt : m;
    /* matmul: find room for a block and a panel */
    const int64_t depth = td_least(DEPTH, of->k);
    const int64_t width = td_least(PANEL, of->n) + g.wide;
    char *memory = td_scratch(block_bytes(&g)
                              + (size_t)(depth * width) * g.kernel->size);
    if (!memory)
        return false;
    g.panel = memory + block_bytes(&g);
    return multiply_bands(&g);
}
void td_dots(td_dtype dtype, const td_product *product)
{
    gemm_kernel(dtype)->dots(product);
}
/* products: rung 1 for whole numbers */
#define INTEGERS(name, T, U)                                          \
    TD_BODY(name, const td_product, of)                               \
    {                                                                 \
        const U alpha = (U)(int64_t)of->alpha;                        \
        const U beta = (U)(int64_t)of->beta;                          \
        for (int64_t i = begin; i < end; i++) {                       \
            const T *a = (const T *)of->a + i * of->rsa;              \
            T *c = (T *)of->c + i * of->ldc;                          \
            for (int64_t j = 0; j < of->n; j++)                       \
                c[j] = beta == 0 ? 0 : (T)(beta * (U)c[j]);           \
            for (int64_t p = 0; p < of->k; p++) {                     \
                const U x = alpha * (U)a[p * of->csa];                \
                const T *b = (const T *)of->b + p * of->rsb;          \
                for (int64_t j = 0; j < of->n; j++)                   \
                    c[j] = (T)((U)c[j] + x * (U)b[j * of->csb]);      \
            }                                                         \
        }                                                             \
        return true;                                                  \
    }
INTEGERS(multiply_int64, int64_t, uint64_t)
INTEGERS(multiply_int32, int32_t, uint32_t)
INTEGERS(multiply_uint8, uint8_t, uint32_t)
/* products: function multiply_one */
static bool multiply_one(td_dtype dtype, const td_product *of)
{
    if (dtype == TD_FLOAT32 || dtype == TD_FLOAT64)
        return td_gemm(dtype, of);
    td_parallel_body *body = dtype == TD_INT64 ? multiply_int64
        : dtype == TD_INT32 ? multiply_int32 : multiply_uint8;
    td_product copy = *of;
    return td_parallel_for(of->m, WORK_GRAIN / (of->n * of->k + 1) + 1,
                           body, &copy);
}
/* products: function td_gemm_batch */
typedef struct {
    const td_product *first;
    const td_space *batch;
} batch_work;

TD_BODY(multiply_some, const batch_work, work)
{
    td_product here = *work->first;
    bool ok = true;
    for (int64_t i = begin; ok && i < end; i++) {
        here.c = td_space_place(work->batch, 0, i);
        here.a = td_space_place(work->batch, 1, i);
        here.b = td_space_place(work->batch, 2, i);
        ok = multiply_one(work->batch->dtype[0], &here);
    }
    return ok;
}
bool td_gemm_batch(const td_product *first, const td_space *batch)
{
    batch_work work = { first, batch };
    const double each = (double)first->m * (double)first->n
                      * (double)(first->k + 1);
    if (batch->total == 1 || each > WORK_GRAIN)
        return multiply_some(&work, 0, batch->total, 0);
    return td_parallel_for(batch->total,
                           (int64_t)(WORK_GRAIN / (each + 1)) + 1,
                           multiply_some, &work);
}
