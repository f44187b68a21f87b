/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "trainings": edit that, not this file. */
/* A ResNet of twenty layers that learns to name photographs. */
#include "training.h"

static td_tensor *vary(void *context, td_tensor *x)
{
    (void)context;
    return td_random_horizontal_flip(td_random_crop(x, 32, 32, 4), 0.5);
}

int main(int argc, char **argv)
{
    training t = { .names = { "train", "loss", "accuracy" },
        .epochs = 20, .batch = 64, .rate = 0.1, .momentum = 0.9,
        .measure = name_pictures };
    begin_training(&t, argc, argv);
    t.net = td_resnet_module((td_args){ 0 });
    const char *root = find_data("cifar-10-batches-bin",
                                 "cifar10-subset");
    t.train = td_map_dataset(td_cifar10(root, true), vary, NULL);
    t.test = td_cifar10(root, false);
    return run_training(&t);
}
