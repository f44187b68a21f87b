/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "indexing": edit that, not this file. */
/* Elements at places that are data.

   An index names rows, or with covers > 1 holds rows of coordinates:

       td_tensor *rows = td_index_points(table, words, 0, 1);
       td_tensor *right = td_gather(logits, 1, labels); */
#pragma once
#include <treadle/tensor.h>

/* What put_points does where something stands already. */
enum { TD_PUT_REPLACE, TD_PUT_ADD, TD_PUT_MULTIPLY };

/* index[0 .. n) spread over each other: one row for each point, or
   for n = 1 the numbers themselves, as the next two want them. */
TD_API td_tensor *td_coordinates(int n, td_tensor *const *index);
TD_API td_tensor *td_index_points(td_tensor *x, td_tensor *index,
                                  int dim, int covers);
TD_API td_tensor *td_put_points_(td_tensor *x, td_tensor *index,
                                 td_tensor *source, int dim, int covers,
                                 int how);
/* index: integer vector, each in [0, size of dim). */
typedef td_tensor *td_along_index(td_tensor *x, int dim,
                                  td_tensor *index);
TD_API td_along_index td_index_select, td_gather;
TD_API td_of_one td_nonzero;
TD_API td_of_two td_embedding;          /* its rows are the second */
