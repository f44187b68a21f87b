/* needs: attention */

/* Every level of instructions, in float32 and in shapes that its own kernels
   take, beside float64: values and slopes. */
#include "treadle_test.h"
#include "core/isa.h"
#include "samples.h"

#define WINDOW(s, p) "stride=" s " padding=" p " dilation=[1] " \
    "transposed=false output_padding=[0] "
static const sample cases[] = {
    { .name = "convolution", .call = "[2,16,13,11] [19,16,3,3] [19] "
      WINDOW("[1]", "[1]") "groups=1" },
    { .name = "convolution", .call = "[3,5,14,9] [7,5,3,2] [7] "
      WINDOW("[2]", "[1,0]") "groups=1" },
    { .name = "convolution", .call = "[2,17,7,9] [18,17,1,1] [18] "
      WINDOW("[1]", "[0]") "groups=1" },
    { .name = "convolution", .call = "[2,12,9,17] [12,1,3,3] [12] "
      WINDOW("[1]", "[1]") "groups=12" },
    { .name = "lstm", .call = "[11,3,7] {[1,3,20] [1,3,20]} {[80,7] [80,20] "
      "[80] [80]} has_biases=true num_layers=1 dropout=0 train=true "
      "bidirectional=false batch_first=false" },
    { .name = "gru", .call = "[11,3,7] [1,3,20] {[60,7] [60,20] [60] [60]} "
      "has_biases=true num_layers=1 dropout=0 train=true "
      "bidirectional=false batch_first=false" },
    { .name = "scaled_dot_product_attention",
      .call = "[2,3,37,16] [2,3,41,16] [2,3,41,16]" },
    { .name = "max_pool2d", .call = "[2,3,17,23] kernel_size=[2]" },
    { .name = "avg_pool2d", .call = "[2,3,17,23] kernel_size=[3] stride=[2]" },
    { .name = "layer_norm", .call = "[7,53] [53] [53] normalized_shape=[53]" },
    { .name = "batch_norm", .call = "[5,3,7,9] [3] [3] training=true "
      "momentum=0.1 eps=0.1" },
    { .name = "softmax", .call = "[7,131] dim=1" },
    { .name = "log_softmax", .call = "[37,19] dim=0" },
    { .name = "cross_entropy", .call = "[41,37] [41]i37" },
    { .name = "logsumexp", .call = "[5,77] dim=[1]" },
    { .name = "cumsum", .call = "[3,211] dim=1" },
    { .name = "gelu", .call = "[3,71]" },
    { .name = "matmul", .call = "[29,67] [67,43]" },
    { .name = "matmul", .call = "[3,17,1] [3,1,19]" },
    { .name = "matmul", .call = "[1,67] [67,211]" },
    { .name = "matmul", .call = "[29,67] [67,3]" },
    { .name = "linear", .call = "[13,300] [45,300] [45]" },
    { NULL, SAMPLE_CALL, NULL, { 0, 0 }, { 0, 0 } }
};

typedef struct { td_tensor *value, *slope[SAMPLE_MOST]; } answer;

/* The call with its leaves in `dtype`, and the slopes of half the sum of
   the squares of what comes out. */
static answer answered(const sample *from, td_dtype dtype)
{
    answer a = { NULL, { NULL } };
    sample_call s;
    td_manual_seed(1);
    if (!sample_read(&s, from, from->call))
        fail_msg("%s(%s) is unreadable", from->name, from->call);
    for (int i = 0; i < s.n_checked; i++) {
        td_tensor *x = td_set_requires_grad(
            td_to(td_detach(s.checked[i]), dtype), true);
        for (int k = 0; k < s.call.n_in; k++)
            if (s.in[k].kind == TD_TENSOR
                && s.in[k].as.tensor == s.checked[i])
                s.in[k].as.tensor = x;
        for (int k = 0; k < s.n_listed; k++)
            if (s.listed[k] == s.checked[i])
                s.listed[k] = x;
        s.checked[i] = x;
    }
    a.value = td_run(&s.call) ? s.call.out[0] : NULL;
    td_backward(a.value, (td_backward_options){
        .gradient = td_detach(a.value) });
    for (int i = 0; i < s.n_checked; i++)
        a.slope[i] = td_grad_of(s.checked[i]);
    if (td_failed())
        fail_msg("%s(%s): %s", from->name, from->call, td_error_message());
    return a;
}

/* Largest difference, in parts of the largest number. */
static double apart(td_tensor *x, td_tensor *y)
{
    double most = 0, largest = 1e-30;
    x = td_contiguous(td_to(td_detach(x), TD_FLOAT64));
    y = td_contiguous(td_detach(y));
    for (int64_t i = 0; i < td_numel(y); i++) {
        const double b = ((double *)td_data(y))[i];
        most = fmax(most, fabs(((double *)td_data(x))[i] - b));
        largest = fmax(largest, fabs(b));
    }
    return most / largest;
}

static void every_level_computes_what_float64_does(void **state)
{
    const int best = td_isa_best(), before = td_process()->isa;
    for (const sample *s = cases; s->name != NULL; s++) {
        td_scope_begin();
        const answer right = answered(s, TD_FLOAT64);
        for (int level = 0; level <= best; level++) {
            td_process()->isa = level;
            const answer got = answered(s, TD_FLOAT32);
            double worst = apart(got.value, right.value);
            for (int i = 0; i < SAMPLE_MOST && right.slope[i]; i++)
                worst = fmax(worst, apart(got.slope[i], right.slope[i]));
            if (!(worst < 1e-5))
                fail_msg("%s(%s), level %s: %.3g", s->name, s->call,
                         td_isa(), worst);
        }
        td_process()->isa = before;
        td_scope_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_level_computes_what_float64_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
