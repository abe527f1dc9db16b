/* The policy for plain pods: which nodes are feasible, and which card a pod gets. */
#include "core/place/fit.h"

#include "cache_rig.h"
#include "fail_alloc.h"

#include <stdio.h>

/* One node with four cards; a bound pod uses `used` of this card. */
static void fill(struct rig *r, uint32_t card, int64_t used)
{
    char uid[32];
    char mem[32];
    char idx[32];
    (void)snprintf(uid, sizeof(uid), "fill-%u", card);
    (void)snprintf(mem, sizeof(mem), "%lld", (long long)used);
    (void)snprintf(idx, sizeof(idx), "%u", card);
    if (used > 0)
        pod_set(r, .uid = uid, .mem = mem, .node = "n", .idx = idx, .phase = "Running");
}

/* The verdict by each card, which must equal the verdict by the node's sums. */
static enum verdict fit(const struct rig *r, int64_t mem)
{
    struct request request = {.mem = mem};
    const struct node *n = cache_node(&r->cache, STR("n"));
    struct evaluation evaluation = {.request = &request};
    enum verdict v = fit_node(n, &evaluation);
    cache_evaluation(&r->cache, STR("nobody"), &request, &evaluation);
    ck_assert_int_eq(fit_node(n, &evaluation), v);
    ck_assert(!fit_simply(n, &evaluation) || v == VERDICT_FITS);
    return v;
}

static uint32_t pick(const struct rig *r, int64_t mem)
{
    ck_assert_int_eq(fit(r, mem), VERDICT_FITS);
    struct placement there;
    const struct request request = {.mem = mem};
    const struct evaluation evaluation = {.request = &request};
    ck_assert_int_eq(fit_place(node_of(r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.n, 1);
    return there.grants[0].card;
}

/* The example in gpushare's design document, and what follows from its rule. */
static const struct {
    int64_t used[4]; /* cards of 16276 each */
    int64_t asked;
    uint32_t card;
} tightest[] = {
    {{4069, 8138, 12207, 0}, 8138, 1},
    {{4069, 8138, 12207, 0}, 4069, 2},
    {{4069, 8138, 12207, 0}, 4070, 1},
    {{4069, 8138, 12207, 0}, 8139, 0},
    {{4069, 8138, 12207, 0}, 12208, 3},
    {{4069, 8138, 12207, 0}, 16276, 3},
    {{0, 0, 0, 0}, 1, 0},
    {{16276, 0, 0, 0}, 1, 1},
    {{8000, 9000, 9000, 8000}, 1, 1}, /* the lowest index of equals */
    {{16276, 16275, 0, 0}, 1, 1},
};

TEST_EACH(takes_the_tightest_card, COUNT_OF(tightest))
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "65104", "4", NULL);
    for (uint32_t i = 0; i < 4; i++)
        fill(&r, i, tightest[_i].used[i]);
    ck_assert_uint_eq(pick(&r, tightest[_i].asked), tightest[_i].card);
    rig_done(&r);
}

TEST(three_small_pods_share_a_card)
{
    struct rig r;
    static const char *const uids[] = {"a", "b", "c"};
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    for (size_t i = 0; i < COUNT_OF(uids); i++) {
        ck_assert_int_eq(reserve(&r, uids[i], "n", 2), OK);
        ck_assert_uint_eq(r.fx.card, 0);
        ck_assert_int_eq(r.fx.card_total, 16);
    }
    ck_assert_int_eq(card_used(&r, "n", 0), 6);
    ck_assert_int_eq(card_used(&r, "n", 1), 0);
    rig_done(&r);
}

TEST(the_sum_is_no_help_where_no_card_has_it)
{
    struct rig r;
    char scratch_bytes[256];
    struct buf scratch = BUF_ON(scratch_bytes);
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    fill(&r, 0, 10);
    fill(&r, 1, 10);
    ck_assert_int_eq(node_free(node_of(&r, "n")), 12);
    ck_assert_int_eq(fit(&r, 6), VERDICT_FITS);
    ck_assert_int_eq(fit(&r, 7), VERDICT_NO_CARD_FREE);
    ck_assert_str_is(verdict_reason(VERDICT_NO_CARD_FREE, STR("n"), &scratch),
                     "Insufficient GPU Memory in one device");
    ck_assert(!verdict_unresolvable(VERDICT_NO_CARD_FREE));
    ck_assert_int_eq(fit(&r, 17), VERDICT_TOO_LARGE);
    ck_assert(verdict_unresolvable(VERDICT_TOO_LARGE));
    rig_done(&r);
}

/* The plugin can't tell unassigned pods of one size apart: they share a card while it has room. */
TEST(unassigned_equals_share_a_card)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "48", "3", NULL);
    fill(&r, 0, 8);
    pod_set(&r, .uid = "twin", .mem = "4", .node = "n", .idx = "2", .assigned = "false");
    ck_assert_uint_eq(pick(&r, 4), 2);
    ck_assert_uint_eq(pick(&r, 5), 0); /* another size: the fullest card */
    pod_set(&r, .uid = "twin", .mem = "4", .node = "n", .idx = "2", .assigned = "true");
    ck_assert_uint_eq(pick(&r, 4), 0);
    pod_set(&r, .uid = "twin", .mem = "4", .node = "n", .idx = "2", .assigned = "false",
            .phase = "Running");
    ck_assert_uint_eq(pick(&r, 4), 0);
    rig_done(&r);
}

TEST(an_equal_on_a_full_or_unknown_card_is_no_guide)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "48", "3", NULL);
    fill(&r, 1, 14);
    pod_set(&r, .uid = "full", .mem = "2", .node = "n", .idx = "1", .assigned = "false");
    pod_set(&r, .uid = "lost", .mem = "2", .node = "n", .idx = "7", .assigned = "false");
    pod_set(&r, .uid = "none", .mem = "2", .node = "n", .assigned = "false");
    ck_assert_uint_eq(pick(&r, 2), 0);
    rig_done(&r);
}

TEST(a_reservation_counts_as_unassigned_and_so_does_its_confirmation)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    fill(&r, 1, 4);
    ck_assert_int_eq(reserve(&r, "a", "n", 14), OK);
    ck_assert_uint_eq(r.fx.card, 0);
    ck_assert_int_eq(reserve(&r, "b", "n", 2), OK);
    ck_assert_uint_eq(r.fx.card, 0); /* the fullest card */
    pod_set(&r, .uid = "a", .mem = "14", .phase = "Succeeded", .node = "n");
    ck_assert_int_eq(reserve(&r, "c", "n", 2), OK);
    ck_assert_uint_eq(r.fx.card, 0); /* beside b, though card 1 is fuller now */
    ck_assert_int_eq(confirm(&r, "b", false), OK);
    ck_assert_int_eq(confirm(&r, "c", false), OK);
    ck_assert_int_eq(reserve(&r, "d", "n", 2), OK);
    ck_assert_uint_eq(r.fx.card, 0);
    rig_done(&r);
}

TEST(unhealthy_cards_take_nothing)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    fill(&r, 0, 8);
    health_set(&r, "n", "0");
    ck_assert_uint_eq(pick(&r, 4), 1);
    health_set(&r, "n", "0,1");
    ck_assert_int_eq(fit(&r, 1), VERDICT_UNUSABLE);
    ck_assert_int_eq(fit(&r, 17), VERDICT_UNUSABLE);
    health_gone(&r, "n");
    ck_assert_uint_eq(pick(&r, 4), 0);
    /* A pod of the same size that waits on an unusable card attracts no pod there. */
    pod_set(&r, .uid = "twin", .mem = "4", .node = "n", .idx = "0", .assigned = "false");
    health_set(&r, "n", "0");
    ck_assert_uint_eq(pick(&r, 4), 1);
    rig_done(&r);
}

TEST(pods_without_a_card_count_against_the_node)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "lost", .mem = "20", .node = "n", .phase = "Running");
    ck_assert_int_eq(fit(&r, 12), VERDICT_FITS);
    ck_assert_int_eq(fit(&r, 13), VERDICT_NODE_FULL);
    ck_assert(!verdict_unresolvable(VERDICT_NODE_FULL));
    rig_done(&r);
}

TEST(what_is_not_allocatable_is_not_used)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", "16");
    fill(&r, 0, 8);
    ck_assert_int_eq(fit(&r, 8), VERDICT_FITS);
    ck_assert_int_eq(fit(&r, 9), VERDICT_NODE_FULL);
    node_set(&r, "n", "32", "2", "0");
    ck_assert_int_eq(fit(&r, 1), VERDICT_NODE_FULL);
    node_set(&r, "n", "32", "2", "64"); /* at most the capacity */
    fill(&r, 1, 16);
    ck_assert_int_eq(fit(&r, 9), VERDICT_NO_CARD_FREE);
    ck_assert_int_eq(fit(&r, 8), VERDICT_FITS);
    rig_done(&r);
}

static const struct {
    const char *mem;
    const char *count;
    enum verdict verdict;
    const char *reason;
} faults[] = {
    {NULL, NULL, VERDICT_NOT_SHARED, "The node n is not for GPU share, need skip"},
    {"0", "0", VERDICT_NOT_SHARED, "The node n is not for GPU share, need skip"},
    {NULL, "2", VERDICT_NOT_SHARED, "The node n is not for GPU share, need skip"},
    {"32", NULL, VERDICT_NO_CARDS,
     "The node has aliyun.com/gpu-mem but no usable aliyun.com/gpu-count"},
    {"32", "x", VERDICT_NO_CARDS,
     "The node has aliyun.com/gpu-mem but no usable aliyun.com/gpu-count"},
};

TEST_EACH(a_node_that_is_not_ready_says_why, COUNT_OF(faults))
{
    struct rig r;
    struct buf scratch;
    rig_init(&r);
    buf_init(&scratch, 256);
    node_set(&r, "n", faults[_i].mem, faults[_i].count, NULL);
    ck_assert_int_eq(fit(&r, 1), faults[_i].verdict);
    ck_assert_str_is(verdict_reason(fit(&r, 1), STR("n"), &scratch), faults[_i].reason);
    ck_assert(verdict_unresolvable(fit(&r, 1)));
    ck_assert_int_eq(fit(&r, 0), VERDICT_FITS);
    buf_done(&scratch);
    rig_done(&r);
}

TEST(an_unknown_node_fits_nothing_not_even_nothing)
{
    struct rig r;
    char bytes[64];
    struct buf scratch = BUF_ON(bytes);
    rig_init(&r);
    ck_assert_int_eq(fit(&r, 0), VERDICT_UNKNOWN_NODE);
    pod_set(&r, .uid = "orphan", .node = "n"); /* now the cache knows the name */
    ck_assert_int_eq(fit(&r, 0), VERDICT_UNKNOWN_NODE);
    ck_assert_int_eq(fit(&r, 1), VERDICT_UNKNOWN_NODE);
    ck_assert_str_is(verdict_reason(VERDICT_UNKNOWN_NODE, STR("n"), &scratch),
                     "node \"n\" not found");
    rig_done(&r);
}

/* No question allocates, however many pods there are: the node keeps the sums. */
TEST(a_verdict_and_a_choice_allocate_nothing)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "48", "3", NULL);
    for (uint32_t i = 0; i < 3; i++)
        fill(&r, i, 4 + i);
    fail_alloc_arm(FAIL_NEVER, 0);
    ck_assert_int_eq(fit(&r, 11), VERDICT_FITS);
    ck_assert_int_eq(fit(&r, 13), VERDICT_NO_CARD_FREE);
    ck_assert_uint_eq(pick(&r, 10), 2);
    size_t allocations = fail_alloc_count();
    fail_alloc_disarm();
    ck_assert_uint_eq(allocations, 0);
    rig_done(&r);
}

TEST(every_verdict_has_a_name_and_a_reason)
{
    struct buf scratch;
    buf_init(&scratch, 1024);
    for (int v = 0; v < VERDICT_COUNT; v++) {
        ck_assert_uint_gt(strlen(verdict_name((enum verdict)v)), 0);
        struct str reason = verdict_reason((enum verdict)v, STR("%s"), &scratch);
        ck_assert_uint_gt(reason.n, 0);
        for (int w = 0; w < v; w++)
            ck_assert_str_ne(verdict_name((enum verdict)v), verdict_name((enum verdict)w));
    }
    buf_done(&scratch);
}
