/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* Everything a Treadle program needs, in reading order.

       #include <treadle/treadle.h>
       int main(void) { return td_failed(); } */
#pragma once
/* memory: umbrella includes */
#include <treadle/base.h>
/* parallel: umbrella includes */
#include <treadle/parallel.h>
/* printing: umbrella includes */
#include <treadle/tensor.h>
#include <treadle/op.h>
/* rows: umbrella includes */
#include <treadle/isa.h>
#include <treadle/elementwise.h>
/* softmax: umbrella includes */
#include <treadle/reductions.h>
/* products: umbrella includes */
#include <treadle/matmul.h>
/* random: umbrella includes */
#include <treadle/random.h>
/* graph: umbrella includes */
#include <treadle/autograd.h>
/* indexing: umbrella includes */
#include <treadle/indexing.h>
/* order: umbrella includes */
#include <treadle/order.h>
/* arranging: umbrella includes */
#include <treadle/arranging.h>
/* statistics: umbrella includes */
#include <treadle/statistics.h>
/* gradcheck: umbrella includes */
#include <treadle/gradcheck.h>
/* functional: umbrella includes */
#include <treadle/functional.h>
/* modules: umbrella includes */
#include <treadle/module.h>
/* losses: umbrella includes */
#include <treadle/losses.h>
/* containers: umbrella includes */
#include <treadle/layers.h>
/* optimisers: umbrella includes */
#include <treadle/optimisers.h>
/* schedules: umbrella includes */
#include <treadle/schedules.h>
/* convolution: umbrella includes */
#include <treadle/convolution.h>
/* data: umbrella includes */
#include <treadle/data.h>
/* metrics: umbrella includes */
#include <treadle/metrics.h>
/* saving: umbrella includes */
#include <treadle/safetensors.h>
/* plugins: umbrella includes */
#include <treadle/device.h>
/* tracing: umbrella includes */
#include <treadle/compile.h>
/* python: umbrella includes */
#include <treadle/foreign.h>
/* exchange: umbrella includes */
#include <treadle/exchange.h>
/* arrow: umbrella includes */
#include <treadle/arrow.h>
/* linalg: umbrella includes */
#include <treadle/linalg.h>
/* precision: umbrella includes */
#include <treadle/precision.h>
/* seeing: umbrella includes */
#include <treadle/profile.h>
