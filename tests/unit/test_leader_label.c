/* When the leader's label is set and removed, and what the API server can answer. */
#include "leader_label_rig.h"

TEST(set_and_removed)
{
    open_label();
    pass(ROUND);
    labelled("", "", "");
    ck_assert_uint_eq(t.patches, 1); /* a follower removes what an earlier process may have left */
    lead(true);
    pass(ROUND);
    labelled("lease", "", "");
    ck_assert_uint_eq(t.lists, 1);
    trouble_is("");
    pass(LEADER_LABEL_CHECK_MS);
    ck_assert(t.patches == 2 && t.lists == 2);
    lead(false);
    pass(ROUND);
    labelled("", "", "");
    pass(3 * LEADER_LABEL_CHECK_MS);
    ck_assert(t.patches == 3 && t.lists == 2);
    ck_assert_uint_eq(told("\"this pod has the leader's label\" pod="), 1);
    ck_assert_uint_eq(told("this pod has the leader's label no more"), 1);
    ck_assert_uint_eq(told("level=warn"), 0);
}

/* Nothing tells the module that the Lease has expired by the clock. */
TEST(looks_by_itself)
{
    open_label();
    pass(ROUND);
    t.leads = true;
    pass(500 + ROUND);
    labelled("lease", "", "");
    t.leads = false;
    pass(500 + ROUND);
    labelled("", "", "");
}

TEST(left_by_an_earlier_process)
{
    label_pod(OWN, "lease");
    open_label();
    pass(ROUND);
    labelled("", "", "");
}

TEST(former_leaders)
{
    t.pods[2].uid = "uid-c";
    label_pod(1, "lease");
    label_pod(2, "lease");
    open_label();
    lead(true);
    pass(ROUND);
    labelled("lease", "", "");
    ck_assert_uint_eq(told("removed from another pod\" pod=cardpack-b"), 1);
    ck_assert_uint_eq(told("removed from another pod\" pod=cardpack-c"), 1);
}

/* The leader of another Lease is in the same namespace. */
TEST(another_lease)
{
    label_pod(1, "other-lease");
    open_label();
    lead(true);
    pass(ROUND);
    labelled("lease", "other-lease", "");
}

TEST_EACH(a_former_leader_that_disappears, 2)
{
    label_pod(1, "lease");
    open_label();
    pass(ROUND);
    lead(true);
    fake_turn(t.loop);
    while (fake_waiting("PATCH", "cardpack-b") == NULL)
        serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
    /* Or: a StatefulSet's next pod, with a label of its own. */
    t.pods[1].uid = _i == 0 ? NULL : "uid-new";
    serve_one(fake_find("PATCH", "cardpack-b"));
    ck_assert_str_eq(t.pods[1].value, "lease");
    pass(1000);
    ck_assert_uint_eq(told("level=warn"), 0);
    labelled("lease", _i == 0 ? "lease" : "", "");
}

static const struct {
    unsigned status;
    const char *reason;
    const char *why;
    const char *trouble;
} refusals[] = {
    {403, "Forbidden", "pods \"cardpack-a\" is forbidden",
     "no right to patch pods/status in namespace \"ns\": "},
    {403, NULL, NULL, "403"},
    {404, NULL, NULL, "404"},
    {409, "Conflict", "the object has been modified", "modified"},
    {422, "Invalid", "metadata.labels: Invalid value", "Invalid value"},
    {429, "TooManyRequests", "slowly", "slowly"},
    {500, "InternalError", "etcd is away", "etcd is away"},
    {503, NULL, NULL, "503"},
};

/* One line in the log, the reason for /readyz, few requests; and it goes on when it can. */
TEST_EACH(refused, COUNT_OF(refusals))
{
    open_label();
    pass(ROUND);
    unsigned before = t.patches;
    t.refuse = refusals[_i].status;
    t.reason = refusals[_i].reason;
    t.why = refusals[_i].why;
    lead(true);
    pass(60000);
    labelled("", "", "");
    trouble_is(refusals[_i].trouble);
    ck_assert_uint_eq(told("level=warn msg=\"the leader's label can't be written\""), 1);
    ck_assert_uint_eq(told(refusals[_i].trouble[0] == 'n' ? "no right to patch" : "error="), 1);
    ck_assert_uint_ge(t.patches - before, 7);
    ck_assert_uint_le(t.patches - before, 12);
    t.refuse = 0;
    pass(2 * LEADER_LABEL_RETRY_MAX_MS);
    labelled("lease", "", "");
    trouble_is("");
    ck_assert_uint_eq(told("the leader's label can be written again"), 1);
    t.refuse = refusals[_i].status == 404 ? 500 : refusals[_i].status;
    lead(false);
    pass(ROUND);
    labelled("lease", "", "");
    t.refuse = 0;
    pass(2 * LEADER_LABEL_RETRY_MAX_MS);
    labelled("", "", "");
}

/* The list is refused: the label is set nevertheless. */
TEST(may_not_list)
{
    t.refuse = 403;
    t.reason = "Forbidden";
    t.why = "forbidden";
    t.refused = "GET";
    open_label();
    lead(true);
    pass(1000);
    labelled("lease", "", "");
    trouble_is("");
    ck_assert_uint_eq(told("no right to list pods in namespace \\\"ns\\\""), 1);
}

static const struct {
    unsigned status;
    const char *says;
} replaced[] = {
    {409, "Precondition failed: UID in precondition: x, UID in object meta: y"},
    {422, "Pod \"p\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable"},
};

/* The own pod was deleted, and another one has its name: that one is never labelled. */
TEST_EACH(the_pod_is_replaced, COUNT_OF(replaced))
{
    t.uid_status = replaced[_i].status;
    t.uid_says = replaced[_i].says;
    open_label();
    pass(ROUND);
    t.pods[OWN].uid = "uid-next";
    lead(true);
    pass(60000);
    labelled("", "", "");
    trouble_is(replaced[_i].says);
    ck_assert_uint_eq(told("level=warn"), 1);
    unsigned before = t.patches;
    label_pod(OWN, "lease"); /* by the next pod itself */
    lead(false);
    pass(60000);
    labelled("lease", "", "");
    ck_assert_uint_eq(t.patches, before + 1);
}

TEST(the_pod_is_gone)
{
    open_label();
    pass(ROUND);
    t.pods[OWN].uid = NULL;
    lead(true);
    pass(1000);
    trouble_is("404");
    lead(false);
    pass(2 * LEADER_LABEL_RETRY_MAX_MS);
    trouble_is("");
}

/* The answers are lost, and the requests have taken effect. */
TEST(answers_are_lost)
{
    open_label();
    pass(ROUND);
    t.lost = true;
    lead(true);
    pass(1000);
    labelled("lease", "", "");
    lead(false);
    pass(2000);
    labelled("", "", "");
    t.lost = false;
    pass(2 * LEADER_LABEL_RETRY_MAX_MS);
    ck_assert(list_is_empty(&fake_calls));
}

/* The Lease is lost while the call is under way: it is not canceled, and the next one follows it.
 */
TEST(lost_in_a_call)
{
    open_label();
    pass(ROUND);
    t.silent = true;
    lead(true);
    pass(ROUND);
    struct http_call *add = fake_find("PATCH", "cardpack-a");
    lead(false);
    pass(ROUND);
    ck_assert_ptr_eq(LIST_FIRST(&fake_calls, struct http_call, link), add);
    t.silent = false;
    pass(ROUND);
    labelled("", "", "");
}

TEST(an_answer_without_the_label)
{
    t.drops = true;
    open_label();
    lead(true);
    pass(1000);
    trouble_is("without the label");
    t.drops = false;
    pass(2 * LEADER_LABEL_RETRY_MAX_MS);
    labelled("lease", "", "");
    trouble_is("");
}

static enum errc opens(void *ctx)
{
    struct err e = ERR_INIT;
    (void)ctx;
    enum errc code = try_open(&e);
    ck_assert((code == OK) == (t.label != NULL));
    t.label = leader_label_free(t.label);
    return code;
}

TEST(no_memory_to_open)
{
    ck_assert_uint_ge(fail_alloc_each(opens, NULL), 4);
}

/* A call that lacks memory is repeated. */
TEST_EACH(no_memory_for_a_call, 30)
{
    label_pod(1, "lease");
    open_label();
    fail_alloc_arm(FAIL_ONCE, (size_t)_i + 1);
    lead(true);
    pass(1000);
    fail_alloc_disarm();
    pass(2000);
    labelled("lease", "", "");
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
