/* Nodes that change under their pods. Codes such as A1 are rows in docs/defects.md: defects of the
 * peers. */
#include "cache_rig.h"

#include <stdio.h>

TEST(a_shrunk_node_does_not_wrap_around) /* A1 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "a", .mem = "16", .node = "n", .idx = "0");
    node_set(&r, "n", "16", "2", NULL);
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    ck_assert_int_eq(node_of(&r, "n")->cards[0].total, 8);
    ck_assert_int_eq(card_free(&node_of(&r, "n")->cards[0]), 0);
    ck_assert_int_eq(node_free(node_of(&r, "n")), 0);
    ck_assert_int_eq(reserve(&r, "b", "n", 1), ERR_UNAVAILABLE);
    rig_done(&r);
}

TEST(a_resize_counts_at_once) /* A3 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "a", .mem = "8", .node = "n", .idx = "1");
    ck_assert_int_eq(reserve(&r, "b", "n", 17), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_TOO_LARGE);
    node_set(&r, "n", "64", "2", NULL);
    ck_assert_int_eq(card_used(&r, "n", 1), 8);
    ck_assert_int_eq(reserve(&r, "b", "n", 17), OK);
    ck_assert_uint_eq(r.fx.card, 1);
    ck_assert_int_eq(r.fx.card_total, 32);
    rig_done(&r);
}

TEST(cards_come_and_go) /* A3, A19 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    pod_set(&r, .uid = "b", .node = "n", .idx = "1");
    ck_assert_int_eq(reserve(&r, "c", "n", 8), OK);
    node_set(&r, "n", "16", "1", NULL); /* card 1 is removed */
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 8);
    ck_assert_int_eq(node_of(&r, "n")->used, 24);
    node_set(&r, "n", "64", "4", NULL); /* four cards come */
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 0);
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    ck_assert_int_eq(card_used(&r, "n", 1), 8);
    ck_assert_int_eq(card_used(&r, "n", 3), 0);
    rig_done(&r);
}

TEST(the_unit_may_change) /* A3: GiB to MiB and back */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "a", .mem = "16", .node = "n", .idx = "0");
    node_set(&r, "n", "32k", "2", NULL);
    ck_assert_int_eq(reserve(&r, "b", "n", 15984), OK);
    ck_assert_uint_eq(r.fx.card, 0);
    ck_assert_int_eq(node_of(&r, "n")->cards[0].used, 16000);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert_int_eq(reserve(&r, "c", "n", 1), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_NODE_FULL);
    rig_done(&r);
}

TEST(gpu_count_before_gpu_mem_leaves_no_trace) /* A4 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", NULL, "2", NULL);
    pod_set(&r, .uid = "a", .mem = "4", .node = "n", .idx = "1");
    ck_assert_int_eq(reserve(&r, "b", "n", 1), ERR_UNAVAILABLE);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert_int_eq(card_used(&r, "n", 1), 4);
    ck_assert_int_eq(node_of(&r, "n")->most_free, 16);
    ck_assert_int_eq(reserve(&r, "b", "n", 16), OK);
    rig_done(&r);
}

TEST(a_kubelet_that_restarts_keeps_its_pods) /* contract 8.1: capacity is 0 for a while */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", "32");
    pod_set(&r, .uid = "a", .mem = "10", .node = "n", .idx = "1");
    ck_assert_int_eq(reserve(&r, "b", "n", 6), OK);
    node_set(&r, "n", "0", "2", "0");
    ck_assert_int_eq(node_of(&r, "n")->used, 16);
    ck_assert_int_eq(reserve(&r, "c", "n", 1), ERR_UNAVAILABLE);
    node_set(&r, "n", "32", "2", "32");
    ck_assert_int_eq(card_used(&r, "n", 1), 16);
    rig_done(&r);
}

TEST(a_deleted_node_is_gone) /* A5 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    node_gone(&r, "n");
    ck_assert_ptr_null(cache_node(&r.cache, STR("n")));
    size_t cursor = 0;
    ck_assert_ptr_null(cache_next_node(&r.cache, &cursor));
    ck_assert_int_eq(reserve(&r, "a", "n", 1), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_UNKNOWN_NODE);
    rig_done(&r);
}

TEST(a_deleted_node_keeps_its_pods_until_their_own_end) /* A5 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "old", .mem = "12", .node = "n", .idx = "0");
    ck_assert_int_eq(reserve(&r, "flight", "n", 3), OK);
    node_gone(&r, "n");
    ck_assert_int_eq(node_of(&r, "n")->fault, NODE_ABSENT);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 15);
    node_set(&r, "n", "32", "2", NULL); /* the node is created again before its pods are gone */
    ck_assert_int_eq(card_used(&r, "n", 0), 15);
    pod_gone(&r, "old");
    cancel(&r, "flight");
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    node_gone(&r, "n");
    ck_assert_ptr_null(cache_node(&r.cache, STR("n")));
    rig_done(&r);
}

TEST(a_new_node_of_an_old_name_inherits_nothing) /* A5 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "old", .mem = "12", .node = "n", .idx = "0");
    node_gone(&r, "n");
    pod_gone(&r, "old");
    ck_assert_ptr_null(cache_node(&r.cache, STR("n")));
    node_set(&r, "n", "24", "1", NULL);
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    ck_assert_int_eq(node_of(&r, "n")->most_free, 24);
    rig_done(&r);
}

TEST(an_orphan_pod_waits_for_its_node) /* A20 */
{
    struct rig r;
    rig_init(&r);
    pod_set(&r, .uid = "a", .node = "ghost", .idx = "1");
    ck_assert_int_eq(node_of(&r, "ghost")->fault, NODE_ABSENT);
    ck_assert_int_eq(reserve(&r, "b", "ghost", 1), ERR_UNAVAILABLE);
    node_set(&r, "ghost", "32", "2", NULL);
    ck_assert_int_eq(card_used(&r, "ghost", 1), 8);
    rig_done(&r);
}

TEST(an_orphan_that_leaves_takes_the_name_along) /* A20 */
{
    struct rig r;
    rig_init(&r);
    pod_set(&r, .uid = "a", .node = "ghost", .idx = "1");
    pod_gone(&r, "a");
    ck_assert_ptr_null(cache_node(&r.cache, STR("ghost")));
    rig_done(&r);
}

TEST(health_comes_in_any_order) /* A23 */
{
    struct rig r;
    rig_init(&r);
    health_set(&r, "n", "1");
    ck_assert_int_eq(node_of(&r, "n")->fault, NODE_ABSENT);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert(node_of(&r, "n")->cards[1].unhealthy);
    node_set(&r, "n", "48", "3", NULL);
    ck_assert(node_of(&r, "n")->cards[1].unhealthy);
    ck_assert(!node_of(&r, "n")->cards[2].unhealthy);
    node_gone(&r, "n"); /* the ConfigMap remains */
    node_set(&r, "n", "32", "2", NULL);
    ck_assert(node_of(&r, "n")->cards[1].unhealthy);
    node_gone(&r, "n");
    health_gone(&r, "n");
    ck_assert_ptr_null(cache_node(&r.cache, STR("n")));
    health_set(&r, "m", ""); /* names no card; the node is unknown */
    ck_assert_ptr_null(cache_node(&r.cache, STR("m")));
    rig_done(&r);
}

TEST(a_bad_token_disables_no_card) /* A23 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    health_set(&r, "n", "gpu0, 1");
    ck_assert_uint_eq(r.fx.bad_tokens, 1);
    ck_assert(!node_of(&r, "n")->cards[0].unhealthy);
    ck_assert(node_of(&r, "n")->cards[1].unhealthy);
    health_set(&r, "n", "");
    ck_assert_uint_eq(r.fx.bad_tokens, 0);
    ck_assert(!node_of(&r, "n")->cards[0].unhealthy);
    ck_assert(!node_of(&r, "n")->cards[1].unhealthy);
    rig_done(&r);
}

TEST(allocatable_below_capacity_caps_the_sum) /* A24 */
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", "16");
    ck_assert_int_eq(reserve(&r, "a", "n", 16), OK);
    ck_assert_int_eq(reserve(&r, "b", "n", 1), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_NODE_FULL);
    node_set(&r, "n", "32", "2", "32");
    ck_assert_int_eq(reserve(&r, "b", "n", 16), OK);
    rig_done(&r);
}

/* The node may change between the choice of a card and its Binding: then the choice is invalid. */
TEST(renewal_is_refused_where_the_card_is_none_any_more)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert_int_eq(reserve(&r, "a", "n", 16), OK);
    ck_assert_int_eq(reserve(&r, "b", "n", 12), OK); /* the other card */
    node_set(&r, "n", "30", "2", NULL);
    ck_assert_int_eq(renew(&r, "a"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_TOO_LARGE);
    ck_assert_int_eq(renew(&r, "b"), OK);
    ck_assert_int_eq(r.fx.card_total, 15);
    node_set(&r, "n", "16", "1", NULL);
    ck_assert_int_eq(renew(&r, "b"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_NO_CARD_FREE);
    node_gone(&r, "n");
    ck_assert_int_eq(renew(&r, "b"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_UNKNOWN_NODE);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert_int_eq(renew(&r, "a"), OK);
    ck_assert_int_eq(renew(&r, "b"), OK);
    rig_done(&r);
}

/* A Binding that is sent again gets a newer time than the Bindings sent since. */
TEST(renewal_makes_a_reservation_the_youngest)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    ck_assert_int_eq(renew(&r, "a"), ERR_NOTFOUND);
    ck_assert_int_eq(reserve(&r, "a", "n", 1), OK);
    ck_assert_int_eq(reserve(&r, "b", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 1001);
    ck_assert_int_eq(renew(&r, "a"), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 1002);
    ck_assert_int_eq(reserve(&r, "c", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 1003);
    r.now_ns = 9000;
    ck_assert_int_eq(renew(&r, "a"), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 9000);
    ck_assert_int_eq(node_of(&r, "n")->used, 3); /* renewal charges nothing more */
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    ck_assert_int_eq(renew(&r, "a"), ERR_NOTFOUND);
    rig_done(&r);
}

/*
 * A pod's author writes the latest time that cardpack accepts. cardpack's next times must also be
 * accepted by a later process that has only the objects.
 */
TEST_EACH(times_of_ours_survive_a_hostile_one, 3) /* A28 */
{
    static const char *const latest[] = {"4611686018427387904", "86400000001000", "86400000000999"};
    char ours[24];
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "a", .mem = "1", .node = "n", .assume = latest[_i]);
    ck_assert_int_eq(reserve(&r, "b", "n", 1), OK);
    uint64_t before = r.fx.assume_ns;
    (void)snprintf(ours, sizeof(ours), "%llu", (unsigned long long)before);
    rig_done(&r);

    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    r.now_ns += 1000000; /* no restart is faster */
    pod_set(&r, .uid = "a", .mem = "1", .node = "n", .assume = latest[_i]);
    pod_set(&r, .uid = "b", .mem = "1", .node = "n", .idx = "0", .assume = ours);
    ck_assert_int_eq(reserve(&r, "c", "n", 1), OK);
    ck_assert_uint_gt(r.fx.assume_ns, before);
    rig_done(&r);
}
