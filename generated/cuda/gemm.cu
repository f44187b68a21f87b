/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "cuda-gemm": edit that, not this file. */
/* Matrix products: a ladder of kernels, and which of them to use. */
#include "plugin.cuh"
#include <algorithm>

/* cuda-gemm: struct product */
template <typename T> struct matrix {
    T *data;
    int64_t rs, cs;                     /* from row to row, ... */

    __device__ T *at(int64_t i, int64_t j) const
    {
        return data + i * rs + j * cs;
    }
};

template <typename T> struct product {
    int64_t m, n, k;
    matrix<T> c, a, b, d;
    T alpha, beta;
    layout<4> batch;                    /* offsets in c, a, b, d */
};

/* cuda-gemm: function finish of a product */
template <typename T>
static __device__ void finish(const product<T> &p, const int64_t *of,
                              int64_t i, int64_t j, T sum)
{
    if (i >= p.m || j >= p.n)
        return;
    T y = p.alpha * sum;
    if (p.beta != 0)
        y += p.beta * p.d.at(i, j)[of[3]];
    p.c.at(i, j)[of[0]] = y;
}

/* cuda-gemm: struct four */
enum { SIDE = 16, DEEP = 8 };

template <typename T> struct alignas(4 * sizeof(T)) four { T at[4]; };

/* cuda-gemm: kernel gemm_each */
/* Rung 0.  Thread: one element; block: 16 x 16; grid: all, and the
   batch.  Bytes: 2 loads a multiply-add, each in a line of its own.
   Limit: the transactions of the loads of A and the stores.
   Rung 1, ALONG: as rung 0, with neighbours along a row of C.  Bytes:
   of each multiply-add, 4 of B and the share of a broadcast.  Limit:
   the number of loads, two for one multiply-add. */
template <typename T, bool ALONG>
__global__ void gemm_each(product<T> p)
{
    const int x = threadIdx.x, y = threadIdx.y;
    const int64_t i = (int64_t)blockIdx.x * SIDE + (ALONG ? y : x);
    const int64_t j = (int64_t)blockIdx.y * SIDE + (ALONG ? x : y);
    for (int64_t at = blockIdx.z; at < p.batch.total; at += gridDim.z) {
        int64_t of[4];
        T sum = 0;
        locate_any(p.batch, at, of);
        for (int64_t l = 0; l < p.k && i < p.m && j < p.n; l++)
            sum += p.a.at(i, l)[of[1]] * p.b.at(l, j)[of[2]];
        finish(p, of, i, j, sum);
    }
}

/* cuda-gemm: kernel gemm_tile of rung 2 */
/* Rung 2.  Thread: one element; block: 16 x 16.  Bytes: 2 / 16 loads
   from memory and 2 from shared memory a multiply-add.  Limit: the
   loads from shared memory. */
template <typename T> __global__ void gemm_tile(product<T> p)
{
    TD_SHARED(T, a, [SIDE][SIDE + 1]);
    TD_SHARED(T, b, [SIDE][SIDE + 1]);
    const int x = threadIdx.x, y = threadIdx.y;
    const int64_t i0 = (int64_t)blockIdx.x * SIDE;
    const int64_t j0 = (int64_t)blockIdx.y * SIDE;
    for (int64_t at = blockIdx.z; at < p.batch.total; at += gridDim.z) {
        int64_t of[4];
        T sum = 0;
        locate_any(p.batch, at, of);
        for (int64_t l0 = 0; l0 < p.k; l0 += SIDE) {
            /* rung: exercise rung */
            const bool down_a = p.a.cs != 1, down_b = p.b.cs != 1;
            const int ai = down_a ? x : y, al = down_a ? y : x;
            const int bl = down_b ? x : y, bj = down_b ? y : x;
            a[ai][al] = i0 + ai < p.m && l0 + al < p.k
                      ? p.a.at(i0 + ai, l0 + al)[of[1]] : 0;
            b[bl][bj] = l0 + bl < p.k && j0 + bj < p.n
                      ? p.b.at(l0 + bl, j0 + bj)[of[2]] : 0;
            __syncthreads();
            for (int l = 0; l < SIDE; l++)
                sum += a[y][l] * b[l][x];
            __syncthreads();
        }
        finish(p, of, i0 + y, j0 + x, sum);
    }
}

/* cuda-gemm: function fetch of a strip */
template <typename T, int R>
static __device__ void fetch(four<T> (*to)[4 * R + 1], const T *from,
                             int64_t across, int64_t depth,
                             int64_t rs, int64_t cs)
{
    const int S = 16 * R, me = threadIdx.x;
    const int i = cs == 1 ? me / DEEP : me % S;
    const int l = cs == 1 ? me % DEEP : me / S;
    const int di = cs == 1 ? THREADS / DEEP : 0;
    const int dl = cs == 1 ? 0 : THREADS / S;
    #pragma unroll
    for (int t = 0; t < S * DEEP / THREADS; t++) {
        const int u = i + t * di, v = l + t * dl;
        to[v][u / 4].at[u % 4] = u < across && v < depth
                               ? from[u * rs + v * cs] : 0;
    }
}

/* cuda-gemm: kernel gemm_registers */
/* Rung 3.  Thread: R x R elements, in squares of 4; block: S x S with S
   = 16 R; grid: all, and the batch.  Bytes: 2 / S loads from memory and
   2 / R from shared memory a multiply-add, four numbers to a load.
   Limit: arithmetic, if there are blocks for every multiprocessor. */
template <typename T, int R>
__global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 2 : 1)
    gemm_registers(product<T> p)
{
    const int S = 16 * R, Q = R / 4;
    TD_SHARED(four<T>, a, [DEEP][4 * R + 1]);
    TD_SHARED(four<T>, b, [DEEP][4 * R + 1]);
    const int64_t i0 = (int64_t)blockIdx.x * S;
    const int64_t j0 = (int64_t)blockIdx.y * S;
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int64_t at = blockIdx.z; at < p.batch.total; at += gridDim.z) {
        int64_t of[4];
        T c[R][R] = {};
        locate_any(p.batch, at, of);
        for (int64_t l0 = 0; l0 < p.k; l0 += DEEP) {
            /* cuda-gemm: fetch a strip of each operand */
            fetch<T, R>(a, p.a.at(i0, l0) + of[1], p.m - i0, p.k - l0, p.a.rs,
                        p.a.cs);
            fetch<T, R>(b, p.b.at(l0, j0) + of[2], p.n - j0, p.k - l0, p.b.cs,
                        p.b.rs);
            __syncthreads();
            for (int l = 0; l < DEEP; l++) {
                /* cuda-gemm: add an outer product to the tile */
                four<T> u[Q], v[Q];
                for (int q = 0; q < Q; q++) {
                    u[q] = a[l][16 * q + y];
                    v[q] = b[l][16 * q + x];
                }
                #pragma unroll
                for (int r = 0; r < R; r++)
                    #pragma unroll
                    for (int s = 0; s < R; s++)
                        c[r][s] += u[r / 4].at[r % 4] * v[s / 4].at[s % 4];
            }
            __syncthreads();
        }
        /* cuda-gemm: finish the tile of a thread */
        for (int r = 0; r < R; r++)
            for (int s = 0; s < R; s++)
                finish(p, of, i0 + r / 4 * 64 + y * 4 + r % 4,
                       j0 + s / 4 * 64 + x * 4 + s % 4, c[r][s]);
    }
}

/* cuda-gemm: functions that launch a product */
enum { ENOUGH = 96, RUNGS = 5 };

template <typename T>
static int rung_for(const product<T> &p)
{
    for (int side = 128, rung = 4; side >= 64; side /= 2, rung--) {
        const int64_t tiles = cut(p.m, side) * cut(p.n, side)
                            * p.batch.total;
        if (std::is_floating_point<T>::value && tiles >= ENOUGH
            && 2 * p.m > side && 2 * p.n > side)
            return rung;
    }
    return 2;
}
template <typename T>
static bool launch(const td_task *task, const product<T> &p, int rung)
{
    typedef void kernel_of(product<T>);
    kernel_of *kernels[RUNGS] = { gemm_each<T, false>,
                                  gemm_each<T, true>, gemm_tile<T> };
    if constexpr (std::is_floating_point<T>::value) {
        kernels[3] = gemm_registers<T, 4>;
        kernels[4] = gemm_registers<T, 8>;
    }
    static const int sides[RUNGS] = { 16, 16, 16, 64, 128 };
    const dim3 grid((unsigned)cut(p.m, sides[rung]),
                    (unsigned)cut(p.n, sides[rung]),
                    (unsigned)std::min<int64_t>(p.batch.total, 65535));
    const dim3 block = rung < 3 ? dim3(SIDE, SIDE) : dim3(THREADS);
    return start(task, kernels[rung], grid, block, p);
}
template <typename T>
static matrix<T> matrix_of(const td_array *a)
{
    const int64_t *last = a->strides + a->rank - 1;
    return { (T *)a->data, last[-1], last[0] };
}

template <typename T> static bool multiply(const td_task *task)
{
    const td_array *a = &task->in[0], *b = &task->in[1];
    const td_array *c = &task->out[0], *d = c;
    if (task->n_in > 2 && task->in[2].kind == TD_TENSOR)
        d = &task->in[2];
    const int i = c->rank - 2, j = c->rank - 1;
    const product<T> p = {
        c->shape[i], c->shape[j], a->shape[j], matrix_of<T>(c),
        matrix_of<T>(a), matrix_of<T>(b), matrix_of<T>(d),
        (T)number(&task->attr[0]), (T)number(&task->attr[1]),
        lay_out<4>(c, (1u << i) - 1, { c->strides, a->strides,
                                       b->strides, d->strides }) };
    return launch(task, p, task->n_attr > 2
                  ? (int)number(&task->attr[2]) : rung_for(p));
}

static bool run_gemm(const td_task *task)
{
    return with_type(task, task->dtype, [&](auto zero) {
        return multiply<decltype(zero)>(task);
    });
}

const named_task products[] = { { "gemm", run_gemm }, {} };
