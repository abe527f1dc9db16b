/* For which pods evictions happen, and which pods are evicted. */
#include "daemon/limit.h"
#include "evictor_rig.h"

TEST(it_gets_its_card)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    struct eviction_shape rival = {.uid = "rival", .mem = "6"};
    ck_assert_int_eq(ask(wants), VERDICT_NO_CARD_FREE);
    ck_assert(!b.later);
    run_to_request(2, NULL);
    ck_assert(pod("wants")->kept);
    run_to_log("evicted for cards");
    show((struct eviction_shape){
        .uid = "c", .mem = "10", .node = "n", .idx = "1", .deleting = true});
    ck_assert_int_eq(ask(wants), VERDICT_NO_CARD_FREE);
    run_turns(b.loop, 5);
    ck_assert_uint_eq(times_logged("cards are kept"), 0);
    ck_assert(b.later);
    rival.mem = "7";
    ck_assert_int_eq(ask(rival), VERDICT_NO_CARD_FREE);
    ck_assert(!b.later);
    gone("c");
    run_to_log("reason=CardsKept");
    rival.mem = "6";
    ck_assert_int_eq(ask(rival), VERDICT_FITS); /* on the other card */
    rival.mem = "7";
    ck_assert_int_eq(ask(rival), VERDICT_KEPT);
    ck_assert_int_eq(ask(wants), VERDICT_FITS);
    ck_assert(!b.later);
    reserve_it("wants");
    ck_assert_int_eq(pod("wants")->card, 1);
    run_turns(b.loop, 5);
    ck_assert(is_active()); /* it may still fail */
    apply(&(struct cache_event){.type = CACHE_CONFIRM, .holder = {.uid = STR("wants")}});
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 2);
    ck_assert_uint_eq(times_logged("pod=c reason=EvictedForCards"), 1);
    ck_assert_uint_eq(times_logged("pod=wants reason=EvictingForCards"), 1);
    ck_assert_uint_eq(times_logged("CardsReleased"), 0);
    ck_assert(strstr(buf_cstr(&b.server.heads), "\"uid\":\"c\"") != NULL);
}

TEST(a_bind_that_fails_is_no_end)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    gone("c");
    run_to_log("reason=CardsKept");
    reserve_it("wants");
    apply(&(struct cache_event){.type = CACHE_CANCEL, .holder = {.uid = STR("wants")}});
    ck_assert(!pod("wants")->kept);
    run_while(b.loop, !pod("wants")->kept);
    show((struct eviction_shape){
        .uid = "wants", .mem = "12", .priority = 100, .node = "n", .idx = "1"});
    run_until(b.loop, is_idle, NULL);
}

/* Card 1 is out of reach: it evicts both pods of card 0. */
TEST(another_set_where_one_is_refused)
{
    SERVE(TRY("c", BUDGET), TRY("a", GRANTED), TRY("b", GRANTED), EVICT("a", GRANTED),
          EVICT("b", GRANTED));
    (void)ask(wants);
    run_to_log("msg=\"evicted for cards\" namespace=ns pod=b");
    ck_assert_uint_eq(times_logged("spared for a while"), 1);
    ck_assert_uint_eq(pod("wants")->allocation->shares[0].card, 0);
    gone("a");
    gone("b");
    run_to_log("reason=CardsKept");
}

TEST(nobody_where_all_are_refused)
{
    SERVE(TRY("c", BUDGET), TRY("a", WEBHOOK));
    (void)ask(wants);
    run_to_failure(2);
    ck_assert_uint_eq(times_logged("reason=EvictionForCardsFailed"), 1);
    ck_assert_uint_eq(times_logged("denied the request: no"), 3); /* the event and two log lines */
}

TEST(not_against_a_budget_that_is_known)
{
    static const struct requirement_view none;
    struct budget_view all = {.namespace = STR("ns"), .name = STR("all"), .selects = true};
    all.requirements = &none;
    ck_assert_int_eq(budgets_set(&b.service.budgets, &all), OK);
    serve(NULL, 0);
    (void)ask(wants);
    run_to_failure(0);
    ck_assert_uint_eq(times_logged("would violate a PodDisruptionBudget"), 2);
}

/* Kubernetes 1.20 nominates a node without a victim. The verdicts on the pod continue during the
 * rescue. */
TEST(a_nomination_that_helps_nobody)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    struct container_view c;
    struct cache_event e = {.type = CACHE_POD_SET, .pod = view_of(&wants, &c)};
    e.pod.nominated = STR("n");
    apply(&e);
    (void)ask(wants);
    run_to_request(2, NULL);
    apply(&e);
    ck_assert(pod("wants")->kept);
    run_to_log("evicted for cards");
}

/* Pods for which no eviction happens. Each would qualify, except for one fact. */
static const struct {
    const char *why;
    struct eviction_shape shape;
    struct eviction_shape other; /* shown earlier */
    const char *nominated;
} idle[] = {
    {.why = "of the same weight", .shape = {.uid = "w", .mem = "12"}},
    {.why = "never preempts", .shape = {.uid = "w", .mem = "12", .priority = 9, .never = true}},
    {.why = "wants nothing", .shape = {.uid = "w", .mem = "0", .priority = 9}},
    {.why = "fits", .shape = {.uid = "w", .mem = "6", .priority = 9}},
    {.why = "the scheduler itself would preempt",
     .shape = {.uid = "w", .mem = "13", .priority = 9}},
    {.why = "too large for any card", .shape = {.uid = "w", .mem = "17", .priority = 9}},
    {.why = "the scheduler makes room",
     .shape = {.uid = "w", .mem = "12", .priority = 9},
     .other = {.uid = "a", .mem = "5", .node = "n", .idx = "0", .deleting = true},
     .nominated = "n"},
    {.why = "is going", .shape = {.uid = "w", .mem = "12", .priority = 9, .deleting = true}},
    {.why = "room is coming by itself",
     .shape = {.uid = "w", .mem = "12", .priority = 9},
     .other = {.uid = "c", .mem = "10", .node = "n", .idx = "1", .deleting = true}},
};

TEST_EACH(nobody_is_evicted_for, COUNT_OF(idle))
{
    struct container_view c;
    struct cache_event e = {.type = CACHE_POD_SET};
    serve(NULL, 0);
    if (idle[_i].other.uid != NULL)
        show(idle[_i].other);
    e.pod = view_of(&idle[_i].shape, &c);
    e.pod.nominated = str_of(idle[_i].nominated);
    apply(&e);
    (void)ask(idle[_i].shape);
    run_turns(b.loop, 50);
    ck_assert_msg(b.server.n_requests == 0, "%s", idle[_i].why);
    ck_assert_uint_eq(times_logged("evicting"), 0);
    ck_assert_uint_eq(times_logged("reason="), 0);
}

TEST(the_clusters_own_stay)
{
    const int32_t critical = 2000000000;
    serve(NULL, 0);
    show((struct eviction_shape){
        .uid = "b", .mem = "5", .node = "n", .idx = "0", .priority = critical});
    show((struct eviction_shape){
        .uid = "c", .mem = "10", .node = "n", .idx = "1", .priority = critical});
    (void)ask((struct eviction_shape){.uid = "w", .mem = "12", .priority = critical + 1000});
    show((struct eviction_shape){.uid = "w", .mem = "12", .priority = critical + 1000});
    run_turns(b.loop, 50);
    ck_assert_uint_eq(b.server.n_requests, 0);
    ck_assert_uint_eq(times_logged("reason="), 0);
}

/* One eviction is needed on n, two on m. The order of the nodes must not decide. */
TEST_EACH(the_node_of_the_cheaper_set, 2)
{
    static const struct str orders[][2] = {{STR("n"), STR("m")}, {STR("m"), STR("n")}};
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    apply(&(struct cache_event){.type = CACHE_NODE_SET,
                                .node = {.name = STR("m"), .mem = STR("32"), .count = STR("2")}});
    show((struct eviction_shape){.uid = "d", .mem = "5", .node = "m", .idx = "0"});
    show((struct eviction_shape){.uid = "e", .mem = "5", .node = "m", .idx = "0"});
    show(
        (struct eviction_shape){.uid = "f", .mem = "10", .node = "m", .idx = "1", .priority = 100});
    ck_assert_int_eq(ask_of(wants, orders[_i], 2), VERDICT_NO_CARD_FREE);
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 2);
}

/* On card 0 of m are pods of 1, and all of them must go for a pod of 34. The other cards have 33
 * free, beside a pod of the same priority. */
TEST_EACH(no_more_victims_than_the_limit, 2)
{
    const struct eviction_shape large = {.uid = "large", .mem = "34", .priority = 100};
    static const struct str name = STR("m");
    int n = LIMIT_EVICT_VICTIMS + _i;
    serve(NULL, 0);
    apply(&(struct cache_event){.type = CACHE_NODE_SET,
                                .node = {.name = STR("m"), .mem = STR("102"), .count = STR("3")}});
    show((struct eviction_shape){.uid = "x", .mem = "1", .node = "m", .idx = "1", .priority = 100});
    show((struct eviction_shape){.uid = "y", .mem = "1", .node = "m", .idx = "2", .priority = 100});
    for (int i = 0; i < n; i++) {
        char uid[32];
        (void)snprintf(uid, sizeof(uid), "small-%d", i);
        show((struct eviction_shape){.uid = uid, .mem = "1", .node = "m", .idx = "0"});
    }
    show(large);
    ck_assert_int_eq(ask_of(large, &name, 1), VERDICT_NO_CARD_FREE);
    run_until(b.loop, has_ended_or_asked, NULL);
    ck_assert_uint_eq(b.server.n_requests, n <= LIMIT_EVICT_VICTIMS ? 1 : 0);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_NO_SET], n <= LIMIT_EVICT_VICTIMS ? 0 : 1);
}

/* When filter refused the pod, the node had 12 free. Now 9 are free, and the scheduler preempts. */
TEST(a_node_that_has_filled_since)
{
    serve(NULL, 0);
    ck_assert_int_eq(ask(wants), VERDICT_NO_CARD_FREE);
    show((struct eviction_shape){.uid = "d", .mem = "3", .node = "n", .idx = "0"});
    run_until(b.loop, has_ended_or_asked, NULL);
    ck_assert_uint_eq(b.server.n_requests, 0);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_NO_SET], 1);
}

int main(void)
{
    TCase *tc = unit_case("evictor");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
