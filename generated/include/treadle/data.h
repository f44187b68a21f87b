/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "data": edit that, not this file. */
/* Files, datasets and batches.

   A dataset is a size and a function that makes batches; a loader deals
   out an epoch, shuffled by the thread's random numbers.

       td_dataset *clothes = td_fashion_mnist(NULL, true);
       td_loader *loader = td_data_loader(clothes, 64,
           (td_loader_options){ .shuffle = true });
       td_batch batch;
       while (td_loader_next(loader, &batch))
           ...  batch.input float32 [64,784], batch.target int64 [64]
*/
#pragma once
#include <treadle/random.h>
/* The uint8 tensor in an IDX file, plain or compressed by gzip. */
TD_API td_tensor *td_idx_read(const char *path);

/* data: prototypes of tables */
/* A table of text, RFC 4180: lines of as many cells each, plain or
   packed by gzip.  Empty lines are no rows; the first line is row 0,
   be it names or values.  Delimiter 0 is a comma.

       td_csv *t = td_csv_read("iris.csv", 0);
       td_tensor *length = td_csv_column(t, 2, 1, TD_FLOAT32,
                                         NAN);
*/
typedef struct td_csv td_csv;
TD_API td_csv *td_csv_read(const char *path, char delimiter);
TD_API int64_t td_csv_rows(const td_csv *table);
TD_API int64_t td_csv_columns(const td_csv *table);
/* Borrowed; NULL for a place that is not there. */
TD_API const char *td_csv_text(const td_csv *table, int64_t row,
                               int64_t column);
/* data: prototypes of datasets */
/* Makes examples index[0..n): input [n,...] and target [n,...], new
   references both.  What has other than n rows, or is missing, is
   refused by td_dataset_get; false, or an error left pending, is its
   error. */
typedef bool td_dataset_batch(void *context, const int64_t *index,
                              int64_t n, td_tensor **input,
                              td_tensor **target);
typedef struct td_dataset td_dataset;

TD_API td_dataset *td_dataset_new(int64_t size, td_dataset_batch *batch,
    void *context, td_frees *free_context);
TD_API int64_t td_dataset_size(const td_dataset *dataset);
TD_API bool td_dataset_get(td_dataset *dataset, const int64_t *index,
    int64_t n, td_tensor **input, td_tensor **target);
/* data: prototypes of images */
/* Bytes [n,...] and [n]; makes float32 [B,pixels], or [B,C,H,W] of
   [n,C,H,W], / 255, and int64 [B]. */
TD_API td_dataset *td_image_dataset(td_tensor *images,
                                    td_tensor *labels);
/* From root, $TREADLE_DATA/mnist (fashion-mnist), Debian's folder. */
typedef td_dataset *td_known_dataset(const char *root, bool train);
TD_API td_known_dataset td_mnist, td_fashion_mnist;
/* What a dataset holds itself, borrowed; NULL if that is nothing. */
TD_API td_tensor *td_dataset_images(const td_dataset *dataset);
TD_API td_tensor *td_dataset_labels(const td_dataset *dataset);
/* data: prototypes of loaders */
typedef struct td_loader td_loader;
typedef struct {
    bool shuffle, drop_last;
    int prefetch;       /* batches made ahead, see chapter "workers" */
} td_loader_options;
typedef struct {
    td_tensor *input, *target;
    int64_t size;
} td_batch;

TD_API td_loader *td_data_loader(td_dataset *dataset,
                                 int64_t batch_size,
                                 td_loader_options options);
/* False at the end of the epoch, or on failure (td_failed). */
TD_API bool td_loader_next(td_loader *loader, td_batch *batch);
TD_API int64_t td_loader_length(const td_loader *loader);
TD_API void td_loader_rewind(td_loader *loader);

/* Where a loader is in its epoch, to be kept with td_random_state. */
typedef struct {
    td_random_state drawn;      /* where the epoch's order comes from */
    uint64_t epoch;             /* how many have begun */
    int64_t next;               /* examples handed out */
} td_loader_place;
TD_API td_loader_place td_loader_tell(const td_loader *loader);
TD_API bool td_loader_seek(td_loader *loader, td_loader_place place);
/* files: further prototypes of data */
/* The bytes of a file, plain or unpacked: uint8 [n]. */
TD_API td_tensor *td_bytes_read(const char *path);
/* int64, else float32, if the cells from row `from` on are all such
   numbers; else none. */
TD_API td_dtype td_csv_dtype(const td_csv *table, int64_t column,
                             int64_t from);
/* [rows - from].  An empty cell becomes `missing`, which may be NaN
   in real numbers; a cell that the type cannot hold is an error. */
TD_API td_tensor *td_csv_column(const td_csv *table, int64_t column,
                                int64_t from, td_dtype dtype,
                                double missing);
/* Rows of two tensors [n,...] on the CPU, as they are; they may be
   views. */
TD_API td_dataset *td_tensor_dataset(td_tensor *inputs,
                                     td_tensor *targets);
/* CIFAR-10: images [n,3,32,32].  From root or $TREADLE_DATA/
   cifar-10-batches-bin, those files that are there. */
TD_API td_known_dataset td_cifar10;
/* transforms: further prototypes of data */
/* Batches [n,C,H,W].  For each image its own cut of height x width,
   with `padding` zeros on each side before; each mirrored with
   probability p. */
TD_API td_tensor *td_random_crop(td_tensor *x, int64_t height,
                                 int64_t width, int64_t padding);
TD_API td_with_real td_random_horizontal_flip;

/* A dataset whose inputs go through a function.  A scope is open around
   it, which has what it makes on the way; it may return its input. */
typedef td_tensor *td_transform(void *context, td_tensor *input);
TD_API td_dataset *td_map_dataset(td_dataset *dataset,
    td_transform *transform, void *context);
