/* The table of shared, counted objects. */
#include "base/intern.h"

#include "base/mem.h"
#include "fail_alloc.h"
#include "unit.h"

#include <signal.h>

enum {
    WORDS = 200,
    STEPS = 20000
};

struct word {
    struct interned interned;
    unsigned value;
};

static const struct map_seed seed = {1, 2};

static bool is_word(const struct interned *thing, const void *like)
{
    const struct word *w = (const struct word *)(const void *)thing;
    return w->value == *(const unsigned *)like;
}

/* Makes collisions: of all 32 bits, and of the bits that choose a chain. */
static uint64_t hash_of(unsigned value)
{
    return (uint64_t)(value / 3) << (value % 2 == 0 ? 0 : 6);
}

static struct word *find(const struct intern_table *t, unsigned value)
{
    struct interned *thing = intern_find(t, hash_of(value), is_word, &value);
    return thing == NULL ? NULL : CONTAINER_OF(thing, struct word, interned);
}

static struct word *take(struct intern_table *t, unsigned value)
{
    struct word *w = find(t, value);
    if (w != NULL) {
        intern_take(&w->interned);
        return w;
    }
    w = mem_alloc(sizeof(*w));
    if (w == NULL)
        return NULL;
    w->value = value;
    if (intern_put(t, &w->interned, hash_of(value)) == OK)
        return w;
    mem_free(w);
    return NULL;
}

TEST(equal_things_are_one)
{
    struct intern_table t;
    intern_init(&t, seed);
    ck_assert_ptr_null(find(&t, 7));
    struct word *a = take(&t, 7);
    struct word *b = take(&t, 8);
    ck_assert_ptr_eq(take(&t, 7), a);
    ck_assert_ptr_ne(a, b);
    ck_assert(a->value == 7 && b->value == 8 && t.n == 2);
    intern_check(&t, 3);
    intern_give(&t, &a->interned);
    ck_assert_ptr_eq(find(&t, 7), a);
    intern_give(&t, &a->interned);
    ck_assert_ptr_null(find(&t, 7));
    intern_check(&t, 1);
    intern_give(&t, &b->interned);
    intern_check(&t, 0);
    intern_done(&t);
}

/* Compared with a count for each object. An object freed too late is a leak; too early, a use after
 * free. */
TEST(it_counts_through_any_history)
{
    static size_t uses[WORDS];
    struct intern_table t;
    uint32_t dice = 12345;
    size_t all = 0;
    intern_init(&t, seed);
    for (unsigned i = 0; i < STEPS; i++) {
        dice = dice * 1664525 + 1013904223;
        unsigned value = (dice >> 8) % WORDS;
        bool fill = i / 2000 % 2 == 0;
        if ((dice >> 24) % 4 == 0 ? !fill : fill) {
            ck_assert_ptr_nonnull(take(&t, value));
            uses[value]++;
            all++;
        } else if (uses[value] > 0) {
            intern_give(&t, &find(&t, value)->interned);
            uses[value]--;
            all--;
        }
        ck_assert((find(&t, value) != NULL) == (uses[value] > 0));
        intern_check(&t, all);
    }
    for (unsigned value = 0; value < WORDS; value++) {
        struct word *w = find(&t, value);
        ck_assert(w == NULL ? uses[value] == 0 : w->interned.uses == uses[value]);
        for (; uses[value] > 0; uses[value]--)
            intern_give(&t, &w->interned);
    }
    intern_done(&t);
}

/* The 17th object makes the table grow. */
static enum errc scenario(void *ctx)
{
    struct intern_table t;
    unsigned n = 0;
    (void)ctx;
    intern_init(&t, seed);
    while (n < 17 && take(&t, n) != NULL)
        n++;
    intern_check(&t, n);
    for (unsigned i = 0; i < n; i++)
        intern_give(&t, &find(&t, i)->interned);
    intern_done(&t);
    return n == 17 ? OK : ERR_NOMEM;
}

TEST(without_memory)
{
    ck_assert_uint_eq(fail_alloc_each(scenario, NULL), 19);
}

START_TEST(what_is_not_given_back_is_noticed)
{
    struct intern_table t;
    intern_init(&t, seed);
    ck_assert_ptr_nonnull(take(&t, 1));
    intern_done(&t);
}

int main(void)
{
    TCase *t = unit_case("intern");
    tcase_add_test_raise_signal(t, what_is_not_given_back_is_noticed, SIGABRT);
    return unit_run();
}
