/* bind.h: the answer to a bind request, and which pod then holds the card. */
#include "bind_fixture.h"

#include "base/log.h"
#include "fail_alloc.h"

#include <fcntl.h>

/* ---- what the watch and the reads say ---- */

/* A bind in doubt whose GET has failed; the test then sends the watch's news. */
static struct asker *unknown(void)
{
    struct asker *a = ask("a");
    post_says("a", POST_UNKNOWN, "the connection was cut");
    get_fails("a");
    ck_assert_uint_eq(a->answered, 0);
    return a;
}

TEST(what_the_watch_shows_is_not_read)
{
    bind_fixture_open();
    struct asker *a = unknown();
    pod_set(&fixture.rig, .uid = "a", .node = "n", .idx = "0");
    pass(200);
    succeeds(a);
    ck_assert_ptr_null(call_of("a"));
    ck_assert_uint_eq(fixture.counts.reads[SEEN_NOTHING], 1);
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

TEST(the_watch_shows_it_elsewhere)
{
    bind_fixture_open();
    node_set(&fixture.rig, "m", "16", "1", NULL);
    struct asker *a = unknown();
    pod_set(&fixture.rig, .uid = "a", .node = "m", .idx = "0");
    pass(200);
    says(a, "was bound to another node while it was being bound");
    ck_assert_uint_eq(fixture.told, 1);
    ck_assert_int_eq(used(), 0);
    ck_assert_int_eq(card_used(&fixture.rig, "m", 0), 8);
    bind_fixture_close();
}

/* Another client has bound the pod to the same node, but chose another card. */
TEST(a_read_shows_it_on_another_card)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    ck_assert_int_eq(card_used(&fixture.rig, "n", 0), 8);
    post_says("a", POST_ASSIGNED, "is already assigned to node");
    get_says("a", "n", "1");
    succeeds(a);
    ck_assert_int_eq(card_used(&fixture.rig, "n", 0), 0);
    ck_assert_int_eq(card_used(&fixture.rig, "n", 1), 8);
    ck_assert_uint_eq(fixture.counts.reads[SEEN_HERE], 1);
    bind_fixture_close();
}

TEST(a_read_shows_it_elsewhere)
{
    bind_fixture_open();
    node_set(&fixture.rig, "m", "16", "1", NULL);
    struct asker *a = ask("a");
    post_says("a", POST_ASSIGNED, "is already assigned to node");
    get_says("a", "m", "0");
    says(a, "can't bind pod ns/a to node n: the pod is bound to node \\\"m\\\"");
    ck_assert_int_eq(used(), 0);
    ck_assert_int_eq(card_used(&fixture.rig, "m", 0), 8);
    bind_fixture_close();
}

/* ---- a pod that is edited while it is being bound ---- */

#define OUTDATED "Precondition failed: ResourceVersion in precondition: 5"

TEST(an_edit_of_something_else_costs_a_read)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "a", .version = 5);
    struct asker *a = ask("a");
    ck_assert_uint_eq(call_of("a")->version, 5);
    post_says("a", POST_OUTDATED, OUTDATED);
    get_says_version("a", 7, "8");
    pod_set(&fixture.rig, .uid = "a", .version = 6);
    pass(200);
    ck_assert_uint_eq(call_of("a")->version, 7);
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

/* The watch shows the edit first. */
TEST(the_version_that_the_watch_shows_is_sent)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "a", .version = 5);
    struct asker *a = ask("a");
    post_says("a", POST_THROTTLED, "later");
    pod_set(&fixture.rig, .uid = "a", .version = 6);
    pass(200);
    ck_assert_uint_eq(call_of("a")->version, 6);
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
    bind_fixture_close();
}

TEST(a_larger_request_than_the_reserved_one_is_not_bound)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "a", .version = 5);
    struct asker *a = ask("a");
    post_says("a", POST_OUTDATED, OUTDATED);
    get_says_version("a", 6, "16");
    says(a, "the request of pod ns/a was changed while the pod was being bound");
    ck_assert_uint_eq(fixture.told, 1);
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

TEST(a_larger_request_that_the_watch_shows_is_not_bound)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "a", .version = 5);
    struct asker *a = ask("a");
    post_says("a", POST_NOT_SENT, "later");
    pod_set(&fixture.rig, .uid = "a", .version = 6, .mem = "16");
    pass(200);
    says(a, "the request of pod ns/a was changed while the pod was being bound");
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

/* An API server before 1.27 may still carry out the Binding in doubt: the card stays reserved. */
TEST(a_changed_request_ends_no_doubt)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "a", .version = 5);
    struct asker *a = ask("a");
    post_says("a", POST_UNKNOWN, "the connection was cut");
    get_says_version("a", 6, "16");
    pass(200);
    ck_assert_uint_eq(a->answered, 0);
    ck_assert_int_eq(used(), 8);
    ck_assert(reads("a"));
    get_says("a", "n", "0");
    succeeds(a);
    bind_fixture_close();
}

TEST(a_request_that_can_not_be_read_any_more)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    get_says_version("c", 5, "8");
    ck_assert_uint_eq(call_of("c")->version, 5);
    post_says("c", POST_OUTDATED, OUTDATED);
    get_says_version("c", 6, "x");
    says(a, "the request of pod ns/c was changed");
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

TEST(a_look_up_shows_it_elsewhere)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    get_says("c", "m", "0");
    says(a, "the pod is bound to node \\\"m\\\"");
    ck_assert_ptr_null(call_of("c"));
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

/* The token was rotated: cardpack reads the pod again with the new token. */
TEST(a_look_up_with_a_token_that_was_rotated)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    get_says_unauthorized("c");
    ck_assert_uint_eq(a->answered, 0);
    get_says_unbound("c");
    post_says("c", POST_CREATED, NULL);
    get_says("c", "n", "0"); /* the watch has not shown it yet */
    succeeds(a);
    ck_assert_uint_eq(fixture.counts.lookups, 1);
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

/* The API server refuses the new token, too. */
TEST(a_look_up_with_a_token_that_is_refused)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    get_says_unauthorized("c");
    get_says_unauthorized("c");
    says(a, "can't bind pod ns/c to node n: the API server refuses cardpack's credentials, also "
            "after they were read again: 401: Unauthorized");
    ck_assert_ptr_null(call_of("c"));
    ck_assert_int_eq(used(), 0);
    a = ask("c"); /* a later bind may read the token again */
    get_says_unauthorized("c");
    get_fails("c");
    says(a, "can't bind pod ns/c to node n: the read has failed");
    bind_fixture_close();
}

TEST(a_look_up_that_is_not_answered_after_the_token_was_read_again)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    pass(TIMEOUT_MS / 2);
    get_says_unauthorized("c");
    pass(TIMEOUT_MS / 2 - 10);
    ck_assert_uint_eq(a->answered, 0);
    pass(20);
    says(a, "the API server has not answered in time");
    ck_assert_ptr_null(call_of("c"));
    bind_fixture_close();
}

/* A GET before the Binding found the pod. A later refusal of the Binding does not show that the pod
 * is gone. */
TEST(what_was_read_before_the_binding_counts_no_more)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    get_says_unbound("c");
    call_of("c")->call->unsent = true;
    post_says("c", POST_REFUSED, "this replica does not lead any more");
    says(a, "can't bind pod ns/c to node n: this replica does not lead any more");
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

/* ---- requests that contradict each other ---- */

TEST(a_second_request_for_another_node)
{
    bind_fixture_open();
    struct asker *a = ask("a");
    says(ask_for("a", "a", "m"),
         "is being bound to node \\\"n\\\", and the outcome is not certain");
    says(ask_for("b", "a", "n"), "pod ns/a is being bound to node \\\"n\\\"");
    ck_assert_uint_eq(a->answered, 0);
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
    says(ask_for("a", "a", "m"), "is bound to node \\\"n\\\", not to \\\"m\\\"");
    succeeds(ask("a"));
    bind_fixture_close();
}

TEST(a_name_that_is_not_the_uids)
{
    bind_fixture_open();
    says(ask_for("b", "a", "n"), "PodUID a is that of pod ns/a, not of ns/b");
    ck_assert_int_eq(used(), 0);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    bind_fixture_close();
}

/* ---- when cardpack may not decide ---- */

TEST(not_ready)
{
    bind_fixture_open();
    fixture.unready = true;
    says(ask("a"), "cardpack is not ready: something is missing");
    ck_assert_int_eq(used(), 0);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    bind_fixture_close();
}

/* The term ended during the look-up. */
TEST(unready_since_the_look_up)
{
    bind_fixture_open();
    struct asker *a = ask("c");
    fixture.term = 0;
    get_says_unbound("c");
    says(a, "cardpack has just become unready");
    ck_assert_int_eq(used(), 0);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    bind_fixture_close();
}

/* The term of a decision is the term in which the card was held. */
TEST(the_term_of_the_reservation)
{
    bind_fixture_open();
    (void)ask("c");
    fixture.term = 5;
    get_says_unbound("c");
    ck_assert(posts("c"));
    ck_assert_uint_eq(call_of("c")->call->term, 5);
    bind_fixture_close();
}

/* ---- memory ---- */

/* A pod with two containers: the index alone can't express what it holds, so an allocation is
 * written. */
static void show_two_containers(const char *uid)
{
    static const struct container_view two[] = {{.name = STR("c"), .mem = STR("4")},
                                                {.name = STR("d"), .mem = STR("4")}};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = str_of(uid),
                                    .namespace = STR("ns"),
                                    .name = str_of(uid),
                                    .phase = STR("Pending"),
                                    .containers = two,
                                    .n_containers = 2,
                                    .n_mains = 2}};
    ck_assert_int_eq(rig_apply(&fixture.rig, &e), OK);
}

/* Either the Binding is under way, or the request has an answer and no card is held. */
TEST(memory_fails_in_a_request)
{
    size_t n_failed = 0;
    for (size_t nth = 1;; nth++) {
        bind_fixture_open();
        show_two_containers("a");
        struct asker *a = &fixture.askers[0];
        fail_alloc_arm(FAIL_ONCE, nth);
        (void)ask("a");
        fail_alloc_disarm();
        bool hit = fail_alloc_hit();
        if (call_of("a") != NULL) {
            post_says("a", POST_CREATED, NULL);
            ck_assert_uint_eq(a->answered, 1);
            ck_assert_int_eq(used(), 8);
        } else {
            ck_assert_uint_eq(a->answered, 1);
            ck_assert_uint_eq(bind_active(fixture.binder), 0);
            ck_assert_int_eq(used(), 0);
            n_failed++;
        }
        bind_fixture_close();
        if (!hit)
            break;
    }
    ck_assert_uint_gt(n_failed, 2);
}

/* ---- events and logs ---- */

TEST(the_load)
{
    struct bind_load load;
    bind_fixture_open();
    (void)ask("c");
    bind_look(fixture.binder, &load);
    ck_assert_uint_eq(load.ops, 1);
    ck_assert_uint_eq(load.waiting, 0);
    ck_assert_uint_eq(load.reserved, 0);
    ck_assert_uint_eq(load.oldest_ms, loop_now_ms(fixture.loop));
    pass(100);
    (void)ask("a");
    uint64_t oldest = loop_now_ms(fixture.loop);
    pass(100);
    (void)ask("b");
    bind_look(fixture.binder, &load);
    ck_assert_uint_eq(load.ops, 3);
    ck_assert_uint_eq(load.waiting, 1);
    ck_assert_uint_eq(load.reserved, 2);
    ck_assert_uint_eq(load.in_doubt, 0);
    ck_assert_uint_eq(load.oldest_ms, oldest);
    post_says("a", POST_UNKNOWN, "the connection was cut");
    bind_look(fixture.binder, &load);
    ck_assert_uint_eq(load.in_doubt, 1);
    bind_fixture_close();
}

int main(void)
{
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    return unit_run();
}
