/* Lists, and events that race them (A12 in docs/defects.md). */
#include "cache_rig.h"

#include "fail_alloc.h"

#include <stdio.h>

static void start(struct rig *r)
{
    rig_init(r);
    node_set(r, "n", "32", "2", NULL);
}

TEST(what_a_list_lacks_is_gone)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    pod_set(&r, .uid = "b", .node = "n", .idx = "0");
    pod_set(&r, .uid = "c");
    list_begin(&r, CACHE_PODS);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    ck_assert_int_eq(card_used(&r, "n", 0), 16); /* not before the list ends */
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 2);
    ck_assert(r.fx.changed);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert(pod_known(&r, "a") && !pod_known(&r, "b") && !pod_known(&r, "c"));
    rig_done(&r);
}

TEST(the_three_lists_are_apart)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    health_set(&r, "n", "1");
    list_begin(&r, CACHE_NODES);
    list_begin(&r, CACHE_HEALTH);
    node_set(&r, "n", "32", "2", NULL);
    list_end(&r, CACHE_HEALTH);
    ck_assert_uint_eq(r.fx.swept, 1);
    ck_assert(!node_of(&r, "n")->cards[1].unhealthy);
    list_end(&r, CACHE_NODES);
    ck_assert_uint_eq(r.fx.swept, 0);
    ck_assert(!r.fx.changed);
    list_begin(&r, CACHE_NODES);
    list_end(&r, CACHE_NODES);
    ck_assert_uint_eq(r.fx.swept, 1);
    ck_assert_int_eq(node_of(&r, "n")->fault, NODE_ABSENT);
    ck_assert(pod_known(&r, "a"));
    rig_done(&r);
}

TEST(a_list_that_broke_off_removes_nothing)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    pod_set(&r, .uid = "b", .node = "n", .idx = "0");
    list_begin(&r, CACHE_PODS);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    list_begin(&r, CACHE_PODS); /* a second attempt at the list, which names only the other one */
    pod_set(&r, .uid = "b", .node = "n", .idx = "0");
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    list_end(&r, CACHE_PODS);
    ck_assert(!pod_known(&r, "a") && pod_known(&r, "b"));
    rig_done(&r);
}

TEST(a_reservation_made_during_a_list_survives)
{
    struct rig r;
    start(&r);
    list_begin(&r, CACHE_PODS);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK); /* a pod created after the list was read */
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 0);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    /* The pod may have been deleted before the list was read, so the Binding's 201 proves nothing
     * any more. */
    ck_assert_int_eq(confirm(&r, "a", false), ERR_CONFLICT);
    ck_assert_int_eq(confirm(&r, "a", true), OK);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_CONFIRMED);
    rig_done(&r);
}

TEST(the_watch_after_the_list_dispels_the_doubt)
{
    struct rig r;
    start(&r);
    list_begin(&r, CACHE_PODS);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    list_end(&r, CACHE_PODS);
    pod_set(&r, .uid = "a");
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    rig_done(&r);
}

TEST(a_reservation_that_a_later_list_lacks_needs_a_read)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a");
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    list_begin(&r, CACHE_PODS);
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 0);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_int_eq(confirm(&r, "a", false), ERR_CONFLICT);
    cancel(&r, "a");
    ck_assert(!pod_known(&r, "a"));
    rig_done(&r);
}

/* A GET that was under way when the list came may be older than the list. */
TEST(a_read_must_be_younger_than_the_doubt)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    list_begin(&r, CACHE_PODS);
    list_end(&r, CACHE_PODS);
    ck_assert_int_eq(confirm(&r, "a", true), ERR_CONFLICT); /* from here on a GET counts */
    list_begin(&r, CACHE_PODS);
    list_end(&r, CACHE_PODS);
    ck_assert_int_eq(confirm(&r, "a", true), ERR_CONFLICT);
    ck_assert_int_eq(confirm(&r, "a", false), ERR_CONFLICT);
    ck_assert_int_eq(confirm(&r, "a", true), OK);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    rig_done(&r);
}

/* The pod was bound, deleted and then listed, all before the answer to its Binding arrived. */
TEST(a_confirmation_does_not_hide_a_pod_from_the_list)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    list_begin(&r, CACHE_PODS);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 1);
    ck_assert(!pod_known(&r, "a"));
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    rig_done(&r);
}

TEST(a_confirmed_pod_that_the_list_names_stays)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    list_begin(&r, CACHE_PODS);
    pod_set(&r, .uid = "a"); /* the list was read before the Binding */
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 0);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    rig_done(&r);
}

/* The pod first appeared during a list that lacks it, and its Binding is confirmed: the pod is
 * either newer than the list, or deleted. */
TEST(what_a_list_can_not_prove_is_told)
{
    struct rig r;
    start(&r);
    list_begin(&r, CACHE_PODS);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 0);
    ck_assert_uint_eq(r.fx.unproven, 1);
    ck_assert(pod_of(&r, "a")->missing);
    ck_assert_int_eq(confirm(&r, "a", true), ERR_CONFLICT); /* every confirmation needs a GET */
    ck_assert_int_eq(confirm(&r, "a", true), OK);
    ck_assert(!pod_of(&r, "a")->missing);
    list_begin(&r, CACHE_PODS); /* the pod was known before this list: here absence is proof */
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 1);
    ck_assert(!pod_known(&r, "a"));
    rig_done(&r);
}

/* Between begin and end there is no watch; the answer to a GET is not an entry of the list. */
TEST(a_read_during_a_list_does_not_hide_a_pod_from_it)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    list_begin(&r, CACHE_PODS);
    ck_assert_int_eq(
        pod_event(&r, CACHE_POD_READ, (struct shown){.uid = "a", .node = "n", .idx = "1"}), OK);
    list_end(&r, CACHE_PODS);
    ck_assert(!pod_known(&r, "a"));
    rig_done(&r);
}

TEST(a_pod_canceled_during_a_list_is_swept_if_unnamed)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a");
    pod_set(&r, .uid = "b");
    list_begin(&r, CACHE_PODS);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    ck_assert_int_eq(reserve(&r, "b", "n", 8), OK);
    pod_set(&r, .uid = "b");
    cancel(&r, "a");
    cancel(&r, "b");
    list_end(&r, CACHE_PODS);
    ck_assert(!pod_known(&r, "a") && pod_known(&r, "b"));
    rig_done(&r);
}

/* An object that found no memory is missing from the list because of cardpack: it is not
 * removed. */
TEST_EACH(a_list_that_lost_an_object_removes_nothing, 3)
{
    static const enum cache_kind kinds[] = {CACHE_PODS, CACHE_NODES, CACHE_HEALTH};
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    health_set(&r, "n", "1");
    list_begin(&r, kinds[_i]);
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    struct cache_event e = {.type = CACHE_HEALTH_SET,
                            .health = {.node = STR("other"), .gpus = STR("1")}};
    enum errc lost =
        kinds[_i] == CACHE_PODS ? pod_event(&r, CACHE_POD_SET, (struct shown){.uid = "b"}) : OK;
    if (kinds[_i] == CACHE_NODES)
        e = (struct cache_event){.type = CACHE_NODE_SET, .node = {.name = STR("other")}};
    if (kinds[_i] != CACHE_PODS)
        lost = rig_apply(&r, &e);
    fail_alloc_disarm();
    ck_assert_int_eq(lost, ERR_NOMEM);
    e = (struct cache_event){.type = CACHE_LIST_END, .list = kinds[_i]};
    ck_assert_int_eq(rig_apply(&r, &e), ERR_NOMEM);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert(node_of(&r, "n")->cards[1].unhealthy);
    list_begin(&r, kinds[_i]); /* the next list is complete again */
    list_end(&r, kinds[_i]);
    ck_assert_uint_eq(r.fx.swept, 1);
    rig_done(&r);
}

TEST(a_long_list_is_swept_whole)
{
    struct rig r;
    rig_init(&r);
    for (unsigned i = 0; i < 2000; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "x%u", i);
        struct cache_event e = {.type = CACHE_NODE_SET, .node = {.name = str_of(name)}};
        ck_assert_int_eq(cache_apply(&r.cache, &e, 0, &r.fx), OK);
        e = (struct cache_event){.type = CACHE_HEALTH_SET,
                                 .health = {.node = str_of(name), .gpus = STR("0")}};
        ck_assert_int_eq(cache_apply(&r.cache, &e, 0, &r.fx), OK);
        struct container_view c = {.name = STR("c"), .mem = STR("1")};
        e = (struct cache_event){
            .type = CACHE_POD_SET,
            .pod = {
                .uid = str_of(name), .node = str_of(name), .containers = &c, .n_containers = 1}};
        ck_assert_int_eq(cache_apply(&r.cache, &e, 0, &r.fx), OK);
    }

    static const enum cache_kind kinds[] = {CACHE_NODES, CACHE_HEALTH, CACHE_PODS};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        list_begin(&r, kinds[i]);
        list_end(&r, kinds[i]);
        ck_assert_uint_eq(r.fx.swept, 2000);
    }
    ck_assert_uint_eq(r.cache.nodes.n, 0);
    ck_assert_uint_eq(r.cache.pods.n, 0);
    rig_done(&r);
}
