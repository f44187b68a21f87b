/* The program that the hole is part of, without its beginning: the check trains networks of its own. */
#define main main_of_the_classifier
#include "../examples/classifier.c"

double learn_batch_between(td_module *net, td_optimiser *sgd, const td_batch *batch)
{
    return learn_batch(net, sgd, batch);
}
