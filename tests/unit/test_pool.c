/* The pool of shared, counted objects. */
#include "base/pool.h"

#include "base/mem.h"
#include "fail_alloc.h"
#include "unit.h"

#include <signal.h>

enum {
    WORDS = 200,
    STEPS = 20000
};

struct word {
    struct pooled pooled;
    unsigned value;
};

static const struct map_seed seed = {1, 2};

static bool is_word(const struct pooled *thing, const void *like)
{
    const struct word *w = (const struct word *)(const void *)thing;
    return w->value == *(const unsigned *)like;
}

/* Makes collisions: of all 32 bits, and of the bits that choose a chain. */
static uint64_t hash_of(unsigned value)
{
    return (uint64_t)(value / 3) << (value % 2 == 0 ? 0 : 6);
}

static struct word *find(const struct pool *p, unsigned value)
{
    struct pooled *thing = pool_find(p, hash_of(value), is_word, &value);
    return thing == NULL ? NULL : CONTAINER_OF(thing, struct word, pooled);
}

static struct word *take(struct pool *p, unsigned value)
{
    struct word *w = find(p, value);
    if (w != NULL) {
        pool_take(&w->pooled);
        return w;
    }
    w = mem_alloc(sizeof(*w));
    if (w == NULL)
        return NULL;
    w->value = value;
    if (pool_put(p, &w->pooled, hash_of(value)) == OK)
        return w;
    mem_free(w);
    return NULL;
}

START_TEST(equal_things_are_one)
{
    struct pool p;
    pool_init(&p, seed);
    ck_assert_ptr_null(find(&p, 7));
    struct word *a = take(&p, 7);
    struct word *b = take(&p, 8);
    ck_assert_ptr_eq(take(&p, 7), a);
    ck_assert_ptr_ne(a, b);
    ck_assert(a->value == 7 && b->value == 8 && p.n == 2);
    pool_check(&p, 3);
    pool_give(&p, &a->pooled);
    ck_assert_ptr_eq(find(&p, 7), a);
    pool_give(&p, &a->pooled);
    ck_assert_ptr_null(find(&p, 7));
    pool_check(&p, 1);
    pool_give(&p, &b->pooled);
    pool_check(&p, 0);
    pool_done(&p);
}

END_TEST

/* Compared with a count for each object. An object freed too late is a leak; too early, a use after
 * free. */
START_TEST(it_counts_through_any_history)
{
    static size_t uses[WORDS];
    struct pool p;
    uint32_t dice = 12345;
    size_t all = 0;
    pool_init(&p, seed);
    for (unsigned i = 0; i < STEPS; i++) {
        dice = dice * 1664525 + 1013904223;
        unsigned value = (dice >> 8) % WORDS;
        bool fill = i / 2000 % 2 == 0;
        if ((dice >> 24) % 4 == 0 ? !fill : fill) {
            ck_assert_ptr_nonnull(take(&p, value));
            uses[value]++;
            all++;
        } else if (uses[value] > 0) {
            pool_give(&p, &find(&p, value)->pooled);
            uses[value]--;
            all--;
        }
        ck_assert((find(&p, value) != NULL) == (uses[value] > 0));
        pool_check(&p, all);
    }
    for (unsigned value = 0; value < WORDS; value++) {
        struct word *w = find(&p, value);
        ck_assert(w == NULL ? uses[value] == 0 : w->pooled.uses == uses[value]);
        for (; uses[value] > 0; uses[value]--)
            pool_give(&p, &w->pooled);
    }
    pool_done(&p);
}

END_TEST

/* The 17th object makes the pool grow. */
static enum errc scenario(void *ctx)
{
    struct pool p;
    unsigned n = 0;
    (void)ctx;
    pool_init(&p, seed);
    while (n < 17 && take(&p, n) != NULL)
        n++;
    pool_check(&p, n);
    for (unsigned i = 0; i < n; i++)
        pool_give(&p, &find(&p, i)->pooled);
    pool_done(&p);
    return n == 17 ? OK : ERR_NOMEM;
}

START_TEST(without_memory)
{
    ck_assert_uint_eq(fail_alloc_each(scenario, NULL), 19);
}

END_TEST

START_TEST(what_is_not_given_back_is_noticed)
{
    struct pool p;
    pool_init(&p, seed);
    ck_assert_ptr_nonnull(take(&p, 1));
    pool_done(&p);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *t = tcase_create("pool");
    tcase_add_test(t, equal_things_are_one);
    tcase_add_test(t, it_counts_through_any_history);
    tcase_add_test(t, without_memory);
    tcase_add_test_raise_signal(t, what_is_not_given_back_is_noticed, SIGABRT);
    suite_add_tcase(suite, t);
    return unit_main(suite);
}
