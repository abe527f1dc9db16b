/* Random numbers of the simulator: the published generator, and what is drawn from it. */
#include "sim/rng.h"
#include "unit.h"

/* xoshiro256** of a known state, computed by the authors' program. */
TEST(test_is_the_published_generator)
{
    struct rng r = {.state = {1, 2, 3, 4}};
    ck_assert_uint_eq(rng_next(&r), UINT64_C(11520));
    ck_assert_uint_eq(rng_next(&r), UINT64_C(0));
    ck_assert_uint_eq(rng_next(&r), UINT64_C(1509978240));
    ck_assert_uint_eq(rng_next(&r), UINT64_C(1215971899390074240));
}

TEST(test_repeats_by_seed_and_stream)
{
    struct rng a;
    struct rng b;
    struct rng other_seed;
    struct rng other_stream;
    rng_init(&a, 7, RNG_ARRIVALS);
    rng_init(&b, 7, RNG_ARRIVALS);
    rng_init(&other_seed, 8, RNG_ARRIVALS);
    rng_init(&other_stream, 7, RNG_NODES);
    for (int i = 0; i < 100; i++) {
        uint64_t x = rng_next(&a);
        ck_assert_uint_eq(x, rng_next(&b));
        ck_assert_uint_ne(x, rng_next(&other_seed));
        ck_assert_uint_ne(x, rng_next(&other_stream));
    }
}

TEST(test_draws_each_number_equally_often)
{
    struct rng r;
    unsigned counts[6] = {0};
    rng_init(&r, 1, RNG_ARRIVALS);
    for (int i = 0; i < 60000; i++)
        counts[rng_below(&r, 6)]++;
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        ck_assert_msg(counts[i] > 9600 && counts[i] < 10400, "%zu: %u", i, counts[i]);
    ck_assert_uint_eq(rng_below(&r, 1), 0);
}

/* Each of the six orders of three items, as often as the others. */
TEST(test_shuffles_into_each_order)
{
    struct rng r;
    unsigned counts[27] = {0};
    rng_init(&r, 2, RNG_NODES);
    for (int i = 0; i < 60000; i++) {
        uint32_t x[3] = {0, 1, 2};
        rng_shuffle(&r, x, 3);
        ck_assert_uint_eq(x[0] + x[1] + x[2], 3);
        counts[x[0] * 9 + x[1] * 3 + x[2]]++;
    }
    unsigned orders = 0;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        ck_assert(counts[i] == 0 || (counts[i] > 9600 && counts[i] < 10400));
        orders += counts[i] > 0;
    }
    ck_assert_uint_eq(orders, 6);
}

TEST(test_exponential_has_its_mean)
{
    struct rng r;
    double sum = 0;
    rng_init(&r, 3, RNG_ARRIVALS);
    for (int i = 0; i < 100000; i++) {
        double x = rng_exponential(&r, 2.5);
        ck_assert(x >= 0);
        sum += x;
    }
    ck_assert_double_eq_tol(sum / 100000, 2.5, 0.03);
}
