/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
/* Random tensors that depend on seed, stream and index alone.

   Each drawing operator takes the thread's next stream; element i of
   its tensor takes draw i.  So values do not depend on the number of
   threads.  Integers and uniforms are equal on every machine, normals
   within 2 ulp.

       td_manual_seed(0);
       td_tensor *w = td_randn(TD_DIMS(128, 784), options);
       td_tensor *order = td_randperm(60000);
*/
#pragma once
#include <treadle/tensor.h>
/* random: struct td_random_state */
typedef struct { uint64_t seed, stream; } td_random_state;
/* random: prototypes of random numbers */
/* Seeds this thread's numbers and starts at stream 0. */
TD_API void td_manual_seed(uint64_t seed);
/* Installs a state for this thread and returns the one before. */
TD_API td_random_state td_random_swap(td_random_state state);

/* A state with a reference count; `state` may be NULL to only look. */
typedef struct td_generator td_generator;
TD_API td_generator *td_generator_new(uint64_t seed);
TD_API td_random_state td_generator_state(td_generator *generator,
                                          const td_random_state *state);
TD_API td_of_size td_rand, td_randn;
TD_API td_shaped_as td_rand_like, td_randn_like;
TD_API td_tensor *td_randint(int64_t low, int64_t high, td_dims shape,
                             td_tensor_options options);
TD_API td_tensor *td_randperm(int64_t n);
TD_API td_of_one td_bernoulli;

/* low and high; mean and deviation; the probability of a one */
typedef td_tensor *td_with_two_reals(td_tensor *x, double, double);
TD_API td_with_two_reals td_uniform_, td_normal_;
TD_API td_with_real td_bernoulli_;
