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
#ifndef TREADLE_DATA_H
#define TREADLE_DATA_H
#include <treadle/tensor.h>
#ifdef __cplusplus
extern "C" {
#endif
/* The uint8 tensor in an IDX file, plain or compressed by gzip. */
TD_API td_tensor *td_idx_read(const char *path);

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
    void *context, void (*free_context)(void *context));
TD_API int64_t td_dataset_size(const td_dataset *dataset);
TD_API bool td_dataset_get(td_dataset *dataset, const int64_t *index,
    int64_t n, td_tensor **input, td_tensor **target);
/* data: prototypes of images */
/* Bytes [n,...] and [n]; makes float32 [B,pixels] / 255, int64 [B]. */
TD_API td_dataset *td_image_dataset(td_tensor *images,
                                    td_tensor *labels);
/* From root, $TREADLE_DATA/mnist (fashion-mnist), Debian's folder. */
TD_API td_dataset *td_mnist(const char *root, bool train);
TD_API td_dataset *td_fashion_mnist(const char *root, bool train);
/* The bytes of an image dataset, borrowed; NULL for another. */
TD_API td_tensor *td_dataset_images(const td_dataset *dataset);
TD_API td_tensor *td_dataset_labels(const td_dataset *dataset);
/* data: prototypes of loaders */
typedef struct td_loader td_loader;
typedef struct { bool shuffle, drop_last; } td_loader_options;
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
#ifdef __cplusplus
}
#endif
#endif
