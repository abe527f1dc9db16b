/* How the pods of a namespace count for its quota, while limits come and go. */
#include "fail_alloc.h"
#include "quota_rig.h"

/* Limits too high to reach: in all, in the pool gold, on nodes without a pool, of T4, of A100. */
static void count(struct rig *r)
{
    struct quota_limit limits[] = {
        limit_of(QUOTA_TOTAL, NULL, 1000, 1000, 1000),
        limit_of(QUOTA_POOL, "gold", 1000, 1000, 1000),
        limit_of(QUOTA_POOL, "", 1000, 1000, 1000),
        limit_of(QUOTA_MODEL, "T4", 1000, 1000, 1000),
        limit_of(QUOTA_MODEL, "A100*", 1000, 1000, 1000),
    };
    ck_assert_int_eq(set_limits(r, limits, COUNT_OF(limits)), OK);
}

enum {
    TOTAL,
    GOLD,
    NO_POOL,
    T4,
    A100
};

#define ck_used(r, limit, mem, n_cards, compute)                               \
    do {                                                                       \
        struct quota_account a = quota_account(&(r)->cache.quota, STR("ns"));  \
        ck_assert_ptr_nonnull(a.used);                                         \
        ck_assert_int_eq((int64_t)a.used[limit].of[QUOTA_MEMORY], (mem));      \
        ck_assert_int_eq((int64_t)a.used[limit].of[QUOTA_CARDS], (n_cards));   \
        ck_assert_int_eq((int64_t)a.used[limit].of[QUOTA_COMPUTE], (compute)); \
    } while (0)

TEST(what_is_held_counts)
{
    struct rig r;
    rig_init(&r);
    shop_set(&r, "n", 16, "gold", "T4", NULL);
    shop_set(&r, "m", 16, NULL, "A100-SXM", "T4");
    bound(&r, "plain", "n", "0", (struct asks){.mem = "3"});
    count(&r); /* limits come after the pods */
    ck_used(&r, TOTAL, 3, 1, 0);
    bound(&r, "cores", "m", "0", (struct asks){.mem = "4", .cores = "30"});
    ck_used(&r, TOTAL, 7, 2, 30);
    ck_used(&r, GOLD, 3, 1, 0);
    ck_used(&r, NO_POOL, 4, 1, 30);
    ck_used(&r, T4, 3, 1, 0);
    ck_used(&r, A100, 4, 1, 30);
    /* A card that is not on its node has no model. A pod without a card is charged as for one such
     * card. */
    bound(&r, "lost", "n", "9", (struct asks){.mem = "1"});
    bound(&r, "none", "n", NULL, (struct asks){.mem = "1"});
    ck_used(&r, TOTAL, 9, 4, 30);
    ck_used(&r, GOLD, 5, 3, 0);
    ck_used(&r, T4, 3, 1, 0);
    /* Charged more than it asks for, because its cards are that large. */
    bound(&r, "whole", "m", "1", (struct asks){.mem = "1", .whole = "require-whole-device"});
    bound(&r, "half", "n", "1", (struct asks){.mem = "1", .percent = "50"});
    ck_used(&r, T4, 3 + 16 + 8, 3, 0);
    /* Cards of another plugin have the node's model. */
    bound(&r, "other", "n", NULL, (struct asks){.exclusive = "2"});
    ck_used(&r, TOTAL, 33, 8, 30);
    ck_used(&r, T4, 27, 5, 0);
    pod_gone(&r, "whole");
    pod_gone(&r, "other");
    pod_gone(&r, "lost");
    ck_used(&r, TOTAL, 16, 4, 30);
    rig_done(&r);
}

TEST(nodes_that_change_count_anew)
{
    struct rig r;
    rig_init(&r);
    count(&r);
    shop_set(&r, "n", 16, "gold", "T4", NULL);
    bound(&r, "p", "n", "1", (struct asks){.mem = "1", .whole = "require-whole-device"});
    ck_used(&r, GOLD, 16, 1, 0);
    shop_set(&r, "n", 24, "gold", "A100", NULL); /* another size, another model */
    ck_used(&r, GOLD, 24, 1, 0);
    ck_used(&r, A100, 24, 1, 0);
    ck_used(&r, T4, 0, 0, 0);
    shop_set(&r, "n", 24, NULL, "A100", "T4"); /* another pool, and another model of the card */
    ck_used(&r, GOLD, 0, 0, 0);
    ck_used(&r, NO_POOL, 24, 1, 0);
    ck_used(&r, T4, 24, 1, 0);
    health_set(&r, "n", "1"); /* the pod still holds the card */
    ck_used(&r, T4, 24, 1, 0);
    node_gone(&r, "n");
    ck_used(&r, TOTAL, 1, 1, 0);
    ck_used(&r, T4, 0, 0, 0);
    shop_set(&r, "n", 16, "gold", "T4", NULL);
    ck_used(&r, GOLD, 16, 1, 0);
    rig_done(&r);
}

TEST(a_reservation_keeps_to_it)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, 10, -1, -1)};
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    node_set(&r, "m", "32", "2", NULL);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    ck_assert_int_eq(reserve(&r, "a", "n", 6), OK);
    /* The other node has room; the quota has none. */
    ck_assert_int_eq(reserve(&r, "b", "m", 5), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_QUOTA);
    ck_assert(!pod_known(&r, "b"));
    ck_assert_int_eq(reserve(&r, "c", "m", 11), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_QUOTA_DENIED);
    ck_assert_int_eq(reserve(&r, "d", "m", 4), OK);
    /* A limit below the present usage: Bindings under way go on, new ones are refused. */
    limits[0].most[QUOTA_MEMORY] = 3;
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    ck_assert_int_eq(renew(&r, "a"), OK);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    ck_assert_int_eq(reserve(&r, "e", "m", 1), ERR_UNAVAILABLE);
    cancel(&r, "d");
    ck_assert_int_eq(reserve(&r, "e", "m", 1), ERR_UNAVAILABLE);
    pod_set(&r, .uid = "a", .mem = "6", .node = "n", .idx = "0", .phase = "Succeeded");
    ck_assert_int_eq(reserve(&r, "e", "m", 3), OK);
    rig_done(&r);
}

TEST(a_list_without_it_takes_it_back)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, 0, -1, -1)};
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    list_begin(&r, CACHE_HEALTH);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    list_end(&r, CACHE_HEALTH);
    ck_assert_uint_eq(r.fx.swept, 0);
    ck_assert_int_eq(reserve(&r, "a", "n", 1), ERR_UNAVAILABLE);
    /* The list names the quota, though its content can't be read any more. */
    list_begin(&r, CACHE_HEALTH);
    ck_assert_int_eq(rig_apply(&r, &(struct cache_event){.type = CACHE_QUOTA_BAD}), OK);
    list_end(&r, CACHE_HEALTH);
    ck_assert(!r.fx.unlimited && !r.fx.changed);
    ck_assert_int_eq(reserve(&r, "a", "n", 1), ERR_UNAVAILABLE);
    /* Lists of other kinds leave the quota unchanged. */
    list_begin(&r, CACHE_NODES);
    node_set(&r, "n", "32", "2", NULL);
    list_end(&r, CACHE_NODES);
    ck_assert_int_eq(reserve(&r, "a", "n", 1), ERR_UNAVAILABLE);
    list_begin(&r, CACHE_HEALTH);
    list_end(&r, CACHE_HEALTH);
    ck_assert(r.fx.unlimited && r.fx.changed);
    ck_assert_uint_eq(r.fx.swept, 1);
    ck_assert_int_eq(reserve(&r, "a", "n", 1), OK);
    list_begin(&r, CACHE_HEALTH);
    list_end(&r, CACHE_HEALTH);
    ck_assert(!r.fx.unlimited);
    rig_done(&r);
}

TEST(deleted_there_are_none)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, 0, -1, -1)};
    struct cache_event gone = {.type = CACHE_QUOTA_GONE};
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert_int_eq(rig_apply(&r, &gone), OK);
    ck_assert(!r.fx.changed);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    ck_assert(r.fx.changed);
    ck_assert_int_eq(rig_apply(&r, &gone), OK);
    ck_assert(r.fx.changed);
    ck_assert_int_eq(reserve(&r, "a", "n", 1), OK);
    rig_done(&r);
}

TEST(without_memory_the_old_ones_stay)
{
    struct quota_limit low[] = {limit_of(QUOTA_TOTAL, NULL, 3, -1, -1)};
    struct quota_limit high[] = {limit_of(QUOTA_TOTAL, NULL, 30, -1, -1),
                                 limit_of(QUOTA_POOL, "gold", 30, -1, -1)};
    bool hit = true;
    for (size_t nth = 1; hit; nth++) {
        struct rig r;
        rig_init(&r);
        node_set(&r, "n", "32", "2", NULL);
        ck_assert_int_eq(set_limits(&r, low, 1), OK);
        list_begin(&r, CACHE_HEALTH);
        fail_alloc_arm(FAIL_ONCE, nth);
        enum errc code = set_limits(&r, high, 2);
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert_int_eq(code, hit ? ERR_NOMEM : OK);
        ck_assert_int_eq(reserve(&r, "a", "n", 4), hit ? ERR_UNAVAILABLE : OK);
        /* A list that lost the object proves nothing. */
        ck_assert_int_eq(
            rig_apply(&r, &(struct cache_event){.type = CACHE_LIST_END, .list = CACHE_HEALTH}),
            hit ? ERR_NOMEM : OK);
        ck_assert(r.cache.limited);
        rig_done(&r);
    }
}

TEST(a_pod_that_finds_no_tenant_is_not_there)
{
    for (size_t nth = 1;; nth++) {
        struct rig r;
        rig_init(&r);
        count(&r);
        node_set(&r, "n", "32", "2", NULL);
        fail_alloc_arm(FAIL_ONCE, nth);
        enum errc code =
            pod_event(&r, CACHE_POD_SET, (struct shown){.uid = "p", .node = "n", .idx = "0"});
        bool hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert_int_eq(code, hit ? ERR_NOMEM : OK);
        ck_assert(pod_known(&r, "p") == !hit);
        ck_assert_uint_eq(r.cache.quota.tenants.n, hit ? 0 : 1);
        rig_done(&r);
        if (!hit)
            break;
    }
}
