/*
 * bind.h over time: several binds on one node, with pauses, deadlines and turns. For one bind alone
 * see test_bind.c; for the action after each answer see test_bind_step.c.
 */
#include "bind_fixture.h"

#include "base/log.h"
#include "daemon/limit.h"

#include <fcntl.h>

/* ---- after a pause the world has changed ---- */

TEST(throttled_and_the_cards_are_cordoned)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    post_says("a", POST_THROTTLED, "too many requests");
    health_set(&fixture.rig, "n", "0,1");
    pass(5000);
    ck_assert(!posts("a"));
    get_says_unbound("a");
    ck_assert_ptr_null(call_of("a"));
    ck_assert_uint_eq(fixture.counts.posts[POST_THROTTLED], 1);
    says(a, "the node has changed since the pod was placed: GPU devices of the node are unhealthy, "
            "cordoned");
    ck_assert_uint_eq(fixture.told, 1);
    ck_assert_ptr_nonnull(strstr(fixture.text, "cordoned"));
    ck_assert_int_eq(used(), 0);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    bind_fixture_close();
}

/* The same change while the bind waits for its turn on the node. */
TEST(queued_and_the_cards_are_cordoned)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    struct asker *b = ask("b");
    ck_assert(posts("a") && !posts("b"));
    health_set(&fixture.rig, "n", "0,1");
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
    ck_assert_ptr_null(call_of("b"));
    says(b, "cordoned");
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

TEST(throttled_and_nothing_has_changed)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    uint64_t first = call_of("a")->assume_ns;
    post_says("a", POST_THROTTLED, "too many requests");
    pass(5000);
    ck_assert(posts("a"));
    ck_assert_uint_gt(call_of("a")->assume_ns, first);
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
    bind_fixture_close();
}

/* A Retry-After longer than any of cardpack's back-offs counts. */
TEST(throttled_for_as_long_as_is_asked)
{
    bind_fixture_open();
    (void)ask("a");
    call_of("a")->call->retry_after_ms = 7000;
    post_says("a", POST_THROTTLED, "too many requests");
    pass(6900);
    ck_assert_ptr_null(call_of("a"));
    pass(200);
    ck_assert(posts("a"));
    post_says("a", POST_CREATED, NULL);
    bind_fixture_close();
}

/* ---- pods that wait ---- */

/* A bind in doubt: its first request has an answer, and cardpack reads the pod from time to
 * time. */
static struct asker *in_doubt(const char *pod)
{
    struct asker *a = ask(pod);
    post_says(pod, POST_UNKNOWN, "the connection was cut");
    get_fails(pod);
    while (a->answered == 0) {
        pass(100);
        if (reads(pod))
            get_fails(pod);
    }
    says(a, "is not known yet, its card stays reserved: the read has failed");
    ck_assert_int_eq(used(), 8);
    return a;
}

TEST(a_second_request_gets_a_deadline_of_its_own)
{
    bind_fixture_open();
    (void)in_doubt("a");
    uint64_t before = loop_now_ms(fixture.loop);
    struct asker *again = ask("a");
    ck_assert(reads("a")); /* at once, without the rest of the pause */
    get_fails("a");
    unsigned n = 0;
    while (again->answered == 0) {
        pass(10);
        if (!reads("a"))
            continue;
        /* The back-off starts again: 50 ms, plus at most as much at random. */
        if (n++ == 0)
            ck_assert_uint_le(loop_now_ms(fixture.loop) - before, 120);
        get_fails("a");
    }
    ck_assert_uint_ge(n, 5);
    ck_assert_uint_ge(loop_now_ms(fixture.loop) - before, TIMEOUT_MS);
    ck_assert_uint_le(loop_now_ms(fixture.loop) - before, TIMEOUT_MS + 10);
    says(again, "is not known yet");
    bind_fixture_close();
}

/* A second request sets a new deadline: cardpack sends the same Binding again. Before, it only read
 * the pod. */
TEST(a_second_request_is_served_by_another_post)
{
    bind_fixture_open();
    (void)in_doubt("a");
    while (!reads("a"))
        pass(10);
    get_says_unbound("a");
    pass(5000);
    ck_assert(!posts("a"));
    if (reads("a"))
        get_says_unbound("a");
    struct asker *again = ask("a");
    get_says_unbound("a");
    pass(200);
    ck_assert(posts("a"));
    post_says("a", POST_CREATED, NULL);
    succeeds(again);
    ck_assert_int_eq(used(), 8);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    bind_fixture_close();
}

/* Both requests get answers from one Binding. */
TEST(two_requests_share_a_binding)
{
    bind_fixture_open();
    struct asker *first = ask("a");
    pass(TIMEOUT_MS - 1000);
    struct asker *second = ask("a");
    pass(2000);
    ck_assert_uint_eq(first->answered + second->answered, 0);
    post_says("a", POST_CREATED, NULL);
    succeeds(first);
    succeeds(second);
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

/* ---- the node's turn ---- */

TEST(one_posts_on_a_node_at_a_time)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    struct asker *b = ask("b");
    ck_assert(posts("a"));
    ck_assert_ptr_null(call_of("b"));
    struct bind_load load;
    bind_look(fixture.binder, &load);
    ck_assert_uint_eq(load.ops, 2);
    ck_assert_uint_eq(load.waiting, 1);
    ck_assert_uint_eq(load.reserved, 2);
    ck_assert_uint_eq(load.in_doubt, 0);
    uint64_t first = call_of("a")->assume_ns;
    post_says("a", POST_CREATED, NULL);
    ck_assert(posts("b"));
    ck_assert_uint_gt(call_of("b")->assume_ns, first);
    post_says("b", POST_CREATED, NULL);
    succeeds(a);
    succeeds(b);
    bind_fixture_close();
}

TEST(the_oldest_is_next)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "c");
    (void)ask("a");
    (void)ask("b");
    (void)ask("c");
    post_says("a", POST_CREATED, NULL);
    ck_assert(posts("b") && call_of("c") == NULL);
    post_says("b", POST_CREATED, NULL);
    ck_assert(posts("c"));
    post_says("c", POST_CREATED, NULL);
    bind_fixture_close();
}

/* Binds post in the order of their reservations, not of their requests: a look-up delays the
 * reservation. */
TEST(who_was_looked_up_is_behind)
{
    bind_fixture_open();
    (void)ask("c");
    (void)ask("a");
    (void)ask("b");
    get_says_unbound("c");
    post_says("a", POST_CREATED, NULL);
    ck_assert(posts("b") && call_of("c") == NULL);
    post_says("b", POST_CREATED, NULL);
    ck_assert(posts("c"));
    bind_fixture_close();
}

/* A deadline ends the turn and cancels its call. */
TEST(who_gets_into_doubt_lets_the_next_one_pass)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    pass(TIMEOUT_MS - 10000);
    (void)ask("b");
    pass(9900);
    ck_assert(posts("a") && call_of("b") == NULL);
    pass(100);
    says(a, "is not known yet, its card stays reserved: the API server has not answered in time");
    ck_assert(posts("b"));
    ck_assert_ptr_null(call_of("a"));
    bind_fixture_close();
}

/* A gave up its turn when its result was in doubt. B posts at the moment when a new request wakes
 * A. */
TEST(who_is_in_doubt_waits_for_its_turn)
{
    bind_fixture_open();
    (void)in_doubt("a");
    struct asker *b = ask("b");
    ck_assert(posts("b"));
    struct asker *again = ask("a");
    get_says_unbound("a");
    pass(5000);
    ck_assert(posts("b"));
    ck_assert_ptr_null(call_of("a"));
    uint64_t first = call_of("b")->assume_ns;
    post_says("b", POST_CREATED, NULL);
    succeeds(b);
    pass(30);
    ck_assert(posts("a"));
    ck_assert_uint_gt(call_of("a")->assume_ns, first);
    post_says("a", POST_CREATED, NULL);
    succeeds(again);
    ck_assert_int_eq(used(), 16);
    bind_fixture_close();
}

/* A GET needs no turn: it runs beside another pod's Binding. */
TEST(who_is_in_doubt_reads_beside_another)
{
    bind_fixture_open();
    (void)in_doubt("a");
    (void)ask("b");
    for (unsigned i = 0; i < 300 && !reads("a"); i++)
        pass(10);
    ck_assert(posts("b") && reads("a"));
    bind_fixture_close();
}

/* ---- error texts ---- */

/* A GET after the refusal shows only that the pod is unbound: the refusal stays the answer. */
TEST(a_refusal_is_not_forgotten_for_a_read)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    post_says("a", POST_UNKNOWN, "the connection was cut");
    get_says_unbound("a");
    pass(200);
    post_says("a", POST_REFUSED, "a webhook says no");
    while (a->answered == 0) {
        if (reads("a"))
            get_says_unbound("a");
        else if (posts("a"))
            post_says("a", POST_REFUSED, "a webhook says no");
        pass(10);
    }
    says(a, "its card stays reserved: a webhook says no");
    /* Some time after the last Binding in doubt, a GET shows the final state. */
    while (bind_active(fixture.binder) > 0) {
        ck_assert(!posts("a"));
        if (reads("a"))
            get_says_unbound("a");
        pass(100);
    }
    ck_assert_uint_ge(loop_now_ms(fixture.loop), 1000000 + LIMIT_DOUBT_MS);
    ck_assert_ptr_nonnull(strstr(fixture.text, "can't bind pod ns/a to node n: a webhook says no"));
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

TEST(a_refusal_after_a_look_up)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    get_says_unbound("c");
    post_says("c", POST_REFUSED, "a webhook says no");
    get_says_unbound("c");
    says(a, "can't bind pod ns/c to node n: a webhook says no");
    ck_assert_uint_eq(fixture.told, 1);
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

/* A proxy sent the Binding twice: the pod was bound and deleted gracefully, then the second copy
 * arrived. */
TEST(a_refusal_of_a_second_copy_frees_no_card)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    post_says("a", POST_REFUSED, "Operation cannot be fulfilled: pod a is being deleted");
    ck_assert_int_eq(used(), 8);
    get_says("a", "n", "0");
    succeeds(a);
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

/* ---- the watch shows the result before the turn comes ---- */

TEST(queued_and_bound_elsewhere_meanwhile)
{
    bind_fixture_open();
    node_set(&fixture.rig, "other", "32", "2", NULL);
    struct asker *a = ask("a");
    struct asker *b = ask("b");
    pod_set(&fixture.rig, .uid = "b", .node = "other", .idx = "0");
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
    ck_assert_ptr_null(call_of("b"));
    says(b, "was bound to another node while it was being bound");
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

/* cardpack sends no Binding for a pod that holds no card any more; only a GET shows what happened
 * to the pod. */
TEST(queued_and_ended_meanwhile)
{
    bind_fixture_open();
    (void)ask("a");
    struct asker *b = ask("b");
    pod_set(&fixture.rig, .uid = "b", .node = "n", .idx = "1");
    pod_gone(&fixture.rig, "b");
    post_says("a", POST_CREATED, NULL);
    ck_assert(!posts("b") && reads("b"));
    get_says_gone("b");
    says(b, "the pod is gone");
    ck_assert_int_eq(used(), 8);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    bind_fixture_close();
}

TEST(unauthorized_and_bound_meanwhile)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    pod_set(&fixture.rig, .uid = "a", .node = "n", .idx = "0");
    post_says("a", POST_UNAUTHORIZED, "401");
    ck_assert_ptr_null(call_of("a"));
    succeeds(a);
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

TEST(who_never_had_a_turn_is_told_so)
{
    bind_fixture_open();
    (void)ask("a");
    struct asker *b = ask("b");
    pass(TIMEOUT_MS - 50);
    post_says("a", POST_CREATED, NULL);
    ck_assert_ptr_null(call_of("b")); /* too late for a Binding to complete in time */
    says(b, "the binds to this node before it took too long");
    bind_fixture_close();
}

/* After a rotation of the token cardpack sends one more Binding, not two. */
TEST(a_token_is_read_anew_once)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    post_says("a", POST_UNAUTHORIZED, "401");
    ck_assert_uint_eq(fixture.refreshes, 1);
    post_says("a", POST_UNAUTHORIZED, "401: Unauthorized");
    ck_assert_uint_eq(fixture.refreshes, 1);
    get_says_unbound("a");
    says(a, "401: Unauthorized");
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

/* The term is over: the answer is the backend's refusal, not the cache's. */
TEST(in_another_term_the_backend_refuses)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    post_says("a", POST_THROTTLED, "too many requests");
    health_set(&fixture.rig, "n", "0,1");
    fixture.term = 2;
    pass(200);
    call_of("a")->call->unsent = true;
    post_says("a", POST_REFUSED, "this replica does not lead any more");
    get_says_unbound("a");
    says(a, "does not lead any more");
    bind_fixture_close();
}

/* At shutdown every request gets an answer, and no call stays under way. */
TEST(all_are_answered_at_the_end)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    struct asker *b = ask("b");
    fixture.binder = bind_free(fixture.binder);
    says(a, "shutting down");
    says(b, "shutting down");
    ck_assert_ptr_null(call_of("a"));
    bind_fixture_close();
}

int main(void)
{
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    return unit_run();
}
