/* Faults during evictions: no pod is evicted in vain, and no room is kept forever. */
#include "daemon/evict/evict_rescue.h"
#include "evictor_rig.h"

TEST(the_api_server_is_away_between_dry_run_and_eviction)
{
    SERVE(TRY("c", GRANTED), EVICT("c", ILL), EVICT("c", LOST), EVICT("c", BUSY),
          EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 5);
    ck_assert(pod("wants")->kept);
}

TEST(an_api_server_that_stays_away)
{
    SERVE(TRY("c", GRANTED), EVICT("c", LOST), EVICT("c", ILL), EVICT("c", LOST), EVICT("c", ILL),
          EVICT("c", LOST));
    (void)ask(wants);
    run_to_failure(6);
    ck_assert_uint_eq(times_logged("reason=EvictionForCardsFailed"), 1);
}

static void c_goes(void)
{
    show((struct eviction_shape){
        .uid = "c", .mem = "10", .node = "n", .idx = "1", .deleting = true});
}

/* The answer was lost: the watch shows that the victim is being deleted, and nothing is sent
 * twice. */
TEST(a_lost_answer)
{
    SERVE(TRY("c", GRANTED), EVICT("c", LOST));
    (void)ask(wants);
    run_to_request(2, c_goes);
    run_to_log("evicted for cards");
    gone("c");
    run_to_log("reason=CardsKept");
    ck_assert_uint_eq(b.server.n_requests, 2);
}

static void lose_lease(void)
{
    b.term = 0;
}

/* The same as losing the Lease: another replica may have decided in between. */
static void lose_and_win_lease(void)
{
    b.term = 2;
}

TEST_EACH(the_lease_is_lost_in_the_middle, 4)
{
    size_t requests = 1 + (size_t)_i / 2;
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_request(requests, _i % 2 == 0 ? lose_lease : lose_and_win_lease);
    run_until(b.loop, is_idle, NULL);
    ck_assert(!pod("wants")->kept);
    run_turns(b.loop, 50); /* notes from the earlier term do not count */
    ck_assert_uint_eq(b.server.n_requests, requests);
    ck_assert_uint_eq(times_logged("reason=CardsReleased"), requests == 2 ? 1 : 0);
}

/* The connection is not made yet at that time. */
TEST(nothing_leaves_without_the_lease)
{
    SERVE(TRY("c", GRANTED));
    (void)ask(wants);
    run_while(b.loop, !is_active());
    ck_assert_uint_eq(b.server.n_requests, 0);
    b.term = 0;
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 0);
}

static void pod_is_gone(void)
{
    gone("wants");
}

START_TEST(the_pod_is_deleted_in_the_middle)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_request((size_t)_i, pod_is_gone);
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, (size_t)_i);
    ck_assert_ptr_null(cache_node(&b.service.cache, STR("n"))->kept_for);
}

TEST(the_pod_is_deleted_while_its_victim_ends)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    c_goes();
    run_turns(b.loop, 5);
    ck_assert(pod("wants")->kept);
    gone("wants");
    run_until(b.loop, is_idle, NULL);
    ck_assert_ptr_null(cache_node(&b.service.cache, STR("n"))->kept_for);
    ck_assert_uint_eq(b.server.n_requests, 2);
}

static void pod_is_edited(void)
{
    show((struct eviction_shape){.uid = "wants", .mem = "11", .priority = 100});
}

TEST(the_pod_is_edited_in_the_middle)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_request(1, pod_is_edited);
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 1);
    ck_assert(!pod("wants")->kept);
}

static void b_rises(void)
{
    show((struct eviction_shape){.uid = "b", .mem = "5", .node = "n", .idx = "0", .priority = 100});
}

/* The plan is a and b, because c's eviction was refused. When b's turn comes, b has the same
 * priority as the pod. */
TEST(a_victim_rises_while_others_are_tried)
{
    SERVE(TRY("c", BUDGET), TRY("a", GRANTED));
    (void)ask(wants);
    run_to_request(2, b_rises);
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 2);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_PROTECTED], 1);
}

static void c_rises(void)
{
    show(
        (struct eviction_shape){.uid = "c", .mem = "10", .node = "n", .idx = "1", .priority = 100});
}

/* It chooses another set at once: a and b. */
TEST(a_victim_rises_after_its_dry_run)
{
    SERVE(TRY("c", GRANTED), TRY("a", GRANTED), TRY("b", GRANTED), EVICT("a", GRANTED),
          EVICT("b", GRANTED));
    (void)ask(wants);
    run_to_request(1, c_rises);
    run_to_log("msg=\"evicted for cards\" namespace=ns pod=b");
    ck_assert_uint_eq(b.server.n_requests, 5);
    ck_assert_uint_eq(times_logged("msg=\"evicted for cards\" namespace=ns pod=c"), 0);
    ck_assert_uint_eq(pod("wants")->allocation->shares[0].card, 0);
}

static void b_and_c_rise(void)
{
    b_rises();
    c_rises();
}

TEST(a_victim_rises_after_its_dry_run_and_there_is_no_other)
{
    SERVE(TRY("c", GRANTED));
    (void)ask(wants);
    run_to_request(1, b_and_c_rise);
    run_to_failure(1);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_PROTECTED], 1);
    ck_assert_uint_eq(times_logged("the pods in its way may not be evicted: pod ns/c has priority "
                                   "100 by now, and only pods below 100 are evicted for it"),
                      2);
}

/* The event on the pod of priority 100 says that one victim was evicted in vain. */
TEST(a_second_victim_rises_after_its_dry_run)
{
    SERVE(TRY("c", BUDGET), TRY("a", GRANTED), TRY("b", GRANTED), EVICT("a", GRANTED));
    (void)ask(wants);
    run_to_request(4, b_rises);
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 4);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_PROTECTED], 1);
    ck_assert_uint_eq(times_logged("reason=CardsReleased"), 1);
    ck_assert_uint_eq(times_logged("pod ns/b has priority 100 by now"), 2);
    ck_assert(!pod("wants")->kept);
}

/* Advances the clock a minute without a real wait. */
static void a_minute_passes(void)
{
    for (size_t i = 0; i < COUNT_OF(b.evictor->spared); i++)
        b.evictor->spared[i].until_ms -= MIN_OF(b.evictor->spared[i].until_ms, UINT64_C(60000));
}

/* Its PodDisruptionBudget may allow the eviction by then. */
TEST(a_spared_victim_is_tried_again_after_a_minute)
{
    SERVE(TRY("c", BUDGET), TRY("a", WEBHOOK), TRY("c", GRANTED), EVICT("c", GRANTED));
    again_soon();
    (void)ask(wants);
    run_to_failure(2);
    (void)ask(wants);
    run_turns(b.loop, 50);
    ck_assert_uint_eq(b.server.n_requests, 2);
    a_minute_passes();
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 4);
}

/* The rescue went on after the refusal of c's eviction, so that refusal is not why the pod was not
 * bound. */
TEST(an_earlier_refusal_is_not_the_cause_of_the_end)
{
    struct err e = ERR_INIT;
    SERVE(TRY("c", BUDGET), TRY("a", GRANTED), TRY("b", GRANTED), EVICT("a", GRANTED),
          EVICT("b", GRANTED));
    struct evictor_settings set = settings();
    set.keep_ms = 1;
    b.evictor = evictor_free(b.evictor);
    ck_assert_ok(evictor_new(&set, &b.evictor, &e), &e);
    (void)ask(wants);
    run_to_log("msg=\"evicted for cards\" namespace=ns pod=b");
    gone("a");
    gone("b");
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_TIME], 1);
    ck_assert_uint_eq(times_logged("reason=CardsReleased"), 1);
    ck_assert_uint_gt(times_logged("it was not bound in time"), 0);
    ck_assert_uint_eq(times_logged("it was not bound in time:"), 0);
}

static void c_is_gone(void)
{
    gone("c");
}

TEST(a_victim_is_gone_by_now)
{
    SERVE(TRY("c", OTHER_UID));
    (void)ask(wants);
    run_to_request(1, c_is_gone);
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 1);
    ck_assert_uint_eq(times_logged("reason="), 0);
}

/* Another replica may have decided since. */
TEST(what_was_noted_in_another_term_is_forgotten)
{
    SERVE(TRY("c", GRANTED));
    (void)ask(wants);
    b.term = 2;
    run_turns(b.loop, 50);
    ck_assert_uint_eq(b.server.n_requests, 0);
    (void)ask(wants);
    run_to_request(1, NULL);
}

TEST_EACH(it_may_end_at_any_time, 9)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_request((size_t)_i / 3, NULL);
    run_turns(b.loop, _i % 3);
    bool begun = b.counts.begun > 0;
    free_evictor();
    ck_assert(!pod("wants")->kept);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_STOPPED], begun ? 1 : 0);
    ck_assert_uint_eq(times_logged("because=\"evictions for cards have been ended"), begun ? 1 : 0);
    /* If an eviction was in vain, an event says so. */
    ck_assert_uint_eq(times_logged("CardsReleased"), times_logged("evicted for cards"));
    ck_assert_int_eq(ask(wants), VERDICT_NO_CARD_FREE); /* and filter notes nothing */
}

static enum errc make_and_free(void *ctx)
{
    struct evictor_settings set = settings();
    struct evictor *e = NULL;
    struct err err = ERR_INIT;
    (void)ctx;
    enum errc code = evictor_new(&set, &e, &err);
    ck_assert_int_eq(code == OK, e != NULL);
    e = evictor_free(e);
    return code;
}

TEST(it_is_made_whole_or_not_at_all)
{
    ck_assert_uint_gt(fail_alloc_each(make_and_free, NULL), 0);
}

/*
 * One allocation fails, anywhere after the note, while no answer comes (the server is in this
 * process, too). The end is the same, only later.
 */
TEST(a_lack_of_memory_is_made_up_for)
{
    bool hit = true;
    size_t nth = 0;
    tear_down();
    while (hit) {
        set_up();
        serve(NULL, 0);
        loop_fd_del(&b.server.listener);
        (void)close(b.server.listener.fd);
        b.server.loop = NULL;
        again_soon();
        fail_alloc_arm(FAIL_ONCE, ++nth);
        struct wait w = wait_begin(b.loop, HERE("to be told that the API server does not answer"));
        while (times_logged("no answer of the API server itself") == 0) {
            (void)ask(wants);
            wait_turn(&w);
        }
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        buf_done(&b.server.heads);
        tear_down();
    }
    set_up();
    ck_assert_uint_gt(nth, 10);
}

int main(void)
{
    TCase *tc = unit_case("evictor_faults");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, the_pod_is_deleted_in_the_middle, 1, 3);
    return unit_run();
}
