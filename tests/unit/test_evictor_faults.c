/* What goes wrong on the way: nobody is evicted in vain, and no room is kept for ever. */
#include "evictor_rig.h"

START_TEST(a_right_that_is_lacking_is_told_once)
{
    SERVE(TRY("c", DENIED));
    again_soon();
    (void)ask(wants);
    run_to_failure(1);
    ck_assert_uint_eq(times_logged("no card for a pod by evictions"), 1);
    (void)ask(wants);
    run_turns(b.loop, 100); /* nothing is asked for a while */
    ck_assert_uint_eq(b.server.n_requests, 1);
}

END_TEST

START_TEST(an_older_api_server)
{
    SERVE(TRY("c", OLD), TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    const char *heads = buf_cstr(&b.server.heads);
    const char *first = strstr(heads, "policy/v1\"");
    ck_assert(first != NULL && strstr(first + 1, "policy/v1\"") == NULL);
    ck_assert(strstr(strstr(first, "policy/v1beta1\"") + 1, "policy/v1beta1\"") != NULL);
}

END_TEST

START_TEST(the_api_server_is_away_between_dry_run_and_eviction)
{
    SERVE(TRY("c", GRANTED), EVICT("c", ILL), EVICT("c", LOST), EVICT("c", BUSY),
          EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 5);
    ck_assert(pod("wants")->kept);
}

END_TEST

START_TEST(an_api_server_that_stays_away)
{
    SERVE(TRY("c", GRANTED), EVICT("c", LOST), EVICT("c", ILL), EVICT("c", LOST), EVICT("c", ILL),
          EVICT("c", LOST));
    (void)ask(wants);
    run_to_failure(6);
    ck_assert_uint_eq(times_logged("reason=EvictionForCardsFailed"), 1);
}

END_TEST

static void c_goes(void)
{
    show((struct shape){.uid = "c", .mem = "10", .node = "n", .idx = "1", .deleting = true});
}

/* It was lost on the way back: the watch shows that the victim goes, and nothing is sent twice. */
START_TEST(a_lost_answer)
{
    SERVE(TRY("c", GRANTED), EVICT("c", LOST));
    (void)ask(wants);
    run_to_request(2, c_goes);
    run_to_log("evicted for cards");
    gone("c");
    run_to_log("reason=CardsKept");
    ck_assert_uint_eq(b.server.n_requests, 2);
}

END_TEST

static void lose_lease(void)
{
    b.term = 0;
}

/* The same as to lose it: somebody else may have decided in between. */
static void lose_and_win_lease(void)
{
    b.term = 2;
}

START_TEST(the_lease_is_lost_in_the_middle)
{
    size_t requests = 1 + (size_t)_i / 2;
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_request(requests, _i % 2 == 0 ? lose_lease : lose_and_win_lease);
    run_until(b.loop, is_idle, NULL);
    ck_assert(!pod("wants")->kept);
    run_turns(b.loop, 50); /* what was noted before says nothing now */
    ck_assert_uint_eq(b.server.n_requests, requests);
    ck_assert_uint_eq(times_logged("reason=CardsReleased"), requests == 2 ? 1 : 0);
}

END_TEST

/* The connection is still to be made then. */
START_TEST(nothing_leaves_without_the_lease)
{
    SERVE(TRY("c", GRANTED));
    (void)ask(wants);
    while (!evictor_active(b.evictor))
        run_turns(b.loop, 1);
    ck_assert_uint_eq(b.server.n_requests, 0);
    b.term = 0;
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 0);
}

END_TEST

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
    ck_assert_ptr_null(cache_node(&b.service.cache, STR("n"))->claims);
}

END_TEST

START_TEST(the_pod_is_deleted_while_its_victim_ends)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    c_goes();
    run_turns(b.loop, 5);
    ck_assert(pod("wants")->kept);
    gone("wants");
    run_until(b.loop, is_idle, NULL);
    ck_assert_ptr_null(cache_node(&b.service.cache, STR("n"))->claims);
    ck_assert_uint_eq(b.server.n_requests, 2);
}

END_TEST

static void pod_is_edited(void)
{
    show((struct shape){.uid = "wants", .mem = "11", .priority = 100});
}

START_TEST(the_pod_is_edited_in_the_middle)
{
    SERVE(TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_request(1, pod_is_edited);
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 1);
    ck_assert(!pod("wants")->kept);
}

END_TEST

/* The watch is late to say so; it is no failure, of which there may be five. */
START_TEST(a_victim_has_another_uid_by_now)
{
    SERVE(TRY("c", OTHER_UID), TRY("c", OTHER_UID), TRY("c", OTHER_UID), TRY("c", OTHER_UID),
          TRY("c", OTHER_UID), TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 7);
}

END_TEST

static void c_is_gone(void)
{
    gone("c");
}

START_TEST(a_victim_is_gone_by_now)
{
    SERVE(TRY("c", OTHER_UID));
    (void)ask(wants);
    run_to_request(1, c_is_gone);
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, 1);
    ck_assert_uint_eq(times_logged("reason="), 0);
}

END_TEST

/* Somebody else may have decided since. */
START_TEST(what_was_noted_in_another_term_is_forgotten)
{
    SERVE(TRY("c", GRANTED));
    (void)ask(wants);
    b.term = 2;
    run_turns(b.loop, 50);
    ck_assert_uint_eq(b.server.n_requests, 0);
    (void)ask(wants);
    run_to_request(1, NULL);
}

END_TEST

START_TEST(it_may_end_at_any_time)
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
    /* Who was evicted has gone for nothing, which somebody may want to know. */
    ck_assert_uint_eq(times_logged("CardsReleased"), times_logged("evicted for cards"));
    ck_assert_int_eq(ask(wants), VERDICT_NO_CARD_FREE); /* and nothing is noted */
}

END_TEST

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

START_TEST(it_is_made_whole_or_not_at_all)
{
    ck_assert_uint_gt(fail_alloc_each(make_and_free, NULL), 0);
}

END_TEST

/*
 * One allocation fails, anywhere from the note on, with nobody there to answer: the server lives in
 * this process, too. It comes to the same end, if later.
 */
START_TEST(a_lack_of_memory_is_made_up_for)
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
        while (times_logged("the API server does not answer") == 0) {
            (void)ask(wants);
            run_turns(b.loop, 1);
        }
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        buf_done(&b.server.heads);
        tear_down();
    }
    set_up();
    ck_assert_uint_gt(nth, 10);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("evictor_faults");
    TCase *tc = tcase_create("evictor_faults");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_right_that_is_lacking_is_told_once);
    tcase_add_test(tc, an_older_api_server);
    tcase_add_test(tc, the_api_server_is_away_between_dry_run_and_eviction);
    tcase_add_test(tc, an_api_server_that_stays_away);
    tcase_add_test(tc, a_lost_answer);
    tcase_add_loop_test(tc, the_lease_is_lost_in_the_middle, 0, 4);
    tcase_add_test(tc, nothing_leaves_without_the_lease);
    tcase_add_loop_test(tc, the_pod_is_deleted_in_the_middle, 1, 3);
    tcase_add_test(tc, the_pod_is_deleted_while_its_victim_ends);
    tcase_add_test(tc, the_pod_is_edited_in_the_middle);
    tcase_add_test(tc, a_victim_has_another_uid_by_now);
    tcase_add_test(tc, a_victim_is_gone_by_now);
    tcase_add_test(tc, what_was_noted_in_another_term_is_forgotten);
    tcase_add_loop_test(tc, it_may_end_at_any_time, 0, 9);
    tcase_add_test(tc, it_is_made_whole_or_not_at_all);
    tcase_add_test(tc, a_lack_of_memory_is_made_up_for);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
