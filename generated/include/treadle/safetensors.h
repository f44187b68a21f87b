/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "saving": edit that, not this file. */
/* Tensors in files of the format safetensors, and modules with them.

       td_save_module(net, "net.safetensors");
       td_safetensors *f = td_safetensors_open("net.safetensors", true);
       td_tensor *w = td_safetensors_get(f, "0.weight");
       td_release(f);          w is there until its own release

   A file is written whole or not at all.  A tensor of a file that was
   opened with map true is the file's own pages, read when touched and
   copied when written to; the file must not be shortened meanwhile. */
#pragma once
#include <treadle/module.h>
typedef struct td_safetensors td_safetensors;
/* saving: struct td_saved_tensor */
typedef struct {
    const char *name, *type;    /* type as in the file: "F32" */
    td_dtype dtype;             /* of td_safetensors_get; NONE: none */
    td_dims shape;
    int64_t begin, end;         /* bytes from the end of the header */
} td_saved_tensor;

typedef struct {
    const char *name;
    td_tensor *tensor;
} td_to_save;
/* saving: prototypes of saved tensors */
/* An object; TD_ERROR_IO if it breaks a rule of the format. */
TD_API td_safetensors *td_safetensors_open(const char *path, bool map);
/* Over bytes that stay as long as the object; tensors are copies. */
TD_API td_safetensors *td_safetensors_over(const void *bytes,
                                           int64_t n);
TD_API int td_safetensors_count(const td_safetensors *file);
/* Tensor i in the order of the file; NULL if there is none. */
TD_API const td_saved_tensor *td_safetensors_at(
    const td_safetensors *file, int i);
/* NULL with TD_ERROR_INDEX if there is none of that name. */
TD_API const td_saved_tensor *td_safetensors_find(
    const td_safetensors *file, const char *name);
TD_API td_tensor *td_safetensors_get(td_safetensors *file,
                                     const char *name);
/* Value, and name, of metadata i; NULL if there are no more. */
TD_API const char *td_safetensors_note(const td_safetensors *file,
                                       int i, const char **name);

/* Writes n tensors; notes: name, value, ..., NULL, or NULL.  Tensors
   that share memory are TD_ERROR_RUNTIME. */
TD_API bool td_safetensors_save(const char *path,
    const td_to_save *tensors, int n, const char *const *notes);
/* The same to memory, if it has room; returns the bytes it takes, or
   -1. */
TD_API int64_t td_safetensors_write(void *out, int64_t room,
    const td_to_save *tensors, int n, const char *const *notes);

/* Parameters and buffers.  Loading compares all names and shapes
   before it changes anything. */
TD_API bool td_save_module(td_module *module, const char *path);
TD_API bool td_load_module(td_module *module, const char *path);
