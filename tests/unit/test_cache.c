/* Pods and reservations in the cache. Codes such as A6 are rows in docs/defects.md: defects of the
 * peers. */
#include "cache_rig.h"

static void start(struct rig *r)
{
    rig_init(r);
    node_set(r, "n", "32", "2", NULL);
    node_set(r, "m", "32", "2", NULL);
}

TEST(a_pod_goes_its_usual_way)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a");
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_PENDING);
    ck_assert_int_eq(pod_of(&r, "a")->request->mem, 8);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    ck_assert(r.fx.changed);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_RESERVED);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_CONFIRMED);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0", .assigned = "false");
    ck_assert(!r.fx.changed);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_BOUND);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0", .phase = "Succeeded");
    ck_assert(r.fx.changed);
    ck_assert(!pod_known(&r, "a"));
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    rig_done(&r);
}

/* The watch may show the bound pod before the answer to its Binding arrives. */
TEST(watch_and_answer_come_in_any_order)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0");
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_BOUND);
    cancel(&r, "a"); /* too late: there is no reservation any more */
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_int_eq(reserve(&r, "b", "n", 8), OK);
    ck_assert_int_eq(confirm(&r, "b", false), OK);
    pod_set(&r, .uid = "b"); /* an older, unbound object that arrives late */
    ck_assert_int_eq(pod_of(&r, "b")->state, POD_CONFIRMED);
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    rig_done(&r);
}

TEST(a_cancel_gives_the_card_back)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "seen");
    ck_assert_int_eq(reserve(&r, "seen", "n", 8), OK);
    ck_assert_int_eq(reserve(&r, "new", "n", 8), OK);
    cancel(&r, "seen");
    ck_assert_int_eq(pod_of(&r, "seen")->state, POD_PENDING);
    cancel(&r, "new");
    ck_assert(!pod_known(&r, "new"));
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    ck_assert_int_eq(confirm(&r, "seen", true), ERR_NOTFOUND);
    ck_assert_int_eq(confirm(&r, "new", true), ERR_NOTFOUND);
    ck_assert_int_eq(reserve(&r, "seen", "m", 8), OK);
    cancel(&r, "nobody");
    ck_assert(!r.fx.changed);
    rig_done(&r);
}

TEST(nobody_holds_two_cards)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), ERR_CONFLICT);
    ck_assert_int_eq(reserve(&r, "a", "m", 8), ERR_CONFLICT);
    pod_set(&r, .uid = "b", .node = "n", .idx = "1");
    ck_assert_int_eq(reserve(&r, "b", "m", 8), ERR_CONFLICT);
    ck_assert_int_eq(node_of(&r, "m")->used, 0);
    rig_done(&r);
}

TEST(gone_is_told_by_uid_alone) /* A6, A11 */
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .node = "n", .idx = "1");
    /* The last object of a DELETED event may be stale: unbound, without a card, of another size. */
    ck_assert_int_eq(
        pod_event(&r, CACHE_POD_GONE, (struct shown){.uid = "a", .mem = "1", .node = "m"}), OK);
    ck_assert(!pod_known(&r, "a"));
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    pod_gone(&r, "a"); /* a second time */
    ck_assert(!r.fx.changed);
    rig_done(&r);
}

static void set_named(struct rig *r, const char *uid, const char *node)
{
    struct container_view c = {.name = STR("c"), .mem = STR("8")};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = str_of(uid),
                                    .namespace = STR("ns"),
                                    .name = STR("web-0"),
                                    .node = str_of(node),
                                    .idx = STR("0"),
                                    .containers = &c,
                                    .n_containers = 1}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

TEST(one_name_twice_is_two_pods) /* A9: a StatefulSet creates its pod again */
{
    struct rig r;
    start(&r);
    set_named(&r, "first", "n");
    set_named(&r, "second", "n");
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    pod_gone(&r, "first");
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_int_eq(pod_of(&r, "second")->state, POD_BOUND);
    rig_done(&r);
}

TEST(a_deletion_timestamp_frees_nothing) /* A10 */
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0", .phase = "Running", .deleting = true);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0", .phase = "Failed", .deleting = true);
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    pod_set(&r, .uid = "b", .node = "n", .idx = "0", .phase = "Unknown");
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    rig_done(&r);
}

/* `card` -1: no card; only the node is charged. */
static const struct {
    const char *mem;
    const char *idx;
    int64_t charged;
    int32_t card;
} placed[] = {
    {"8", "1", 8, 1},           {"8", NULL, 8, -1},
    {"8", "", 8, -1},           {"8", "-1", 8, -1},
    {"8", "x", 8, -1},          {"8", "x,-1,", 8, -1},
    {"8", " 1", 8, 1},          {"8", "2", 8, -1},
    {"8", "4294967296", 8, -1}, {"8", "2147483648", 8, -1},
    {"8", "2147483647", 8, -1}, {"40", "1", 40, 1},
    {"16k", "1", 16000, 1},     {"100E", "1", REQUEST_MEM_MAX, 1},
    {"abc", "1", 0, 1},         {"1.5", "1", 2, 1},
    {"-4", "1", 0, 1},
};

/* A bound pod is charged by its spec, on a card that exists, whatever its annotations say. */
TEST_EACH(the_spec_says_how_much_the_annotation_which_card, COUNT_OF(placed)) /* A17, A18, A19 */
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .mem = placed[_i].mem, .node = "n", .idx = placed[_i].idx);
    const struct node *n = node_of(&r, "n");
    ck_assert_int_eq(n->used, placed[_i].charged);
    ck_assert_int_eq(n->unplaced, placed[_i].card < 0 ? placed[_i].charged : 0);
    for (int32_t i = 0; i < 2; i++)
        ck_assert_int_eq(n->cards[i].used, placed[_i].card == i ? placed[_i].charged : 0);
    rig_done(&r);
}

TEST(annotations_of_an_unbound_pod_mean_nothing) /* A17 */
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .idx = "0", .assume = "4000000000000000000", .assigned = "false");
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_PENDING);
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    ck_assert_int_eq(reserve(&r, "b", "n", 8), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 1000);
    rig_done(&r);
}

TEST(an_unreadable_request_is_told_and_not_offered)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .mem = "1.5");
    ck_assert_int_eq(r.fx.err.code, ERR_RANGE);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_PENDING);
    ck_assert_int_eq(pod_of(&r, "a")->request->mem, 0);
    rig_done(&r);
}

TEST(pods_that_want_nothing_are_not_kept)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .mem = "0", .node = "n");
    pod_set(&r, .uid = "b", .mem = "0");
    ck_assert(!pod_known(&r, "a") && !pod_known(&r, "b"));
    ck_assert(!r.fx.changed);
    pod_set(&r, .uid = "c", .phase = "Failed");
    ck_assert(!pod_known(&r, "c"));
    rig_done(&r);
}

TEST(init_containers_count) /* A25 */
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .node = "n", .idx = "1", .kind = CONTAINER_INIT);
    ck_assert_int_eq(card_used(&r, "n", 1), 8);
    rig_done(&r);
}

TEST(the_object_wins_over_the_reservation)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    pod_set(&r, .uid = "a", .node = "m", .idx = "1"); /* another scheduler has bound it first */
    ck_assert(r.fx.changed);
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    ck_assert_int_eq(card_used(&r, "m", 1), 8);
    cancel(&r, "a");
    ck_assert_int_eq(card_used(&r, "m", 1), 8);
    pod_set(&r, .uid = "a", .node = "m", .idx = "0"); /* a user edits the annotation */
    ck_assert_int_eq(card_used(&r, "m", 0), 8);
    ck_assert_int_eq(card_used(&r, "m", 1), 0);
    rig_done(&r);
}

/* An unbound object does not show that a Binding under way failed. */
TEST(an_older_object_gives_nothing_back)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    pod_set(&r, .uid = "a");
    pod_set(&r, .uid = "a", .mem = "0");
    pod_set(&r, .uid = "a", .phase = "Failed");
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_int_eq(confirm(&r, "a", false), ERR_CONFLICT); /* ended before */
    ck_assert_int_eq(confirm(&r, "a", true), OK);
    pod_set(&r, .uid = "a", .phase = "Failed");
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    pod_set(&r, .uid = "a", .node = "n", .phase = "Failed");
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    rig_done(&r);
}

/*
 * API servers before 1.27 ignore a Binding's UID: a Binding under way may still bind the next pod
 * of that name to this card. So a deletion releases the card of a bound pod, but never a
 * reservation whose Binding is under way.
 */
TEST(a_reservation_outlives_its_pod_until_it_is_resolved)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a");
    ck_assert_int_eq(reserve(&r, "a", "n", 16), OK);
    pod_gone(&r, "a");
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    ck_assert_int_eq(reserve(&r, "b", "n", 16), OK);
    ck_assert_uint_eq(r.fx.card, 1);
    ck_assert_int_eq(confirm(&r, "a", false), ERR_CONFLICT);
    cancel(&r, "a");
    ck_assert(!pod_known(&r, "a"));
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    rig_done(&r);
}

TEST(a_confirmed_pod_that_is_deleted_is_gone)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 16), OK);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    pod_gone(&r, "a");
    ck_assert(!pod_known(&r, "a"));
    ck_assert_int_eq(confirm(&r, "a", true), ERR_NOTFOUND);
    rig_done(&r);
}

TEST(assume_time_only_grows) /* A28 */
{
    struct rig r;
    start(&r);
    r.now_ns = 5000;
    ck_assert_int_eq(reserve(&r, "a", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 5000);
    ck_assert_int_eq(reserve(&r, "b", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 5001);
    r.now_ns = 10; /* the clock steps back */
    ck_assert_int_eq(reserve(&r, "c", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 5002);
    ck_assert_int_eq(reserve(&r, "d", "m", 1), OK); /* each node has its own times */
    ck_assert_uint_eq(r.fx.assume_ns, 10);
    cancel(&r, "c");
    ck_assert_int_eq(reserve(&r, "c", "n", 1), OK); /* no time is used twice */
    ck_assert_uint_eq(r.fx.assume_ns, 5003);
    r.now_ns = 9000;
    ck_assert_int_eq(reserve(&r, "e", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 9000);
    rig_done(&r);
}

TEST(assume_time_follows_what_others_wrote) /* A28: of others */
{
    struct rig r;
    start(&r);
    r.now_ns = 1000;
    pod_set(&r, .uid = "a", .node = "n", .idx = "0", .assume = "7000", .assigned = "false");
    ck_assert_int_eq(reserve(&r, "b", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 7001);
    pod_set(&r, .uid = "a", .node = "n", .idx = "0", .assume = "8000", .assigned = "true");
    ck_assert_int_eq(reserve(&r, "c", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 8001);
    rig_done(&r);
}

static const char *const hostile_times[] = {
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-1",
    "",
    "x",
    "1e18",
    "4611686018427387904",
    "1000000000000000000", /* more than a day ahead of a clock that says 1000 */
    "+5000",
    " 5000",
};

TEST_EACH(hostile_times_leave_room_for_ours, COUNT_OF(hostile_times)) /* A28 */
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a", .mem = "1", .node = "n", .assume = hostile_times[_i]);
    ck_assert_int_eq(reserve(&r, "b", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 1000);
    ck_assert_int_eq(reserve(&r, "c", "n", 1), OK);
    ck_assert_uint_eq(r.fx.assume_ns, 1001);
    rig_done(&r);
}

TEST(a_read_shows_where_a_pod_was_bound)
{
    struct rig r;
    start(&r);
    struct shown elsewhere = {.uid = "a", .node = "m", .idx = "1"};
    ck_assert_int_eq(pod_event(&r, CACHE_POD_READ, elsewhere), ERR_NOTFOUND);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    ck_assert_int_eq(pod_event(&r, CACHE_POD_READ, (struct shown){.uid = "a"}), OK);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_RESERVED);
    ck_assert_int_eq(pod_event(&r, CACHE_POD_READ, elsewhere), OK);
    ck_assert_int_eq(pod_of(&r, "a")->state, POD_CONFIRMED);
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    ck_assert_int_eq(card_used(&r, "m", 1), 8);
    /* A terminal phase is final, however old the GET's answer. */
    elsewhere.phase = "Succeeded";
    ck_assert_int_eq(pod_event(&r, CACHE_POD_READ, elsewhere), OK);
    ck_assert(!pod_known(&r, "a"));
    rig_done(&r);
}

/* The answer to a GET may be older than what the watch has shown: then it changes nothing. */
TEST(a_read_is_no_news_beside_the_watch)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(reserve(&r, "a", "n", 8), OK);
    pod_gone(&r, "a");
    ck_assert_int_eq(
        pod_event(&r, CACHE_POD_READ, (struct shown){.uid = "a", .node = "m", .idx = "1"}),
        ERR_CONFLICT);
    ck_assert_int_eq(node_of(&r, "m")->used, 0);
    cancel(&r, "a");
    pod_set(&r, .uid = "b", .node = "n", .idx = "0");
    ck_assert_int_eq(
        pod_event(&r, CACHE_POD_READ, (struct shown){.uid = "b", .node = "m", .idx = "1"}), OK);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    rig_done(&r);
}

TEST(every_pod_can_be_walked)
{
    struct rig r;
    start(&r);
    pod_set(&r, .uid = "a");
    pod_set(&r, .uid = "b", .node = "n");
    ck_assert_int_eq(reserve(&r, "c", "n", 1), OK);
    size_t cursor = 0;
    unsigned n = 0;
    while (cache_next_pod(&r.cache, &cursor) != NULL)
        n++;
    ck_assert_uint_eq(n, 3);
    rig_done(&r);
}
