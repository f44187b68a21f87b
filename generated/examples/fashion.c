/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "trainings": edit that, not this file. */
/* A CNN that learns to name pictures of clothes. */
#include "training.h"

int main(int argc, char **argv)
{
    training t = { .names = { "train", "loss", "accuracy" },
        .epochs = 5, .batch = 64, .rate = 2e-3,
        .measure = name_pictures };
    begin_training(&t, argc, argv);
    t.net = td_cnn_module((td_args){ 0 });
    t.train = td_fashion_mnist(NULL, true);
    t.test = td_fashion_mnist(NULL, false);
    return run_training(&t);
}
