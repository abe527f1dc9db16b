/* Each test is an exchange: the requests to the API server, in order, and its answers. */
#include "events_rig.h"

/* The name of the event that the nth request (from 0) creates or patches. */
static void event_name(size_t nth, char name[64])
{
    const char *at = buf_cstr(&rig.server.heads);
    for (size_t i = 0; i <= nth; i++) {
        at = strstr(at + 1, "p.1");
        ck_assert_ptr_nonnull(at);
    }
    (void)snprintf(name, 64, "%.*s", (int)strcspn(at, " \""), at);
}

TEST(it_is_posted)
{
    static const struct script_step steps[] = {{POST_P, SCRIPT_BODY, "{}", 201, NULL}};
    serve(steps, COUNT_OF(steps));
    happens("p", "no card of node n has 8");
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 1);
    ck_assert_uint_eq(said("Content-Type: application/json\r\n"), 1);
    ck_assert_uint_eq(
        said("\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":"
             "\"ns\",\"name\":\"p\",\"uid\":\"u-1\"},\"type\":\"Warning\",\"reason\":"
             "\"FailedBinding\",\"message\":\"no card of node n has 8\""),
        1);
    ck_assert_uint_eq(said("\"count\":1}"), 1);
    ck_assert_uint_eq(rig.notes, 0);
}

TEST(again_it_is_patched)
{
    static const struct script_step steps[] = {
        {POST_P, SCRIPT_BODY, "{}", 201, NULL},
        {"PATCH /base/api/v1/namespaces/ns/events/p.1", SCRIPT_BODY, "{}", 200, NULL}};
    char made[64];
    char patched[64];
    serve(steps, COUNT_OF(steps));
    happens("p", "m");
    await_requests(1);
    happens("p", "m");
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 2);
    ck_assert_uint_eq(said("Content-Type: application/strategic-merge-patch+json\r\n"), 1);
    ck_assert_uint_eq(said("{\"count\":2,\"lastTimestamp\""), 1);
    event_name(0, made);
    event_name(1, patched);
    ck_assert_str_eq(made, patched);
}

/* Events that happen while the first request is under way make one more request, after its
 * answer. */
TEST(a_storm_is_two_requests)
{
    static const struct script_step steps[] = {{"\"count\":1}", SCRIPT_BODY, "{}", 201, NULL},
                                               {"{\"count\":20,", SCRIPT_BODY, "{}", 200, NULL}};
    serve(steps, COUNT_OF(steps));
    for (unsigned i = 0; i < 20; i++)
        happens("p", "m");
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 2);
}

/* The API server deletes Events after an hour: the patch gets 404. */
TEST(a_patch_of_nothing_makes_it_anew)
{
    static const struct script_step steps[] = {
        {POST_P, SCRIPT_BODY, "{}", 201, NULL},
        {"PATCH ", SCRIPT_BODY, STATUS("not found"), 404, NULL},
        {POST_P, SCRIPT_BODY, "{}", 201, NULL}};
    serve(steps, COUNT_OF(steps));
    happens("p", "m");
    await_requests(1);
    happens("p", "m");
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 3);
    ck_assert_uint_eq(said("\"count\":2}"), 1);
    ck_assert_uint_eq(rig.notes, 0);
}

TEST(a_namespace_that_is_gone)
{
    static const struct script_step steps[] = {
        {POST_P, SCRIPT_BODY, STATUS("namespaces \\\"ns\\\" not found"), 404, NULL}};
    serve(steps, COUNT_OF(steps));
    happens("p", "m");
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 1);
    ck_assert_uint_eq(rig.notes, 1);
}

/* An event keeps its name in all tries, so that a retry after a lost answer finds it. */
static const struct {
    const char *name;
    struct script_step steps[6];
    size_t n_steps;
    size_t again_after; /* repeats the event after this many requests; 0: not */
    bool arrives;
} tries[] = {
    {"no answer, and it is there",
     {{POST_P, SCRIPT_CLOSE, NULL, 0, NULL},
      {POST_P, SCRIPT_BODY, STATUS("already exists"), 409, NULL},
      {"PATCH ", SCRIPT_BODY, "{}", 200, NULL}},
     3,
     0,
     true},
    {"too many requests",
     {{POST_P, SCRIPT_BODY, STATUS("slow down"), 429, NULL},
      {POST_P, SCRIPT_BODY, "{}", 201, NULL},
      {"PATCH ", SCRIPT_BODY, "{}", 200, NULL}},
     3,
     2,
     true},
    {"a new token",
     {{POST_P, SCRIPT_BODY, STATUS("Unauthorized"), 401, NULL},
      {POST_P, SCRIPT_BODY, "{}", 201, NULL}},
     2,
     0,
     true},
    {"a patch, too",
     {{POST_P, SCRIPT_BODY, "{}", 201, NULL},
      {"PATCH ", SCRIPT_BODY, STATUS("leader changed"), 500, NULL},
      {"PATCH ", SCRIPT_CLOSE, NULL, 0, NULL},
      {"{\"count\":2,", SCRIPT_BODY, "{}", 200, NULL}},
     4,
     1,
     true},
    {"what has happened meanwhile goes with the next try",
     {{"\"count\":1}", SCRIPT_BODY, STATUS("ill"), 503, NULL},
      {"\"count\":2}", SCRIPT_BODY, "{}", 201, NULL}},
     2,
     1,
     true},
    {"a change has all its tries",
     {{POST_P, SCRIPT_BODY, STATUS("ill"), 503, NULL},
      {POST_P, SCRIPT_BODY, STATUS("ill"), 503, NULL},
      {POST_P, SCRIPT_BODY, STATUS("ill"), 503, NULL},
      {POST_P, SCRIPT_BODY, "{}", 201, NULL},
      {"PATCH ", SCRIPT_BODY, STATUS("ill"), 503, NULL},
      {"PATCH ", SCRIPT_BODY, "{}", 200, NULL}},
     6,
     4,
     true},
    {"enough is enough",
     {{POST_P, SCRIPT_BODY, STATUS("ill"), 503, NULL},
      {POST_P, SCRIPT_CLOSE, NULL, 0, NULL},
      {POST_P, SCRIPT_BODY, STATUS("ill"), 504, NULL},
      {POST_P, SCRIPT_BODY, STATUS("still ill"), 500, NULL}},
     4,
     0,
     false},
    {"there, and not there",
     {{POST_P, SCRIPT_BODY, STATUS("exists"), 409, NULL},
      {"PATCH ", SCRIPT_BODY, STATUS("not found"), 404, NULL},
      {POST_P, SCRIPT_BODY, STATUS("exists"), 409, NULL},
      {"PATCH ", SCRIPT_BODY, STATUS("not found"), 404, NULL}},
     4,
     0,
     false},
    {"not what we may say", {{POST_P, SCRIPT_BODY, STATUS("invalid"), 422, NULL}}, 1, 0, false},
};

/* The request has arrived; its answer is not read yet. */
static bool happens_then(void *ctx)
{
    if (!has_asked(ctx))
        return false;
    happens("p", "m");
    return true;
}

TEST_EACH(it_is_tried_again, COUNT_OF(tries))
{
    char first[64];
    char other[64];
    serve(tries[_i].steps, tries[_i].n_steps);
    happens("p", "m");
    if (tries[_i].again_after > 0) {
        rig.wanted = tries[_i].again_after;
        run_until(rig.loop, happens_then, NULL);
    }
    await_requests(tries[_i].n_steps);
    drain();
    ck_assert_uint_eq(rig.server.n_requests, tries[_i].n_steps);
    event_name(0, first);
    for (size_t i = 1; i < tries[_i].n_steps; i++) {
        event_name(i, other);
        ck_assert_str_eq(first, other);
    }
    ck_assert_uint_eq(rig.notes, tries[_i].arrives ? 0 : 1);
}

/* As with the RBAC rules of an older version: no second try, and one log line for all. */
TEST(what_is_forbidden_is_told_once)
{
    static const struct script_step no = {POST_P, SCRIPT_BODY, STATUS("events is forbidden"), 403,
                                          NULL};
    static struct script_step steps[20];
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        steps[i] = no;
    serve(steps, COUNT_OF(steps));
    for (unsigned i = 0; i < 20; i++) {
        char pod[32];
        (void)snprintf(pod, sizeof(pod), "pod-%u", i);
        happens(pod, "m");
    }
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 20);
    ck_assert_uint_eq(rig.notes, 1);
    ck_assert_uint_eq(rig.lost, 1);
    ck_assert_int_eq(rig.why.code, ERR_DENIED);
}

TEST(many_messages_become_one_event)
{
    static struct script_step steps[11];
    for (size_t i = 0; i < 10; i++)
        steps[i] = (struct script_step){POST_P, SCRIPT_BODY, "{}", 201, NULL};
    steps[10] = (struct script_step){"PATCH ", SCRIPT_BODY, "{}", 200, NULL};
    serve(steps, COUNT_OF(steps));
    for (unsigned i = 0; i < 10; i++) {
        char message[32];
        (void)snprintf(message, sizeof(message), "card %u", i);
        happens("p", message);
        await_requests(i + 1);
    }
    happens("p", "card 10");
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 11);
    ck_assert_uint_eq(said("\"message\":\"(combined from similar events): card 9\""), 1);
    ck_assert_uint_eq(said("{\"count\":2,\"lastTimestamp\""), 1);
    ck_assert_uint_eq(said("\"message\":\"(combined from similar events): card 10\""), 1);
}

TEST(what_can_not_be_is_not_sent)
{
    static const struct script_step steps[] = {{POST_P, SCRIPT_BODY, "{}", 201, NULL}};
    char name[300];
    serve(steps, COUNT_OF(steps));
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    happens(name, "m");
    happens("", "m");
    happens("p", "m");
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 1);
    ck_assert_uint_eq(said("\"name\":\"p\""), 1);
}

/* A name with a slash stays one segment of the path. */
TEST(odd_names_stay_in_their_place)
{
    static const struct script_step steps[] = {
        {"POST /base/api/v1/namespaces/a%2Fpods%2Fb/events HTTP", SCRIPT_BODY, "{}", 201, NULL},
        {"PATCH /base/api/v1/namespaces/a%2Fpods%2Fb/events/..%2Fx.1", SCRIPT_BODY, "{}", 200,
         NULL}};
    struct event_subject p = {STR("a/pods/b"), STR("../x"), STR("u")};
    serve(steps, COUNT_OF(steps));
    events_post(rig.events, &p, EVENT_NORMAL, STR("R"), STR("m"));
    events_post(rig.events, &p, EVENT_NORMAL, STR("R"), STR("m"));
    drain();
    ck_assert_uint_eq(rig.server.n_requests, 2);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
