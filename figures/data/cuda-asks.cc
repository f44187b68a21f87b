/* What a row or a rung of the product asks of memory: links the checked
   plug-in itself, to read the emulator's counts.  See cuda-asks. */
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include "device.cuh"
#include <treadle/plugin.h>

extern "C" bool treadle_cuda_init(const td_host_api *, td_device_table *);
extern "C" void td_collapse(td_dims *, int, int64_t (*)[TD_MAX_RANK]);

static td_device_table table;

static td_array matrix(int rows, int columns, bool turned)
{
    td_array a = {};
    std::vector<float> ones((size_t)(rows * columns), 1.0f);
    const size_t bytes = ones.size() * sizeof(float);
    a.kind = TD_TENSOR;
    a.dtype = TD_FLOAT32;
    a.rank = 2;
    a.shape[0] = rows;
    a.shape[1] = columns;
    a.strides[0] = turned ? 1 : columns;
    a.strides[1] = turned ? rows : 1;
    if (!table.allocate(0, bytes, &a.data)
        || !table.copy(0, a.data, ones.data(), bytes, 0))
        exit(1);
    return a;
}

/* B for a row, by its layout: spread operands repeat with a stride of 0. */
static td_array operand(const char *layout, int rows, int columns)
{
    const char *const is = layout;
    if (is[0] == 'e')                           /* every eighth */
    {
        td_array a = matrix(rows, 8 * columns, false);
        a.shape[1] = columns;
        a.strides[1] = 8;
        return a;
    }
    td_array a = matrix(rows, columns, is[0] == 't');
    a.strides[0] = is[0] == 'b' ? 0 : a.strides[0];     /* bias */
    a.strides[1] = is[0] == 'c' ? 0 : a.strides[1];     /* column */
    return a;
}

/* "gemm" rung layout, or "mul" 0 layout: of 128 x 128 matrices.  Prints
   sectors for each request; requests, and sectors, for each multiply-add
   of a warp; rounds for each request to shared memory. */
int main(int count, char **words)
{
    static const td_host_api api = { TD_PLUGIN_VERSION, td_fail,
        td_parallel_for, false, td_dtype_size, td_dtype_is_floating,
        td_collapse };
    if (count < 4 || !treadle_cuda_init(&api, &table))
        return 1;
    const bool product = words[1][0] == 'g';
    const int side = 128;
    const td_array in[] = { matrix(side, side, false),
                            operand(words[3], side, side) };
    const td_array out = matrix(side, side, false);
    td_value attr[3] = {};
    attr[0].as.scalar = td_float(1);
    attr[1].as.scalar = td_float(0);
    attr[2].as.scalar = td_int(atoi(words[2]));
    const td_task task = { words[1], TD_FLOAT32, 0, 2, product ? 3 : 0, 1,
                           in, &out, attr };
    if (!table.compute(&task) || !table.synchronise(0))
        return 1;
    const double n = (double)side * side * (product ? side : 1) / 32;
    const emulated_counts of = emulator_counts("kernel");
    printf("%.3f,%.4f,%.4f,%.2f\n", of.sectors, of.requests / n,
           of.requests * of.sectors / n, of.rounds);
}
