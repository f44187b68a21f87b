/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "metrics": edit that, not this file. */
/* How often a classifier is right, and what it mistakes.

       td_tensor *m = td_confusion_matrix(
           td_argmax(scores, (td_arg_options){ .dim = td_some(1) }),
           labels, 10);
*/
#pragma once
#include <treadle/tensor.h>
/* Of scores [n,K] and classes int64 [n]: the share whose class is
   among the k best scores, float32 []. */
TD_API td_tensor *td_accuracy(td_tensor *scores, td_tensor *target,
                              int64_t k);
/* Of classes int64 [n]: int64 [K,K], rows the true ones. */
TD_API td_tensor *td_confusion_matrix(td_tensor *predicted,
                                      td_tensor *target,
                                      int64_t classes);
