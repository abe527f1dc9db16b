/* The shapes of pods: which pods are alike, how they are counted, and which one gives way. */
#include "core/policy/shapes.h"

#include "core/state/pod_allocation.h"
#include "fail_alloc.h"
#include "unit.h"

#include <math.h>

static struct shapes s;

static void tear_down(void)
{
    shapes_done(&s);
}

static const struct shape base = {
    .cpu = 1000, .mem = 8, .cards = 1, .percent = 20, .cores = 30, .models = STR("A100")};

static const struct shape others[] = {
    {.cpu = 1001, .mem = 8, .cards = 1, .percent = 20, .cores = 30, .models = STR("A100")},
    {.cpu = 1000, .mem = 9, .cards = 1, .percent = 20, .cores = 30, .models = STR("A100")},
    {.cpu = 1000, .mem = 8, .cards = 2, .percent = 20, .cores = 30, .models = STR("A100")},
    {.cpu = 1000, .mem = 8, .cards = 1, .percent = 21, .cores = 30, .models = STR("A100")},
    {.cpu = 1000, .mem = 8, .cards = 1, .percent = 20, .cores = 31, .models = STR("A100")},
    {.cpu = 1000, .mem = 8, .cards = 1, .percent = 20, .cores = 30, .models = STR("A10")},
    {.cpu = 1000, .mem = 8, .cards = 1, .percent = 20, .cores = 30},
    {.cpu = 1000,
     .mem = 8,
     .cards = 1,
     .percent = 20,
     .cores = 30,
     .whole = true,
     .models = STR("A100")},
    /* The hash begins with cpu ^ mem. */
    {.cpu = 8, .mem = 1000, .cards = 1, .percent = 20, .cores = 30, .models = STR("A100")},
};

TEST_EACH(each_field_makes_another_shape, COUNT_OF(others))
{
    shapes_add(&s, &base);
    shapes_add(&s, &others[_i]);
    ck_assert_uint_eq(s.n, 2);
    shapes_add(&s, &base);
    shapes_add(&s, &others[_i]);
    ck_assert_uint_eq(s.n, 2);
    ck_assert_uint_eq(s.arrivals, 4);
}

TEST(a_pod_with_a_long_list_of_models_is_not_counted)
{
    char models[SHAPE_MODELS_MAX + 1];
    struct shape x = base;
    memset(models, 'a', sizeof(models));
    x.models = (struct str){models, SHAPE_MODELS_MAX};
    shapes_add(&s, &x);
    ck_assert_uint_eq(s.n, 1);
    x.models.n++;
    shapes_add(&s, &x);
    ck_assert_uint_eq(s.n, 1);
    ck_assert_uint_eq(s.arrivals, 1);
}

/* The table has its own copy of the models. */
TEST(equal_pods_are_one_shape)
{
    char models[] = "A100";
    struct shape x = base;
    x.models = (struct str){models, 4};
    shapes_add(&s, &x);
    models[0] = 'B';
    ck_assert_str_is(s.all[0].shape.models, "A100");
    for (int i = 0; i < 1000; i++)
        shapes_add(&s, &base);
    ck_assert_uint_eq(s.n, 1);
    ck_assert_uint_eq(s.arrivals, 1001);
    ck_assert_double_eq_tol(s.all[0].weight, s.sum, 1e-6);
}

/* Against the sum of the powers of two, over several changes of the unit: one comes after some
 * 400,000 pods. */
TEST(a_pod_counts_half_after_the_half_life)
{
    double first = 0;
    double second = 0;
    const double keep = exp2(-1.0 / SHAPES_HALF_LIFE);
    shapes_add(&s, &base);
    for (int i = 0; i < SHAPES_HALF_LIFE; i++)
        shapes_add(&s, &others[0]);
    ck_assert_double_eq_tol(s.all[0].weight / s.unit, 0.5, 1e-9);
    shapes_done(&s);
    for (int i = 0; i < 900000; i++) {
        bool is_first = i % 7 == 0 || i > 890000;
        shapes_add(&s, is_first ? &base : &others[1]);
        first = first * keep + (is_first ? 1 : 0);
        second = second * keep + (is_first ? 0 : 1);
    }
    ck_assert_double_eq_tol(s.all[0].weight / s.unit / first, 1, 1e-6);
    ck_assert_double_eq_tol(s.all[1].weight / s.unit / second, 1, 1e-6);
    ck_assert_double_eq_tol(s.sum / s.unit / (first + second), 1, 1e-6);
    ck_assert(s.unit >= 1 && s.unit < 1e7);
    ck_assert_uint_eq(s.arrivals, 900000);
}

static double sum_of_weights(void)
{
    double sum = 0;
    for (uint32_t i = 0; i < s.n; i++)
        sum += s.all[i].weight;
    return sum;
}

static bool knows(int64_t cpu)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.all[i].shape.cpu == cpu)
            return true;
    }
    return false;
}

TEST(a_full_table_loses_the_rarest)
{
    struct shape x = {.cards = 1, .mem = 1, .models = STR("T4")};
    for (int round = 0; round < 2; round++) {
        for (x.cpu = 0; x.cpu < SHAPES_MAX; x.cpu++) {
            if (round == 0 || x.cpu != 77)
                shapes_add(&s, &x);
        }
    }
    ck_assert_uint_eq(s.n, SHAPES_MAX);
    s.all[77].price = 3;
    x.cpu = 100000;
    shapes_add(&s, &x);
    ck_assert_uint_eq(s.n, SHAPES_MAX);
    ck_assert(!knows(77) && knows(76) && knows(78) && knows(100000));
    ck_assert(s.all[77].price == 0); /* not that of the shape that was here */
    ck_assert_double_eq_tol(s.sum, sum_of_weights(), 1e-6 * s.sum);
    /* A client that makes up shapes drives out only those of which there are as few pods. */
    for (x.cpu = 200000; x.cpu < 205000; x.cpu++)
        shapes_add(&s, &x);
    ck_assert_uint_eq(s.n, SHAPES_MAX);
    ck_assert(knows(76) && knows(78));
    ck_assert_double_eq_tol(s.sum, sum_of_weights(), 1e-6 * s.sum);
}

static const struct {
    struct shape shape;
    int64_t total;
    uint32_t steps;
} sizes[] = {
    {{.cards = 1, .mem = 8}, 16, 50},
    {{.cards = 1, .mem = 1}, 3, 34}, /* rounded up */
    {{.cards = 1, .mem = 16}, 16, 100},
    {{.cards = 1, .mem = 17}, 16, 0},
    {{.cards = 2, .mem = 8}, 16, 50},
    {{.cards = 1, .mem = 1}, (int64_t)1 << 40, 1},
    {{.cards = 1, .percent = 7}, (int64_t)1 << 40, 7}, /* the larger one */
    {{.cards = 1, .mem = 8, .percent = 40}, 16, 50},
    {{.cards = 1, .mem = 8, .percent = 60}, 16, 60},
    {{.cards = 1, .mem = 8, .cores = 70}, 16, 70},
    {{.cards = 1, .mem = 8, .cores = 101}, 16, 0},
    {{.cards = 1, .whole = true}, 16, 100},
    {{.cards = 1, .whole = true, .mem = 17}, 16, 0},
    {{.cards = 1, .mem = 8}, 0, 0},
    {{.cards = 1, .mem = 8}, -1, 0},
    {{.cards = 0, .cpu = 1000}, 16, 0},
    {{.cards = 1, .mem = REQUEST_MEM_MAX}, REQUEST_MEM_MAX, 100},
};

TEST_EACH(hundredths_of_a_card, COUNT_OF(sizes))
{
    ck_assert_uint_eq(shape_steps(&sizes[_i].shape, sizes[_i].total), sizes[_i].steps);
}

TEST(the_shape_of_a_request)
{
    struct request r = {.mem = 30,
                        .cores = 60,
                        .cards = 3,
                        .percent = 40,
                        .models = STR("A100"),
                        .host = {.cpu = 500, .memory = 9}};
    struct shape x = shape_of(&r);
    ck_assert_int_eq(x.cpu, 500);
    ck_assert_int_eq(x.mem, 10);
    ck_assert_uint_eq(x.cards, 3);
    ck_assert_uint_eq(x.cores, 20);
    ck_assert_uint_eq(x.percent, 40);
    ck_assert(!x.whole);
    ck_assert_str_is(x.models, "A100");
    x = shape_of(&(struct request){.whole = true});
    ck_assert(x.whole && x.cards == 1);
    /* Cards of another device plugin are not ours to value. */
    x = shape_of(&(struct request){.exclusive = 2, .models = STR("A"), .host = {.cpu = 7}});
    ck_assert(x.cards == 0 && x.cpu == 7 && x.models.n == 0);
}

static enum errc add_or_fail(void *ctx)
{
    uint32_t n = s.n;
    struct shape x = others[0];
    (void)ctx;
    x.cpu = 5000 + n; /* a new one */
    shapes_add(&s, &x);
    enum errc code = s.n == n ? ERR_NOMEM : OK;
    ck_assert_uint_eq(s.arrivals, s.n);
    ck_assert_double_eq_tol(s.sum, sum_of_weights(), 1e-9);
    shapes_done(&s);
    return code;
}

TEST(without_memory_a_pod_is_not_counted)
{
    ck_assert_uint_eq(fail_alloc_each(add_or_fail, NULL), 1);
    /* Nor when the table is full: the shape that would give way stays. */
    struct shape x = base;
    for (x.cpu = 0; x.cpu < SHAPES_MAX; x.cpu++)
        shapes_add(&s, &x);
    fail_alloc_arm(FAIL_ONCE, 1);
    shapes_add(&s, &x);
    fail_alloc_disarm();
    ck_assert(!knows(SHAPES_MAX) && knows(0));
    ck_assert_uint_eq(s.arrivals, SHAPES_MAX);
}

int main(void)
{
    TCase *tc = unit_case("shapes");
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, NULL, tear_down);
    return unit_run();
}
