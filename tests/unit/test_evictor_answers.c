/* What each answer to an Eviction proves; some answers are not the API server's. */
#include "evictor_rig.h"

TEST(a_right_that_is_lacking_is_told_once)
{
    SERVE(TRY("c", DENIED));
    again_soon();
    (void)ask(wants);
    run_to_failure(1);
    ck_assert_uint_eq(times_logged("no card for a pod by evictions"), 1);
    (void)ask(wants);
    run_turns(b.loop, 100); /* no request for a while */
    ck_assert_uint_eq(b.server.n_requests, 1);
}

TEST(an_older_api_server)
{
    SERVE(TRY("c", OLD), TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    const char *heads = buf_cstr(&b.server.heads);
    const char *first = strstr(heads, "policy/v1\"");
    ck_assert(first != NULL && strstr(first + 1, "policy/v1\"") == NULL);
    ck_assert(strstr(strstr(first, "policy/v1beta1\"") + 1, "policy/v1beta1\"") != NULL);
}

/* The watch has not shown the new pod yet. That is not a failure; five failures would end the
 * rescue. */
TEST(a_victim_has_another_uid_by_now)
{
    SERVE(TRY("c", OTHER_UID), TRY("c", OTHER_UID), TRY("c", OTHER_UID), TRY("c", OTHER_UID),
          TRY("c", OTHER_UID), TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 7);
}

/* The API server names the missing pod. The watch has not shown that yet. */
TEST(a_victim_is_not_found)
{
    SERVE(TRY("c", NO_POD), TRY("c", NO_POD), TRY("c", GRANTED), EVICT("c", GRANTED));
    (void)ask(wants);
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 4);
}

/* A 404 Status that names no object: the API server does not serve this version of evictions. */
TEST(there_is_no_path_for_evictions)
{
    SERVE(TRY("c", NO_PATH), TRY("c", NO_PATH));
    (void)ask(wants);
    run_to_failure(2);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_UNSERVED], 1);
}

/* A load balancer's answer, or a Status whose code differs from the answer's. */
static const struct script_step doubtful[] = {
    TRY("c", BARE(400)),
    TRY("c", BARE(403)),
    TRY("c", BARE(404)),
    TRY("c", BARE(405)),
    TRY("c", BARE(409)),
    TRY("c", BARE(422)),
    TRY("c", BARE(429)),
    TRY("c", BARE(500)),
    {PODS "c/eviction?dryRun=All ", SCRIPT_BODY,
     "{\"kind\":\"Status\",\"status\":\"Success\",\"reason\":\"Forbidden\",\"code\":403,"
     "\"message\":\"cannot create resource \\\"pods/eviction\\\"\"}",
     403, NULL},
    {PODS "c/eviction?dryRun=All ", SCRIPT_BODY,
     "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404,"
     "\"message\":\"not found\"}",
     403, NULL},
    TRY("c", FAILURE(403, "Timeout", "the webhook has not answered")),
    {PODS "c/eviction?dryRun=All ", SCRIPT_BODY,
     "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404,"
     "\"message\":\"namespaces \\\"ns\\\" not found\",\"details\":{\"kind\":\"namespaces\"}}",
     404, NULL},
};

/* It requests the same eviction again, in the same version; the answer is no refusal. */
TEST_EACH(an_answer_that_proves_nothing, COUNT_OF(doubtful))
{
    static const struct script_step granted[] = {TRY("c", GRANTED), EVICT("c", LOST),
                                                 EVICT("c", GRANTED)};
    struct script_step steps[4] = {doubtful[_i], granted[0], granted[1], granted[2]};
    steps[2] = doubtful[_i];
    steps[2].expect = PODS "c/eviction ";
    serve(steps, COUNT_OF(steps));
    (void)ask(wants);
    run_to_log("evicted for cards");
    ck_assert_uint_eq(b.server.n_requests, 4);
    ck_assert_uint_eq(times_logged("spared for a while"), 0);
    ck_assert_uint_eq(b.counts.evictions[EVICT_FAILED], 1);
    ck_assert_ptr_null(strstr(buf_cstr(&b.server.heads), "policy/v1beta1\""));
}

/* Each of these refuses to evict this victim. */
static const struct script_step refusals[] = {
    TRY("c", BUDGET),
    TRY("c", TWO_BUDGETS),
    TRY("c", WEBHOOK),
    TRY("c", FAILURE(422, "Invalid", "Eviction \\\"c\\\" is invalid")),
    TRY("c",
        FAILURE(400, "BadRequest", "admission webhook \\\"w.example\\\" does not support dry run")),
};

TEST_EACH(a_refusal_of_the_api_server, COUNT_OF(refusals))
{
    static const struct script_step others[] = {TRY("a", GRANTED), TRY("b", GRANTED)};
    const struct script_step steps[] = {refusals[_i], others[0], others[1]};
    serve(steps, COUNT_OF(steps));
    (void)ask(wants);
    run_to_log("reason=EvictingForCards");
    ck_assert_uint_eq(times_logged("spared for a while"), 1);
}

/* The request never reaches the API server; the log says so. */
TEST(a_load_balancer_that_answers_for_the_api_server)
{
    SERVE(TRY("c", BARE(403)), TRY("c", BARE(404)), TRY("c", BARE(422)), TRY("c", BARE(400)),
          TRY("c", BARE(403)));
    (void)ask(wants);
    run_to_failure(5);
    ck_assert_uint_eq(b.counts.ends[EVICT_END_FAILED], 1);
    ck_assert_uint_eq(times_logged("no answer of the API server itself to five calls in a row"), 2);
    ck_assert_uint_eq(times_logged("403: <html>403</html>"), 2);
}

int main(void)
{
    TCase *tc = unit_case("evictor_answers");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
