/* The limits of the recorder: its queue, its memory, and its end. */
#include "events_rig.h"
#include "fail_alloc.h"
#include "kube/limit.h"

/* A server that does not answer holds few calls; the queue is bounded, and closing works. */
TEST(the_queue_has_an_end)
{
    static struct script_step steps[200];
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        steps[i] = (struct script_step){POST_P, SCRIPT_BODY, "{}", 201, NULL};
    serve(steps, 0);
    for (unsigned i = 0; i < 199; i++) {
        char pod[32];
        (void)snprintf(pod, sizeof(pod), "pod-%u", i);
        happens(pod, "m");
    }
    await_requests(LIMIT_EVENTS_IN_FLIGHT);
    run_turns(rig.loop, 20);
    ck_assert_uint_eq(rig.server.n_requests, LIMIT_EVENTS_IN_FLIGHT);
    /* The connections break; the recorder goes on. */
    rig.server.steps = steps;
    rig.server.n_steps = COUNT_OF(steps);
    for (size_t i = 0; i < SCRIPT_CONNECTIONS; i++)
        script_close(&rig.server.connections[i]);
    await_requests(2 * (size_t)LIMIT_EVENTS_IN_FLIGHT);
    drain();
    ck_assert_uint_eq(rig.server.n_requests, LIMIT_EVENTS_IN_FLIGHT + LIMIT_EVENTS_QUEUED);
    ck_assert_uint_eq(said("\"name\":\"pod-127\""), 1); /* the newest event was dropped */
    ck_assert_uint_eq(said("\"name\":\"pod-128\""), 0);
    ck_assert_uint_eq(rig.notes, 0);
}

TEST(draining_has_an_end)
{
    struct err e = ERR_INIT;
    struct events_settings s;
    serve(NULL, 0);
    rig.events = events_free(rig.events);
    s = *settings();
    s.drain_ms = 1;
    ck_assert_ok(events_new(&s, &rig.events, &e), &e);
    happens("p", "m");
    await_requests(1);
    drain();
    run_turns(rig.loop, 3);
}

/* A post that waits for a retry gets one more try, at once. */
TEST(draining_waits_for_no_pause)
{
    static const struct script_step steps[] = {
        {POST_P, SCRIPT_BODY, "", 503, "Retry-After: 30\r\n"},
        {POST_P, SCRIPT_BODY, "", 503, "Retry-After: 30\r\n"}};
    serve(steps, COUNT_OF(steps));
    happens("p", "m");
    await_requests(1);
    run_turns(rig.loop, 10);
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 2);
    ck_assert_uint_eq(rig.notes, 1);
}

TEST(draining_nothing)
{
    serve(NULL, 0);
    drain();
    rig.drained = false;
    events_drain(NULL, on_drained, &rig);
    ck_assert(rig.drained);
    happens("p", "m"); /* too late, but no error */
    await_requests(1);
}

TEST(without_a_recorder)
{
    struct event_subject p = {STR("ns"), STR("p"), STR("u")};
    serve(NULL, 0);
    events_post(NULL, &p, EVENT_WARNING, STR("R"), STR("m"));
    ck_assert_ptr_null(events_free(NULL));
    run_turns(rig.loop, 3);
    ck_assert_uint_eq(rig.server.n_requests, 0);
}

/* Without memory a post is dropped or tried again; with memory it arrives. */
static enum errc post_one(void *ctx)
{
    struct err e = ERR_INIT;
    size_t *n = ctx;
    size_t before = rig.server.n_requests;
    enum errc code = events_new(settings(), &rig.events, &e);
    ck_assert_int_eq(code == OK, rig.events != NULL);
    if (code != OK)
        return code;
    happens("p", "m");
    fail_alloc_disarm();
    drain();
    rig.drained = false;
    rig.events = events_free(rig.events);
    *n += rig.server.n_requests - before;
    if (fail_alloc_hit())
        return ERR_NOMEM;
    return rig.server.n_requests == before + 1 ? OK : ERR_INTERNAL;
}

TEST(memory_runs_out)
{
    static struct script_step steps[100];
    size_t arrived = 0;
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        steps[i] = (struct script_step){POST_P, SCRIPT_BODY, "{}", 201, NULL};
    serve(steps, COUNT_OF(steps));
    rig.events = events_free(rig.events);
    ck_assert_uint_ge(fail_alloc_each(post_one, &arrived), 5);
    ck_assert_uint_gt(arrived, 2); /* more than the two in runs without a failure */
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
