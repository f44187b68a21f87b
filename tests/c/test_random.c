/* needs: random */
/* Random numbers: the same for any threads, uniform, normal within 2 ulp,
   every order of a shuffle equally likely, and every argument checked. */
#include "treadle_test.h"
#include <pthread.h>
#include "ops/random.h"
#include "core/registry.h"

/* ---- words ------------------------------------------------------------ */

static void mix_is_splitmix64(void **state)
{
    /* the first outputs of Vigna's splitmix64.c from state 0 */
    assert_true(td_mix(0x9e3779b97f4a7c15) == 0xe220a8397b1dcdaf);
    assert_true(td_mix(2 * 0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4);
}

static void steps_are_odd_and_busy(void **state)
{
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t step = odd_step(i);
        assert_true(step & 1);
        assert_true(__builtin_popcountll(step ^ (step >> 1)) >= 24);
    }
}

static void every_bit_is_balanced_in_words_and_in_streams(void **state)
{
    enum { N = 40000 };
    for (int way = 0; way < 2; way++) {
        int ones[64] = { 0 };
        for (uint64_t i = 0; i < N; i++) {
            const td_stream s = td_stream_of(
                (td_random_state){ 5, way ? i : 3 });
            const uint64_t x = td_draw(s, way ? 0 : i);
            for (int b = 0; b < 64; b++)
                ones[b] += (int)(x >> b & 1);
        }
        for (int b = 0; b < 64; b++)        /* 5 deviations of 100 */
            assert_true(abs(ones[b] - N / 2) < 500);
    }
}

static double chi_square(const double *count, int n, double expected)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (count[i] - expected) * (count[i] - expected) / expected;
    return sum;
}

/* 255 degrees: mean 255, deviation 22.6; 5 deviations are 368. */
static void neighbours_are_independent(void **state)
{
    double along[256] = { 0 }, across[256] = { 0 };
    for (uint64_t i = 0; i < 65536; i++) {
        const td_stream a = td_stream_of((td_random_state){ 9, i });
        const td_stream b = td_stream_of((td_random_state){ 9, i + 1 });
        along[td_draw(a, 2) >> 60 << 4 | td_draw(a, 3) >> 60]++;
        across[td_draw(a, 7) >> 60 << 4 | td_draw(b, 7) >> 60]++;
    }
    assert_true(chi_square(along, 256, 256) < 368);
    assert_true(chi_square(across, 256, 256) < 368);
}

static void seeds_next_to_each_other_are_independent(void **state)
{
    double pairs[256] = { 0 };
    for (uint64_t seed = 0; seed < 65536; seed++) {
        const td_stream a = td_stream_of((td_random_state){ seed, 0 });
        const td_stream b = td_stream_of((td_random_state){ seed + 1, 0 });
        pairs[td_draw(a, 0) >> 60 << 4 | td_draw(b, 0) >> 60]++;
    }
    assert_true(chi_square(pairs, 256, 256) < 368);
}

/* ---- seeds, states, threads -------------------------------------------- */

static void a_seed_repeats_everything(void **state)
{
    td_tensor *first[4], *second[4];
    for (int run = 0; run < 2; run++) {
        td_tensor **out = run ? second : first;
        td_manual_seed(77);
        out[0] = td_rand(TD_DIMS(7, 11), plain);
        out[1] = td_randn(TD_DIMS(13), wide);
        out[2] = td_randint(-5, 9, TD_DIMS(101), plain);
        out[3] = td_randperm(57);
    }
    for (int i = 0; i < 4; i++)
        assert_true(same_bytes(first[i], second[i]));
    assert_false(same_bytes(td_rand(TD_DIMS(50), plain),
                            td_rand(TD_DIMS(50), plain)));
    td_manual_seed(78);
    assert_false(same_bytes(first[0], td_rand(TD_DIMS(7, 11), plain)));
}

static td_tensor *draw_kind(int kind, void *unused)
{
    const int64_t n = 50021;
    td_manual_seed(3);
    switch (kind) {
    case 0: return td_rand(TD_DIMS(n), plain);
    case 1: return td_randn(TD_DIMS(n), plain);
    case 2: return td_randn(TD_DIMS(n), wide);
    case 3: return td_randint(0, 1000, TD_DIMS(n), plain);
    case 4: return td_bernoulli_(td_empty(TD_DIMS(n), plain), 0.3);
    default: return td_rand(TD_DIMS(n), wide);
    }
}

static void values_do_not_depend_on_threads(void **state)
{
    expect_same_bits(draw_kind, 6, NULL);
}

static void known_numbers_never_change(void **state)
{
    td_manual_seed(0);
    td_tensor *w = td_randint(0, 1000000, TD_DIMS(3), plain);
    const int64_t *x = td_data(w);
    td_manual_seed(0);
    const float *u = td_data(td_rand(TD_DIMS(2), plain));
    const td_stream s = td_stream_of((td_random_state){ 0, 0 });
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(x[i], (int64_t)(td_draw(s, i) % 1000000));
    assert_true(u[0] == (float)(td_draw(s, 0) >> 40) * 0x1p-24f);
}

static void a_prefix_of_a_longer_tensor_is_the_shorter(void **state)
{
    td_manual_seed(4);
    td_tensor *a = td_randn(TD_DIMS(1001), plain);
    td_manual_seed(4);
    td_tensor *b = td_randn(TD_DIMS(5000), plain);
    assert_memory_equal(td_data(a), td_data(b), 1001 * sizeof(float));
}

static void strides_do_not_change_the_values(void **state)
{
    td_manual_seed(4);
    td_tensor *a = td_normal_(td_empty(TD_DIMS(37, 23), plain), 1, 2);
    td_manual_seed(4);
    td_tensor *b = td_normal_(td_transpose(
        td_empty(TD_DIMS(23, 37), plain), 0, 1), 1, 2);
    assert_false(td_is_contiguous(b));
    assert_true(same_bytes(a, td_contiguous(b)));
    td_manual_seed(4);
    td_tensor *every = td_slice(td_zeros(TD_DIMS(1702), plain), 0,
        (td_opt_i64)td_some(0), (td_opt_i64)TD_DEFAULTS, 2);
    td_normal_(every, 1, 2);
    assert_true(same_bytes(td_reshape(a, TD_DIMS(-1)),
                           td_contiguous(every)));
}

static void a_state_can_be_swapped_in_and_out(void **state)
{
    td_manual_seed(10);
    td_tensor *expected = td_rand(TD_DIMS(9), plain);
    td_manual_seed(10);
    const td_random_state mine = { 99, 5 };
    const td_random_state outside = td_random_swap(mine);
    td_tensor *other = td_rand(TD_DIMS(9), plain);
    const td_random_state after = td_random_swap(outside);
    assert_true(after.seed == 99 && after.stream == 6);
    assert_true(same_bytes(expected, td_rand(TD_DIMS(9), plain)));
    assert_false(same_bytes(expected, other));
}

static void a_generator_is_apart_from_the_thread(void **state)
{
    td_generator *g = td_generator_new(10);
    td_manual_seed(10);
    td_tensor *expected = td_rand(TD_DIMS(5), plain);
    const td_dims five = TD_DIMS(5);
    const td_value attr[] = { td_v_ints(&five),
        { .kind = TD_GENERATOR, .as.generator = g }, td_v_none(),
        td_v_none() };
    td_tensor *x = td_run1(&td_ops[TD_OP_rand], 0, NULL, 4, attr);
    assert_true(same_bytes(expected, x));
    assert_true(td_generator_state(g, NULL).stream == 1);
    const td_random_state back = { 10, 0 };
    td_generator_state(g, &back);
    assert_true(same_bytes(expected, td_run1(&td_ops[TD_OP_rand], 0, NULL,
                                             4, attr)));
    if (td_memory_stats().live_objects == 0)
        fail();
}

static void *draw_unseeded(void *out)
{
    *(td_random_state *)out = td_random_swap((td_random_state){ 0, 0 });
    return NULL;
}

static void threads_without_a_seed_do_not_make_twins(void **state)
{
    pthread_t thread[2];
    td_random_state s[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, draw_unseeded,
                                        &s[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    assert_true(s[0].seed == s[1].seed && s[0].stream != s[1].stream);
}

/* ---- distributions ----------------------------------------------------- */

static void uniforms_fill_their_interval_evenly(void **state)
{
    double bins[100] = { 0 };
    const float *x = td_data(td_uniform_(
        td_empty(TD_DIMS(100000), plain), -3, 2));
    for (int i = 0; i < 100000; i++) {
        assert_true(x[i] >= -3 && x[i] < 2);
        bins[(int)((x[i] + 3) * 20)]++;
    }
    assert_true(chi_square(bins, 100, 1000) < 99 + 5 * 14.1);
}

static void the_open_end_is_open(void **state)
{
    td_tensor *x = td_uniform_(td_empty(TD_DIMS(300000), plain), 1,
                               1 + 0x1p-22);
    const float *v = td_data(x);
    bool seen[4] = { false };
    for (int i = 0; i < 300000; i++) {
        assert_true(v[i] >= 1 && v[i] < 1 + 0x1p-22f);
        seen[(int)((v[i] - 1) * 0x1p23f)] = true;
    }
    assert_true(seen[0] && seen[1]);
    td_uniform_(x, 0.25, 0.25);
    assert_true(v[0] == 0.25f && v[299999] == 0.25f);
    const double *d = td_data(td_uniform_(td_empty(TD_DIMS(1000), wide),
                                          1, nextafter(1, 2)));
    for (int i = 0; i < 1000; i++)
        assert_true(d[i] == 1);
}

static void extreme_draws_give_bounded_numbers(void **state)
{
    const uint64_t words[] = { 0, UINT64_MAX, UINT64_MAX << 11,
                               UINT64_MAX >> 24 };
    for (int i = 0; i < 4; i++) {
        const double u = (double)(words[i] >> 40) * 0x1p-24;
        assert_true(u >= 0 && u < 1 && (float)u < 1);
    }
    const float *x = td_data(td_randn(TD_DIMS(200000), plain));
    for (int i = 0; i < 200000; i++)
        assert_true(fabsf(x[i]) < 8.58f);
}

/* The moments of N standard normal numbers, within 5 deviations. */
static void normals_have_the_right_moments(void **state)
{
    enum { N = 200000 };
    for (int kind = 0; kind < 2; kind++) {
        td_tensor *t = td_to(td_randn(TD_DIMS(N), kind ? plain : wide),
                             TD_FLOAT64);
        const double *x = td_data(t);
        double m[5] = { 0 }, pair = 0;
        for (int i = 0; i < N; i++) {
            for (int k = 1; k < 5; k++)
                m[k] += pow(x[i], k) / N;
            pair += x[i] * x[i ^ 1] / N;
        }
        const double unit = 5 / sqrt(N);
        assert_true(fabs(m[1]) < unit);
        assert_true(fabs(m[2] - 1) < unit * sqrt(2));
        assert_true(fabs(m[3]) < unit * sqrt(15));
        assert_true(fabs(m[4] - 3) < unit * sqrt(96));
        assert_true(fabs(pair) < unit * 1.5);
    }
}

static void normals_follow_the_bell(void **state)
{
    enum { N = 100000, BINS = 40 };
    double bins[BINS] = { 0 };
    const float *x = td_data(td_randn(TD_DIMS(N), plain));
    for (int i = 0; i < N; i++) {
        const double p = 0.5 * erfc(-x[i] / sqrt(2));
        bins[p < 1 ? (int)(p * BINS) : BINS - 1]++;
    }
    assert_true(chi_square(bins, BINS, (double)N / BINS) < 39 + 5 * 8.9);
}

#if __LDBL_MANT_DIG__ >= 64
/* Box and Muller's formula in long double against what the library drew. */
static long double exact_normal(td_stream s, uint64_t i)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    const uint64_t x = td_draw(s, i & ~1ull), y = td_draw(s, i | 1);
    const long double u = (long double)((x >> 11) + 1) * 0x1p-53L;
    const long double angle = (long double)(y >> 14) * 0x1p-50L * pi / 4;
    const long double r = sqrtl(-2 * logl(u));
    const bool cosine = !(i & 1) == !!(y & 4);
    const long double v = r * (cosine ? cosl(angle) : sinl(angle));
    return y & (i & 1 ? 2 : 1) ? -v : v;
}

static void normals_are_within_two_ulp(void **state)
{
    enum { N = 200000 };
    volatile long double one = 1, little = 0x1p-60L;
    if (one + little == one)
        skip();                      /* valgrind: long double is double */
    td_manual_seed(12);
    const double *x = td_data(td_randn(TD_DIMS(N), wide));
    const float *z = td_data(td_randn(TD_DIMS(N), plain));
    const td_stream s = td_stream_of((td_random_state){ 12, 0 });
    const td_stream t = td_stream_of((td_random_state){ 12, 1 });
    double worst = 0, single = 0;
    for (uint64_t i = 0; i < N; i++) {
        const long double e = exact_normal(s, i), f = exact_normal(t, i);
        const double d = (double)fabsl(e), g = (double)fabsl(f);
        const double ulp = nextafter(d, INFINITY) - d;
        const double unit = (double)(nextafterf((float)g, INFINITY)
                                     - (float)g);
        worst = fmax(worst, (double)fabsl(x[i] - e) / ulp);
        single = fmax(single, (double)fabsl(z[i] - f) / unit);
    }
    if (worst > 2 || single > 1)
        fail_msg("worst %g ulp in float64, %g in float32", worst, single);
}
#endif

static void integers_are_even_over_every_range(void **state)
{
    const int64_t *x = td_data(td_randint(-3, 4, TD_DIMS(70000), plain));
    double count[7] = { 0 };
    for (int i = 0; i < 70000; i++) {
        assert_true(x[i] >= -3 && x[i] < 4);
        count[x[i] + 3]++;
    }
    assert_true(chi_square(count, 7, 10000) < 27);
    /* three quarters of all words: the low third must not come twice */
    const td_stream s = td_stream_of((td_random_state){ 2, 2 });
    const uint64_t n = 3ull << 62;
    double third[3] = { 0 };
    for (uint64_t i = 0; i < 30000; i++)
        third[td_draw_below(s, i, n) >> 62]++;
    assert_true(chi_square(third, 3, 10000) < 14);
}

static void integers_reach_the_ends_of_their_types(void **state)
{
    const uint8_t *b = td_data(td_randint(0, 256, TD_DIMS(20000),
                               (td_tensor_options){ .dtype = TD_UINT8 }));
    bool seen[256] = { false };
    for (int i = 0; i < 20000; i++)
        seen[b[i]] = true;
    for (int i = 0; i < 256; i++)
        assert_true(seen[i]);
    const int64_t *x = td_data(td_randint(INT64_MIN, INT64_MAX,
                                          TD_DIMS(1000), plain));
    int negative = 0;
    for (int i = 0; i < 1000; i++)
        negative += x[i] < 0;
    assert_in_range(negative, 420, 580);
    td_manual_seed(1);
    td_tensor *f = td_randint(0, 100, TD_DIMS(50),
                              (td_tensor_options){ .dtype = TD_FLOAT32 });
    td_manual_seed(1);
    td_tensor *i = td_randint(0, 100, TD_DIMS(50), plain);
    assert_true(same_bytes(td_to(f, TD_INT64), i));
}

static void a_permutation_holds_each_number_once(void **state)
{
    const int64_t sizes[] = { 0, 1, 2, 3, 1009 };
    for (int k = 0; k < 5; k++) {
        const int64_t n = sizes[k];
        td_tensor *p = td_randperm(n);
        assert_non_null(p);
        assert_int_equal(td_numel(p), n);
        bool seen[1009] = { false };
        for (int64_t i = 0; i < n; i++) {
            const int64_t v = ((int64_t *)td_data(p))[i];
            assert_true(v >= 0 && v < n && !seen[v]);
            seen[v] = true;
        }
    }
}

static void every_order_is_equally_likely(void **state)
{
    double orders[27] = { 0 }, six[6];
    for (int i = 0; i < 6000; i++) {
        td_scope_begin();
        const int64_t *p = td_data(td_randperm(3));
        orders[p[0] * 9 + p[1] * 3 + p[2]]++;
        td_scope_end();
    }
    int n = 0;
    for (int i = 0; i < 27; i++)
        if (orders[i] > 0 && n < 6)
            six[n++] = orders[i];
    assert_int_equal(n, 6);
    assert_true(chi_square(six, 6, 1000) < 20.5);
}

static void coins_fall_as_asked(void **state)
{
    td_tensor *x = td_empty(TD_DIMS(100000), plain);
    const float *v = td_data(x);
    const double chances[] = { 0, 0.07, 0.5, 1 };
    for (int k = 0; k < 4; k++) {
        td_bernoulli_(x, chances[k]);
        double sum = 0;
        for (int i = 0; i < 100000; i++) {
            assert_true(v[i] == 0 || v[i] == 1);
            sum += v[i];
        }
        const double p = chances[k];
        assert_true(fabs(sum - 1e5 * p) <= 5 * sqrt(1e5 * p * (1 - p)));
    }
    td_tensor *p = td_rand(TD_DIMS(3, 5), plain);
    td_tensor *wideness = td_expand(td_unsqueeze(p, 0),
                                    TD_DIMS(4000, 3, 5));
    const float *y = td_data(td_bernoulli(wideness));
    for (int j = 0; j < 15; j++) {
        double sum = 0;
        for (int i = 0; i < 4000; i++)
            sum += y[i * 15 + j];
        assert_true(fabs(sum / 4000 - ((float *)td_data(p))[j]) < 0.04);
    }
}

/* ---- shapes, types, errors ---------------------------------------------- */

static void shapes_of_rank_zero_and_size_zero_work(void **state)
{
    assert_int_equal(td_numel(td_rand(TD_RANK_0, plain)), 1);
    assert_int_equal(td_rank(td_randn(TD_RANK_0, wide)), 0);
    assert_int_equal(td_numel(td_randn(TD_DIMS(3, 0, 2), plain)), 0);
    assert_int_equal(td_numel(td_randint(0, 1, TD_DIMS(0), plain)), 0);
    td_tensor *x = td_rand_like(td_zeros(TD_DIMS(2, 3), wide), plain);
    assert_int_equal(td_dtype_of(x), TD_FLOAT64);
    assert_int_equal(td_size(x, 1), 3);
    x = td_randn_like(x, (td_tensor_options){ .dtype = TD_FLOAT32 });
    assert_int_equal(td_dtype_of(x), TD_FLOAT32);
    assert_false(td_failed());
}

static void in_place_returns_the_same_tensor_and_counts(void **state)
{
    td_tensor *x = td_zeros(TD_DIMS(4), plain);
    const unsigned before = atomic_load(&x->storage->version);
    assert_ptr_equal(td_uniform_(x, 0, 1), x);
    assert_ptr_equal(td_normal_(x, 0, 1), x);
    assert_ptr_equal(td_bernoulli_(x, 0.5), x);
    assert_int_equal(atomic_load(&x->storage->version), before + 3);
}

static void wrong_arguments_are_named(void **state)
{
    td_tensor *x = td_zeros(TD_DIMS(4), plain);
    td_tensor *n = td_zeros(TD_DIMS(4),
                            (td_tensor_options){ .dtype = TD_INT64 });
    refused(td_uniform_(x, 2, 1), TD_ERROR_VALUE, "uniform_");
    refused(td_uniform_(x, NAN, 1), TD_ERROR_VALUE, "uniform_");
    refused(td_uniform_(x, 0, INFINITY), TD_ERROR_VALUE, "not finite");
    refused(td_uniform_(x, -3e38, 3e38), TD_ERROR_VALUE, "not finite");
    refused(td_uniform_(n, 0, 1), TD_ERROR_TYPE, "int64");
    refused(td_normal_(x, 0, -1), TD_ERROR_VALUE, "std");
    refused(td_normal_(x, 0, NAN), TD_ERROR_VALUE, "std");
    refused(td_bernoulli_(x, 1.5), TD_ERROR_VALUE, "1.5");
    refused(td_bernoulli_(x, NAN), TD_ERROR_VALUE, "bernoulli_");
    td_fill_(td_select(x, 0, 2), td_float(-0.5));
    refused(td_bernoulli(x), TD_ERROR_VALUE, "position 2");
    refused(td_bernoulli(n), TD_ERROR_TYPE, "bernoulli");
    refused(td_uniform_(td_expand(td_zeros(TD_DIMS(1), plain),
                                  TD_DIMS(3)), 0, 1),
            TD_ERROR_RUNTIME, "expanded");
    assert_null(td_uniform_(NULL, 0, 1));
    assert_true(td_failed());
    td_error_clear();
}

static void wrong_sizes_and_types_are_named(void **state)
{
    refused(td_randint(3, 3, TD_DIMS(2), plain), TD_ERROR_VALUE, "low = 3");
    refused(td_randint(0, 257, TD_DIMS(2),
                       (td_tensor_options){ .dtype = TD_UINT8 }),
            TD_ERROR_VALUE, "uint8");
    refused(td_randint(0, 2, TD_DIMS(2),
                       (td_tensor_options){ .dtype = TD_INT8 }),
            TD_ERROR_TYPE, "int8");
    refused(td_randperm(-1), TD_ERROR_VALUE, "-1");
    refused(td_rand(TD_DIMS(2), (td_tensor_options){ .dtype = TD_INT32 }),
            TD_ERROR_TYPE, "int32");
    assert_null(td_randn(TD_DIMS(-2), plain));
    assert_true(td_failed());
    td_error_clear();
    assert_null(td_rand(TD_DIMS(1ll << 40, 1ll << 40), plain));
    assert_true(td_failed());
    td_error_clear();
}

static void a_failed_draw_leaves_the_sequence(void **state)
{
    td_manual_seed(8);
    td_tensor *expected = td_rand(TD_DIMS(6), plain);
    td_manual_seed(8);
    int64_t failures = 0;
    td_tensor *x = NULL;
    for (int64_t n = 0; !x; n++, failures++) {
        td_memory_fail_after(n);
        x = td_rand(TD_DIMS(6), plain);
        had_memory(x != NULL);
    }
    assert_true(failures > 1);
    assert_true(same_bytes(expected, x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mix_is_splitmix64),
        cmocka_unit_test(steps_are_odd_and_busy),
        cmocka_unit_test(every_bit_is_balanced_in_words_and_in_streams),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(seeds_next_to_each_other_are_independent),
        CASE(a_seed_repeats_everything),
        CASE(values_do_not_depend_on_threads),
        CASE(known_numbers_never_change),
        CASE(a_prefix_of_a_longer_tensor_is_the_shorter),
        CASE(strides_do_not_change_the_values),
        CASE(a_state_can_be_swapped_in_and_out),
        CASE(a_generator_is_apart_from_the_thread),
        CASE(threads_without_a_seed_do_not_make_twins),
        CASE(uniforms_fill_their_interval_evenly),
        CASE(the_open_end_is_open),
        CASE(extreme_draws_give_bounded_numbers),
        CASE(normals_have_the_right_moments),
        CASE(normals_follow_the_bell),
#if __LDBL_MANT_DIG__ >= 64
        CASE(normals_are_within_two_ulp),
#endif
        CASE(integers_are_even_over_every_range),
        CASE(integers_reach_the_ends_of_their_types),
        CASE(a_permutation_holds_each_number_once),
        CASE(every_order_is_equally_likely),
        CASE(coins_fall_as_asked),
        CASE(shapes_of_rank_zero_and_size_zero_work),
        CASE(in_place_returns_the_same_tensor_and_counts),
        CASE(wrong_arguments_are_named),
        CASE(wrong_sizes_and_types_are_named),
        CASE(a_failed_draw_leaves_the_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
