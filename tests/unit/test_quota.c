/* Quotas in core/: limits, charges, reasons, and lack of memory. */
#include "core/quota.h"

#include "fail_alloc.h"
#include "unit.h"

#define SEED ((struct map_seed){1, 2})

#define MOST(memory, cards, compute)                                                    \
    {                                                                                   \
        [QUOTA_MEMORY] = (memory), [QUOTA_CARDS] = (cards), [QUOTA_COMPUTE] = (compute) \
    }
#define NONE QUOTA_UNLIMITED

/* "a" has one limit of each scope, "b" only of pools and models, "free" has none, all others a
 * total. */
static const struct quota_limit a_limits[] = {
    {QUOTA_TOTAL, {NULL, 0}, MOST(64, 4, 400)},
    {QUOTA_POOL, {"gold", 4}, MOST(32, NONE, NONE)},
    {QUOTA_POOL, {"", 0}, MOST(8, NONE, NONE)},
    {QUOTA_MODEL, {"NVIDIA-A100*", 12}, MOST(NONE, 2, NONE)},
};
static const struct quota_limit other_limits[] = {{QUOTA_TOTAL, {NULL, 0}, MOST(NONE, 1, NONE)}};
static const struct str b_pools[] = {{"gold", 4}, {"", 0}};
static const struct str b_models[] = {{"*A10", 4}, {"", 0}};
static const struct quota_entry entries[] = {
    {{"a", 1}, a_limits, COUNT_OF(a_limits), NULL, 0, NULL, 0},
    {{"b", 1}, NULL, 0, b_pools, COUNT_OF(b_pools), b_models, COUNT_OF(b_models)},
    {{"*", 1}, other_limits, COUNT_OF(other_limits), NULL, 0, NULL, 0},
    {{"free", 4}, NULL, 0, NULL, 0, NULL, 0},
};
static const struct quota_view view = {entries, COUNT_OF(entries)};
static const struct quota_view nothing = {NULL, 0};

static struct quota_use use_of(const char *pool, const char *model, int64_t memory, int64_t cards,
                               int64_t compute)
{
    return (struct quota_use){str_of(pool), str_of(model), MOST(memory, cards, compute)};
}

static void quota_new(struct quota *q)
{
    quota_init(q, SEED);
    ck_assert_int_eq(quota_set(q, &view), OK);
}

static struct quota_tenant *join(struct quota *q, const char *namespace)
{
    struct quota_tenant *t = quota_join(q, str_of(namespace));
    ck_assert_ptr_nonnull(t);
    return t;
}

/* "fits", or the reason of the refusal. */
static const char *reason(const struct quota *q, const char *namespace,
                          const struct quota_use *uses, size_t n)
{
    static char text[512];
    struct buf to = BUF_ON(text);
    struct quota_refusal refusal;
    uint64_t compared = 0;
    struct quota_account account = quota_account(q, str_of(namespace));
    if (quota_fit(&account, uses, n, &refusal, &compared))
        return "fits";
    quota_refusal_write(&refusal, &to);
    return buf_cstr(&to);
}

/* Questions after "a" holds 24 and 2 cards in gold: of an A100 and of an unknown model. */
static const struct {
    const char *namespace, *pool, *model;
    int64_t memory, cards, compute;
    const char *expected;
} questions[] = {
    {"a", "silver", "T4", 40, 2, 250, "fits"},
    {"a", "silver", "T4", 41, 1, 0, "quota of namespace a: memory: 24 of 64 used, 41 asked"},
    {"a", "silver", "T4", 0, 3, 0, "quota of namespace a: cards: 2 of 4 used, 3 asked"},
    {"a", "silver", "T4", 0, 1, 251, "quota of namespace a: compute: 150 of 400 used, 251 asked"},
    {"a", "gold", "T4", 8, 1, 0, "fits"},
    {"a", "gold", "T4", 9, 1, 0,
     "quota of namespace a: memory in pool gold: 24 of 32 used, 9 asked"},
    {"a", "GOLD", "T4", 9, 1, 0, "fits"}, /* pools are labels, so case counts */
    {"a", NULL, "T4", 9, 1, 0,
     "quota of namespace a: memory on nodes without a pool: 0 of 8 used, 9 asked"},
    {"a", "", "T4", 8, 1, 0, "fits"},
    {"a", "silver", "nvidia-a100-sxm", 0, 1, 0, "fits"},
    {"a", "silver", "nvidia-a100-sxm", 0, 2, 0,
     "quota of namespace a: cards of model NVIDIA-A100*: 1 of 2 used, 2 asked"},
    {"b", "gold", "NVIDIA-A10", 1000, 1000, 1000, "fits"},
    {"b", NULL, NULL, 1, 1, 0, "fits"},
    {"b", "bronze", "NVIDIA-A10", 1, 1, 0, "quota of namespace b: pool \"bronze\" is not allowed"},
    {"b", "gold", "NVIDIA-A100", 1, 1, 0,
     "quota of namespace b: card model \"NVIDIA-A100\" is not allowed"},
    {"b", "bronze", "T4", 0, 0, 0, "fits"}, /* it asks for nothing */
    {"c", "gold", "T4", 1000, 1, 0, "fits"},
    {"c", "gold", "T4", 0, 2, 0, "quota of namespace c: cards: 0 of 1 used, 2 asked"},
    {"*", "gold", "T4", 0, 2, 0, "quota of namespace *: cards: 0 of 1 used, 2 asked"},
    {"free", "gold", "T4", 1000, 1000, 1000, "fits"},
    {"A", "gold", "T4", 0, 2, 0, "quota of namespace A: cards: 0 of 1 used, 2 asked"},
};

TEST_EACH(answers, COUNT_OF(questions))
{
    struct quota q;
    quota_new(&q);
    struct quota_tenant *a = join(&q, "a");
    const struct quota_use first = use_of("gold", "NVIDIA-A100-SXM", 16, 1, 100);
    const struct quota_use second = use_of("gold", NULL, 8, 1, 50);
    quota_charge(a, &first, 1);
    quota_charge(a, &second, 1);
    quota_check(&q);
    const struct quota_use asked =
        use_of(questions[_i].pool, questions[_i].model, questions[_i].memory, questions[_i].cards,
               questions[_i].compute);
    ck_assert_str_eq(reason(&q, questions[_i].namespace, &asked, 1), questions[_i].expected);
    quota_charge(a, &first, -1);
    quota_charge(a, &second, -1);
    quota_leave(&q, a);
    quota_check(&q);
    ck_assert_uint_eq(q.tenants.n, 0);
    quota_done(&q);
}

TEST(refuses_without_a_pool_or_a_model)
{
    static const struct str gold[] = {{"gold", 4}};
    static const struct quota_entry strict[] = {
        {{"p", 1}, NULL, 0, gold, 1, NULL, 0},
        {{"m", 1}, NULL, 0, NULL, 0, gold, 1},
    };
    const struct quota_use unknown = use_of(NULL, NULL, 1, 1, 0);
    struct quota q;
    quota_init(&q, SEED);
    ck_assert_int_eq(quota_set(&q, &(struct quota_view){strict, COUNT_OF(strict)}), OK);
    ck_assert_str_eq(reason(&q, "p", &unknown, 1),
                     "quota of namespace p: nodes without a pool are not allowed");
    ck_assert_str_eq(reason(&q, "m", &unknown, 1),
                     "quota of namespace m: cards of an unknown model are not allowed");
    quota_done(&q);
}

/* Several cards of one node are one question; each limit counts the cards within it. */
TEST(several_uses_count_together)
{
    struct quota q;
    quota_new(&q);
    struct quota_use uses[] = {use_of("gold", "NVIDIA-A100", 8, 1, 0),
                               use_of("gold", "T4", 8, 1, 0),
                               use_of("gold", "NVIDIA-A100", 8, 1, 0)};
    ck_assert_str_eq(reason(&q, "a", uses, 3), "fits");
    uses[1].model = STR("nvidia-a100");
    ck_assert_str_eq(reason(&q, "a", uses, 3),
                     "quota of namespace a: cards of model NVIDIA-A100*: 0 of 2 used, 3 asked");
    uses[1].amount[QUOTA_MEMORY] = 17;
    ck_assert_str_eq(reason(&q, "a", uses, 3),
                     "quota of namespace a: memory in pool gold: 0 of 32 used, 33 asked");
    ck_assert_str_eq(reason(&q, "a", uses, 0), "fits");
    quota_done(&q);
}

/* Usage beyond a limit: nothing more of that kind is allowed; the other kinds are not affected. */
TEST(what_is_over_stops_only_what_adds_to_it)
{
    struct quota q;
    quota_new(&q);
    struct quota_tenant *a = join(&q, "a");
    const struct quota_use held = use_of("silver", "T4", 70, 1, 0);
    quota_charge(a, &held, 1);
    const struct quota_use none = use_of("silver", "T4", 0, 1, 100);
    ck_assert_str_eq(reason(&q, "a", &none, 1), "fits");
    const struct quota_use some = use_of("silver", "T4", 1, 1, 100);
    ck_assert_str_eq(reason(&q, "a", &some, 1),
                     "quota of namespace a: memory: 70 of 64 used, 1 asked");
    /* A pod of this namespace would be evicted: its part is released. */
    const struct quota_use swapped[] = {some, use_of("silver", "T4", -7, -1, 0)};
    ck_assert_str_eq(reason(&q, "a", swapped, 2), "fits");
    /* What is released need not be allowed any more. */
    const struct quota_use from_bronze[] = {use_of("gold", "NVIDIA-A10", 1, 1, 0),
                                            use_of("bronze", "T4", -1, -1, 0)};
    ck_assert_str_eq(reason(&q, "b", from_bronze, 2), "fits");
    quota_done(&q);
}

TEST(namespaces_do_not_share_what_all_others_may_have)
{
    struct quota q;
    quota_new(&q);
    const struct quota_use one = use_of("gold", "T4", 1, 1, 0);
    struct quota_tenant *c = join(&q, "c");
    struct quota_tenant *again = join(&q, "c");
    ck_assert_ptr_eq(c, again);
    quota_charge(c, &one, 1);
    ck_assert_str_eq(reason(&q, "c", &one, 1), "quota of namespace c: cards: 1 of 1 used, 1 asked");
    ck_assert_str_eq(reason(&q, "d", &one, 1), "fits");
    ck_assert_str_eq(reason(&q, "free", &one, 1), "fits");
    quota_leave(&q, again);
    ck_assert_str_eq(reason(&q, "c", &one, 1), "quota of namespace c: cards: 1 of 1 used, 1 asked");
    quota_charge(c, &one, -1);
    ck_assert_str_eq(reason(&q, "c", &one, 1), "fits");
    quota_leave(&q, c);
    quota_done(&q);
}

TEST(other_limits_count_anew)
{
    static const struct quota_limit silver[] = {{QUOTA_POOL, {"silver", 6}, MOST(10, NONE, NONE)}};
    static const struct quota_entry later[] = {{{"a", 1}, silver, 1, NULL, 0, NULL, 0}};
    const struct quota_use held = use_of("silver", "T4", 8, 1, 0);
    const struct quota_use more = use_of("silver", "T4", 60, 1, 0);
    struct quota q;
    quota_new(&q);
    struct quota_tenant *a = join(&q, "a");
    quota_charge(a, &held, 1);
    ck_assert_str_eq(reason(&q, "a", &more, 1),
                     "quota of namespace a: memory: 8 of 64 used, 60 asked");
    ck_assert_int_eq(quota_set(&q, &(struct quota_view){later, 1}), OK);
    quota_check(&q);
    ck_assert_str_eq(reason(&q, "a", &held, 1), "fits"); /* nothing is charged yet */
    quota_charge(a, &held, 1);
    ck_assert_str_eq(reason(&q, "a", &more, 1),
                     "quota of namespace a: memory in pool silver: 8 of 10 used, 60 asked");
    ck_assert_int_eq(quota_set(&q, &nothing), OK);
    quota_charge(a, &held, 1);
    ck_assert_str_eq(reason(&q, "a", &more, 1), "fits");
    ck_assert_str_eq(reason(&q, "c", &more, 1), "fits");
    quota_charge(a, &held, -1);
    quota_leave(&q, a);
    quota_done(&q);
}

/* The bytes of the view may be freed. */
TEST(limits_are_copied)
{
    char namespace[] = "a";
    char pool[] = "gold";
    char model[] = "T4";
    struct str pools[] = {str_of(pool)};
    struct str models[] = {str_of(model)};
    struct quota_limit limits[] = {{QUOTA_POOL, pools[0], MOST(1, NONE, NONE)}};
    struct quota_entry entry = {str_of(namespace), limits, 1, pools, 1, models, 1};
    const struct quota_use two = use_of("gold", "T4", 2, 1, 0);
    struct quota q;
    quota_init(&q, SEED);
    ck_assert_int_eq(quota_set(&q, &(struct quota_view){&entry, 1}), OK);
    namespace[0] = pool[0] = model[0] = '?';
    pools[0] = models[0] = STR_NULL;
    limits[0] = (struct quota_limit){.scope = QUOTA_TOTAL};
    entry = (struct quota_entry){.namespace = STR("x")};
    ck_assert_str_eq(reason(&q, "a", &two, 1),
                     "quota of namespace a: memory in pool gold: 0 of 1 used, 2 asked");
    quota_done(&q);
}

/* Values beyond any machine: sums must neither wrap nor fit. */
TEST(sums_do_not_overflow)
{
    struct quota q;
    quota_new(&q);
    struct quota_tenant *a = join(&q, "a");
    const struct quota_use huge = use_of("silver", "T4", INT64_MAX, 1, 0);
    for (int i = 0; i < 3; i++)
        quota_charge(a, &huge, 1);
    quota_check(&q);
    const struct quota_use one = use_of("silver", "T4", 1, 0, 0);
    ck_assert_str_eq(reason(&q, "a", &one, 1),
                     "quota of namespace a: memory: 9223372036854775807 of 64 used, 1 asked");
    const struct quota_use both[] = {huge, huge};
    ck_assert_str_eq(reason(&q, "c", both, 2), "quota of namespace c: cards: 0 of 1 used, 2 asked");
    for (int i = 0; i < 3; i++)
        quota_charge(a, &huge, -1);
    ck_assert_str_eq(reason(&q, "a", &one, 1), "fits");
    quota_leave(&q, a);
    quota_done(&q);
}

static const struct {
    const char *namespace, *pool;
    int64_t memory;
    bool final;
} finals[] = {
    {"a", "silver", 64, false}, /* the largest possible sum */
    {"a", "silver", 65, true},  /* more than that */
    {"b", "bronze", 1, true},
};

TEST_EACH(tells_what_no_eviction_mends, COUNT_OF(finals))
{
    struct quota q;
    quota_new(&q);
    struct quota_tenant *a = join(&q, "a");
    const struct quota_use held = use_of("silver", "T4", 1, 1, 0);
    quota_charge(a, &held, 1);
    struct quota_account account = quota_account(&q, str_of(finals[_i].namespace));
    const struct quota_use asked = use_of(finals[_i].pool, "T4", finals[_i].memory, 1, 0);
    struct quota_refusal refusal;
    uint64_t compared = 0;
    ck_assert(!quota_fit(&account, &asked, 1, &refusal, &compared));
    ck_assert(quota_refusal_is_final(&refusal) == finals[_i].final);
    quota_done(&q);
}

/* A model in a node's annotation may have any length and any language. */
TEST(long_names_are_cut_between_characters)
{
    char model[1000];
    for (size_t i = 0; i < sizeof(model); i++)
        model[i] = (char)(i % 3 == 0 ? 0xe2 : i % 3 == 1 ? 0x82 : 0xac); /* the Euro sign */
    struct quota_use use = use_of("gold", NULL, 1, 1, 0);
    use.model = (struct str){model, sizeof(model)};
    struct quota q;
    quota_new(&q);
    const char *text = reason(&q, "b", &use, 1);
    const char *start = strchr(text, '"');
    const char *end = strrchr(text, '"');
    ck_assert_int_eq(end - start - 1, 63); /* 21 characters, not 64 bytes */
    quota_done(&q);
}

static enum errc whole_life(void *ctx)
{
    struct quota q;
    const struct quota_use held = use_of("gold", "T4", 8, 1, 0);
    (void)ctx;
    quota_init(&q, SEED);
    enum errc code = quota_set(&q, &view);
    struct quota_tenant *a = code == OK ? quota_join(&q, STR("a")) : NULL;
    if (a == NULL)
        code = ERR_NOMEM;
    else
        quota_charge(a, &held, 1);
    enum errc changed = code == OK ? quota_set(&q, &view) : code;
    if (a != NULL && changed == OK)
        quota_charge(a, &held, 1);
    quota_check(&q);
    if (a != NULL) {
        /* With or without the change, all that pods hold is charged once. */
        struct quota_sum used = a->used[0];
        ck_assert(used.of[QUOTA_MEMORY] == 8 && used.of[QUOTA_CARDS] == 1);
        ck_assert_int_eq(quota_set(&q, &nothing), OK);
        quota_leave(&q, a);
    }
    quota_done(&q);
    return changed;
}

TEST(survives_without_memory)
{
    ck_assert_uint_ge(fail_alloc_each(whole_life, NULL), 6);
}

/* Questions and charges need no memory: a filter asks for every node. */
TEST(asking_and_charging_allocate_nothing)
{
    struct quota q;
    quota_new(&q);
    struct quota_tenant *a = join(&q, "a");
    const struct quota_use use = use_of("gold", "NVIDIA-A100", 20, 1, 0);
    fail_alloc_arm(FAIL_NEVER, 1);
    for (int i = 0; i < 100; i++) {
        (void)reason(&q, "a", &use, 1);
        (void)reason(&q, "stranger", &use, 1);
        quota_charge(a, &use, 1);
    }
    ck_assert_uint_eq(fail_alloc_count(), 0);
    fail_alloc_disarm();
    quota_done(&q);
}
