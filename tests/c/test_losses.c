/* needs: losses */
/* Losses against PyTorch's numbers and against double loops; labels out of
   range; layouts; second derivatives; threads. */
#include "treadle_test.h"
#include <math.h>

static const td_tensor_options whole = { .dtype = TD_INT64 };
static const td_cross_entropy_options usual = TD_DEFAULTS;

/* Element i of x. */
#define near(x, i, expected, slack) expect_number(at(x, i), expected, slack)

static td_tensor *doubles(const double *v, td_dims shape)
{
    return td_from_data(v, shape, wide);
}
static td_tensor *labels(const int64_t *v, td_dims shape)
{
    return td_from_data(v, shape, whole);
}

/* ---- PyTorch's numbers, which it computed in float32 ------------------------- */

static const double scores[] = { 2, 1, 0, 0, 1, 3 };
static const int64_t truth[] = { 0, 2 };

static void golden_numbers_with_labels(void **state)
{
    const double w[] = { 1, 2, 3 };
    td_tensor *x = doubles(scores, TD_DIMS(2, 3));
    td_tensor *y = labels(truth, TD_DIMS(2));
    td_tensor *weight = doubles(w, TD_DIMS(3));
    near(td_cross_entropy(x, y, usual), 0, .288726002, 1.5e-7);
    td_tensor *each = td_cross_entropy(x, y,
        (td_cross_entropy_options){ .reduction = TD_LOSS_NONE });
    assert_int_equal(td_rank(each), 1);
    near(each, 0, .407605946, 1.5e-7);
    near(each, 1, .169846043, 1.5e-7);
    near(td_cross_entropy(x, y, (td_cross_entropy_options){
        .reduction = TD_LOSS_SUM }), 0, .577451989, 4e-8);
    near(td_cross_entropy(x, y, (td_cross_entropy_options){
        .weight = weight }), 0, .229286015, 1.5e-7);
    near(td_cross_entropy(x, y, (td_cross_entropy_options){
        .label_smoothing = .1 }), 0, .422059327, 1.5e-7);
    near(td_cross_entropy(x, y, (td_cross_entropy_options){
        .label_smoothing = .1, .weight = weight }), 0, .360229999, 1.5e-7);
}

static void golden_numbers_with_probabilities(void **state)
{
    const double w[] = { 1, 2, 3 }, p[] = { .7, .2, .1, .1, .1, .8 };
    td_tensor *x = doubles(scores, TD_DIMS(2, 3));
    td_tensor *t = doubles(p, TD_DIMS(2, 3));
    near(td_cross_entropy(x, t, usual), 0, .738726020, 1.5e-7);
    near(td_cross_entropy(x, t, (td_cross_entropy_options){
        .weight = doubles(w, TD_DIMS(3)) }), 0, 1.364616394, 1.5e-7);
    near(td_cross_entropy(x, t, (td_cross_entropy_options){
        .label_smoothing = .1 }), 0, .827059329, 1.5e-7);
}

static void the_example_of_the_chapter(void **state)
{
    const int64_t y = 0;
    td_tensor *x = td_set_requires_grad(doubles(scores, TD_DIMS(3)), true);
    td_tensor *loss = td_cross_entropy(x, labels(&y, TD_RANK_0), usual);
    assert_int_equal(td_rank(loss), 0);
    near(loss, 0, .407605946, 1.5e-7);
    assert_true(td_backward(loss, (td_backward_options)TD_DEFAULTS));
    near(td_grad_of(x), 0, -.3347590, 1e-6);
    near(td_grad_of(x), 1, .2447285, 1e-6);
    near(td_grad_of(x), 2, .0900306, 1e-6);
}

/* ---- against loops ------------------------------------------------------------ */

enum { N = 5, C = 7, H = 2, W = 3 };

static double by_hand(const double *x, const int64_t *y, int64_t skip,
                      double *grad)
{
    double total = 0, count = 0;
    for (int n = 0; n < N * H * W; n++)
        count += y[n] != skip;
    for (int n = 0; n < N; n++)
        for (int i = 0; i < H * W; i++) {
            const double *row = x + n * C * H * W + i;
            const int64_t label = y[n * H * W + i];
            double sum = 0;
            for (int c = 0; c < C; c++)
                sum += exp(row[c * H * W]);
            for (int c = 0; c < C; c++)
                grad[(n * C + c) * H * W + i] = label == skip ? 0
                    : (exp(row[c * H * W]) / sum - (c == label)) / count;
            if (label != skip)
                total += log(sum) - row[label * H * W];
        }
    return total / count;
}

static void images_with_a_label_a_pixel(void **state)
{
    const td_dtype types[] = { TD_FLOAT64, TD_FLOAT32 };
    const double tolerance[] = { 1e-14, 1e-6 };
    for (int k = 0; k < 2; k++)
        for (int turned = 0; turned < 2; turned++) {
            double grad[N * C * H * W];
            td_tensor *x = td_randn(TD_DIMS(N, C, H, W),
                (td_tensor_options){ .dtype = types[k] });
            td_tensor *exact = td_to(x, TD_FLOAT64);
            td_tensor *y = td_randint(0, C, TD_DIMS(N, H, W), plain);
            const double loss = by_hand(td_data(exact), td_data(y), 3, grad);
            if (turned)                  /* classes last in memory */
                x = td_permute(td_contiguous(td_permute(x,
                    TD_DIMS(0, 2, 3, 1))), TD_DIMS(0, 3, 1, 2));
            x = td_set_requires_grad(td_detach(x), true);
            td_tensor *l = td_cross_entropy(x, y,
                (td_cross_entropy_options){ .ignore_index = td_some(3) });
            near(l, 0, loss, tolerance[k]);
            assert_true(td_backward(l, (td_backward_options)TD_DEFAULTS));
            expect_values(td_grad_of(x), tolerance[k], N * C * H * W, grad);
        }
}

static void labels_may_be_bytes_or_strided(void **state)
{
    td_tensor *x = td_randn(TD_DIMS(6, 4), wide);
    td_tensor *y = td_randint(0, 4, TD_DIMS(12), plain);
    td_tensor *every = td_slice(y, 0, (td_opt_i64)td_some(0),
                                (td_opt_i64)TD_DEFAULTS, 2);
    const double expected = td_item_double(
        td_cross_entropy(x, td_contiguous(every), usual));
    near(td_cross_entropy(x, every, usual), 0, expected, 0);
    near(td_cross_entropy(x, td_to(every, TD_UINT8), usual), 0, expected, 0);
}

static void large_scores_do_not_overflow(void **state)
{
    const double x[] = { 1000, 0, 0, -1000, 0, 1000 };
    const int64_t y[] = { 0, 0 };
    td_tensor *t = td_set_requires_grad(td_to(doubles(x, TD_DIMS(2, 3)),
                                              TD_FLOAT32), true);
    td_tensor *each = td_cross_entropy(t, labels(y, TD_DIMS(2)),
        (td_cross_entropy_options){ .reduction = TD_LOSS_NONE });
    near(each, 0, 0, 0);
    near(each, 1, 2000, 0);
    td_tensor *sum = td_sum(each, (td_reduce_options)TD_DEFAULTS);
    assert_true(td_backward(sum, (td_backward_options)TD_DEFAULTS));
    VALUES(td_grad_of(t), 0, 0, 0, -1, 0, 1);
}

static void a_tiny_loss_keeps_its_digits(void **state)
{
    const double x[] = { 1e6 + 30, 1e6 };
    const int64_t y = 0;
    near(td_cross_entropy(doubles(x, TD_DIMS(2)), labels(&y, TD_RANK_0),
                          usual), 0, 9.357622968840175e-14, 1e-25);
}

static void ruled_out_classes_cost_nothing(void **state)
{
    const double x[] = { 1, -INFINITY, 2 };
    const int64_t y = 2, ruled_out = 1;
    td_tensor *t = td_set_requires_grad(doubles(x, TD_DIMS(3)), true);
    td_tensor *l = td_cross_entropy(t, labels(&y, TD_RANK_0), usual);
    near(l, 0, log(1 + exp(-1)), 1e-15);
    assert_true(td_backward(l, (td_backward_options)TD_DEFAULTS));
    near(td_grad_of(t), 1, 0, 0);
    l = td_cross_entropy(t, labels(&ruled_out, TD_RANK_0), usual);
    assert_true(isinf(td_item_double(l)));
    const double nan_row[] = { 1, NAN, 0 };
    l = td_cross_entropy(doubles(nan_row, TD_DIMS(3)),
                         labels(&y, TD_RANK_0), usual);
    assert_true(isnan(td_item_double(l)));
}

static void nothing_counted_is_nan_or_zero(void **state)
{
    const int64_t y[] = { -100, -100 };
    td_tensor *x = td_set_requires_grad(doubles(scores, TD_DIMS(2, 3)),
                                        true);
    td_tensor *t = labels(y, TD_DIMS(2));
    td_tensor *mean = td_cross_entropy(x, t, usual);
    assert_true(isnan(td_item_double(mean)));
    assert_true(td_backward(mean, (td_backward_options)TD_DEFAULTS));
    near(td_grad_of(x), 4, 0, 0);
    near(td_cross_entropy(x, t, (td_cross_entropy_options){
        .reduction = TD_LOSS_SUM }), 0, 0, 0);
    td_tensor *none = td_zeros(TD_DIMS(0, 3), wide);
    td_tensor *no_labels = td_zeros(TD_DIMS(0), whole);
    assert_true(isnan(td_item_double(td_cross_entropy(none, no_labels,
                                                      usual))));
    near(td_cross_entropy(none, no_labels, (td_cross_entropy_options){
        .reduction = TD_LOSS_SUM }), 0, 0, 0);
}

static void an_ignored_label_may_be_a_class(void **state)
{
    td_tensor *x = doubles(scores, TD_DIMS(2, 3));
    near(td_cross_entropy(x, labels(truth, TD_DIMS(2)),
        (td_cross_entropy_options){ .ignore_index = td_some(0) }), 0,
        .169846043, 1.5e-7);
}

/* ---- wrong arguments -------------------------------------------------------------- */

static void labels_out_of_range_name_place_and_value(void **state)
{
    td_tensor *x = td_randn(TD_DIMS(4, 10), plain);
    const int64_t high[] = { 0, 9, 10, 12 }, low[] = { 3, -1, 2, 2 };
    refused(td_cross_entropy(x, labels(high, TD_DIMS(4)), usual),
            TD_ERROR_INDEX, "target 10 at position 2 is not one of 10");
    refused(td_cross_entropy(x, labels(low, TD_DIMS(4)), usual),
            TD_ERROR_INDEX, "target -1 at position 1");
    refused(td_cross_entropy(td_zeros(TD_DIMS(2, 0), plain),
                             td_zeros(TD_DIMS(2), whole), usual),
            TD_ERROR_INDEX, "0 classes");
}

static void shapes_and_types_are_named(void **state)
{
    td_tensor *x = td_randn(TD_DIMS(4, 3), plain);
    td_tensor *y = td_zeros(TD_DIMS(4), whole);
    refused(td_cross_entropy(x, td_zeros(TD_DIMS(3), whole), usual),
            TD_ERROR_RUNTIME, "[3]");
    refused(td_cross_entropy(x, td_zeros(TD_DIMS(4, 3), whole), usual),
            TD_ERROR_RUNTIME, "[4, 3]");
    refused(td_cross_entropy(x, td_zeros(TD_DIMS(4), plain), usual),
            TD_ERROR_RUNTIME, "does not fit");
    refused(td_cross_entropy(y, y, usual), TD_ERROR_RUNTIME, "int64");
    refused(td_cross_entropy(td_zeros(TD_RANK_0, plain), y, usual),
            TD_ERROR_RUNTIME, "dimension of classes");
    refused(td_cross_entropy(x, td_zeros(TD_DIMS(4),
        (td_tensor_options){ .dtype = TD_BOOL }), usual),
            TD_ERROR_TYPE, "bool");
    refused(td_cross_entropy(x, y, (td_cross_entropy_options){
        .weight = td_zeros(TD_DIMS(4), plain) }),
            TD_ERROR_RUNTIME, "weight has shape [4], expected [3]");
    refused(td_cross_entropy(x, y, (td_cross_entropy_options){
        .label_smoothing = 1.5 }), TD_ERROR_VALUE, "1.5");
    refused(td_cross_entropy(x, y, (td_cross_entropy_options){
        .label_smoothing = NAN }), TD_ERROR_VALUE, "label_smoothing");
    refused(td_cross_entropy(x, y, (td_cross_entropy_options){
        .reduction = (td_loss_reduction)9 }), TD_ERROR_VALUE, "reduction");
    refused(td_cross_entropy(x, x, (td_cross_entropy_options){
        .ignore_index = td_some(1) }), TD_ERROR_VALUE, "ignore_index");
    assert_null(td_cross_entropy(NULL, y, usual));
    assert_true(td_failed());
    td_error_clear();
}

/* The weights 1, w and 3 of three classes; the mean is (a + w b) / (1 + w). */
static void a_weight_may_have_a_gradient(void **state)
{
    const double w[] = { 1, 2, 3 }, two[] = { 2, 1, 0, 0, 1, 3 };
    const int64_t y[] = { 0, 1 };
    td_tensor *weight = td_set_requires_grad(doubles(w, TD_DIMS(3)), true);
    td_tensor *l = td_cross_entropy(doubles(two, TD_DIMS(2, 3)),
        labels(y, TD_DIMS(2)), (td_cross_entropy_options){
        .weight = weight });
    assert_true(td_backward(l, (td_backward_options)TD_DEFAULTS));
    const double a = log(1 + exp(-1) + exp(-2));
    const double b = log(exp(-1) + 1 + exp(2));
    near(l, 0, (a + 2 * b) / 3, 1e-15);
    near(td_grad_of(weight), 0, 2 * (a - b) / 9, 1e-15);
    near(td_grad_of(weight), 1, (b - a) / 9, 1e-15);
    near(td_grad_of(weight), 2, 0, 0);
}

/* ---- squares --------------------------------------------------------------------- */

static void squares_are_averaged_summed_or_left(void **state)
{
    const double a[] = { 1, 2, 4 }, b[] = { 1, 0, 7 };
    td_tensor *x = td_set_requires_grad(doubles(a, TD_DIMS(3)), true);
    td_tensor *t = td_set_requires_grad(doubles(b, TD_DIMS(3)), true);
    near(td_mse_loss(x, t, TD_LOSS_MEAN), 0, 13.0 / 3, 1e-15);
    near(td_mse_loss(x, t, TD_LOSS_SUM), 0, 13, 0);
    near(td_mse_loss(x, t, TD_LOSS_NONE), 2, 9, 0);
    assert_true(td_backward(td_mse_loss(x, t, TD_LOSS_MEAN),
                            (td_backward_options)TD_DEFAULTS));
    near(td_grad_of(x), 1, 4.0 / 3, 1e-15);
    near(td_grad_of(t), 2, 2, 1e-15);
    td_tensor *none = td_zeros(TD_DIMS(0), wide);
    assert_true(isnan(td_item_double(td_mse_loss(none, none,
                                                 TD_LOSS_MEAN))));
}

static void squares_refuse_what_would_broadcast(void **state)
{
    refused(td_mse_loss(td_zeros(TD_DIMS(4), plain),
                        td_zeros(TD_DIMS(4, 1), plain), TD_LOSS_MEAN),
            TD_ERROR_VALUE, "mse_loss: input and target differ in shape; got [4] and [4, 1]");
    refused(td_mse_loss(td_zeros(TD_DIMS(4), whole),
                        td_zeros(TD_DIMS(4), whole), TD_LOSS_MEAN),
            TD_ERROR_RUNTIME, "int64");
}

/* PyTorch's numbers for two misses, and the bends between. */
static void losses_of_two_tensors(void **state)
{
    const double a[] = { .25, 2 }, zero[] = { 0, 0 }, p[] = { .2, .9 };
    const double bit[] = { 0, 1 }, logs[] = { -.5, -1.5 };
    const int64_t second = 1;
    td_tensor *x = doubles(a, TD_DIMS(2)), *t = doubles(zero, TD_DIMS(2));
    td_tensor *q = doubles(p, TD_DIMS(2)), *b = doubles(bit, TD_DIMS(2));
    td_tensor *smooth = td_smooth_l1_loss(x, t, .5, TD_LOSS_NONE);
    near(smooth, 0, .0625, 0);
    near(smooth, 1, 1.75, 0);
    td_tensor *huber = td_huber_loss(x, t, .5, TD_LOSS_NONE);
    near(huber, 0, .03125, 0);
    near(huber, 1, .875, 0);
    near(td_l1_loss(x, t, TD_LOSS_SUM), 0, 2.25, 0);
    near(td_smooth_l1_loss(x, t, 0, TD_LOSS_SUM), 0, 2.25, 0);
    near(td_binary_cross_entropy(q, b, (td_bit_options)TD_DEFAULTS), 0,
         -(log(.8) + log(.9)) / 2, 1e-15);
    near(td_binary_cross_entropy(b, td_sub(td_ones(TD_DIMS(2), wide), b),
         (td_bit_options){ .reduction = TD_LOSS_SUM }), 0, 200, 0);
    near(td_binary_cross_entropy_with_logits(x, b, (td_bit_options){
        .pos_weight = q, .reduction = TD_LOSS_SUM }), 0,
        log1p(exp(.25)) + .9 * log1p(exp(-2)), 1e-15);
    near(td_kl_div(doubles(logs, TD_DIMS(2)), b, TD_LOSS_SUM), 0, 1.5, 0);
    near(td_nll_loss(doubles(logs, TD_DIMS(2)), labels(&second, TD_RANK_0),
                     usual), 0, 1.5, 0);
    refused(td_binary_cross_entropy(x, b, (td_bit_options)TD_DEFAULTS),
            TD_ERROR_RUNTIME, "probabilities");
    refused(td_huber_loss(x, t, 0, TD_LOSS_SUM), TD_ERROR_RUNTIME, "at 0");
    refused(td_nll_loss(x, labels(truth + 1, TD_RANK_0), usual),
            TD_ERROR_INDEX, "target 2 at position 0 is not one of 2");
}

/* ---- threads and memory -------------------------------------------------------------- */

static void bits_do_not_depend_on_threads(void **state)
{
    td_tensor *x = td_set_requires_grad(td_randn(TD_DIMS(5003, 11), plain),
                                        true);
    td_tensor *y = td_randint(0, 11, TD_DIMS(5003), plain);
    td_tensor *first = NULL, *loss = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        td_set_threads(threads);
        td_set_grad(x, NULL);
        td_tensor *l = td_cross_entropy(x, y, usual);
        assert_true(td_backward(l, (td_backward_options)TD_DEFAULTS));
        if (!first) {
            first = td_clone(td_grad_of(x));
            loss = l;
        }
        assert_true(same_bytes(l, loss));
        assert_true(same_bytes(td_grad_of(x), first));
    }
}

static bool both_losses(void *context)
{
    const double w[] = { 1, 2, 3 };
    td_tensor *x = td_set_requires_grad(doubles(scores, TD_DIMS(2, 3)),
                                        true);
    td_tensor *y = labels(truth, TD_DIMS(2));
    td_tensor *l = td_cross_entropy(x, y, (td_cross_entropy_options){
        .weight = doubles(w, TD_DIMS(3)) });
    td_tensor *m = td_mse_loss(x, x, TD_LOSS_MEAN);
    return td_backward(td_add(l, m), (td_backward_options)TD_DEFAULTS);
}

static void every_allocation_may_fail(void **state)
{
    assert_in_range(fail_each_allocation(both_losses, NULL), 1, 499);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(golden_numbers_with_labels),
        CASE(golden_numbers_with_probabilities),
        CASE(the_example_of_the_chapter),
        CASE(images_with_a_label_a_pixel),
        CASE(labels_may_be_bytes_or_strided),
        CASE(large_scores_do_not_overflow),
        CASE(a_tiny_loss_keeps_its_digits),
        CASE(ruled_out_classes_cost_nothing),
        CASE(nothing_counted_is_nan_or_zero),
        CASE(an_ignored_label_may_be_a_class),
        CASE(labels_out_of_range_name_place_and_value),
        CASE(shapes_and_types_are_named),
        CASE(a_weight_may_have_a_gradient),
        CASE(squares_are_averaged_summed_or_left),
        CASE(squares_refuse_what_would_broadcast),
        CASE(losses_of_two_tensors),
        CASE(bits_do_not_depend_on_threads),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
