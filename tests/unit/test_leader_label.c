/* The leader's label against an API server with a few pods. */
#include "daemon/backend/leader_label.h"

#include "api/request.h"
#include "base/log.h"
#include "daemon/backend/leader_label_step.h"
#include "fail_alloc.h"
#include "fake_net.h"

#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#define PODS  3
#define OWN   0
#define ROUND 100 /* ms that let every call of a round end */

static struct {
    struct loop *loop;
    struct kube_api *api;
    struct leader_label *label;
    bool leads;
    int log;

    struct {
        const char *name;
        const char *uid; /* NULL: there is no such pod */
        char value[64];  /* of the label; "": none */
    } pods[PODS];

    unsigned patches; /* requests since the start */
    unsigned lists;
    unsigned refuse;      /* answers with this status */
    const char *reason;   /* of it; NULL: without a Status */
    const char *why;      /* its message */
    const char *refused;  /* the method that is refused; NULL: all */
    bool lost;            /* carries requests out, without an answer */
    bool silent;          /* does not answer */
    bool drops;           /* answers 200, and leaves the label out */
    unsigned uid_status;  /* how it refuses another UID */
    const char *uid_says; /* the message of that */
} t;

void api_fail(const char *file, int line, const char *why)
{
    ck_abort_msg("%s:%d: %s", file, line, why);
}

/* ---- the API server ---- */

static void say_status(struct http_call *c, unsigned code, const char *reason, const char *why)
{
    struct text s = {.p = NULL};
    status_write(&s, code, reason, why, ",\"details\":{\"kind\":\"pods\"}");
    text_put(&s, (struct str){"", 1});
    fake_answer(c, code, s.p);
    text_done(&s);
}

static void label_pod(int i, const char *value)
{
    (void)snprintf(t.pods[i].value, sizeof(t.pods[i].value), "%s", value);
}

static int pod_of(struct str url)
{
    for (int i = 0; i < PODS; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/api/v1/namespaces/ns/pods/%s/status", t.pods[i].name);
        if (t.pods[i].uid != NULL && str_ends(url, str_of(path)))
            return i;
    }
    return -1;
}

static json_t *pod_json(int i)
{
    json_t *labels = json_object();
    json_object_set_new(labels, "app", json_string("cardpack"));
    if (t.pods[i].value[0] != '\0')
        json_object_set_new(labels, LEADER_LABEL_KEY, json_string(t.pods[i].value));
    return json_pack("{s:{s:s, s:s, s:o}, s:{}}", "metadata", "name", t.pods[i].name, "uid",
                     t.pods[i].uid, "labels", labels, "spec");
}

static void say_json(struct http_call *c, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    ck_assert_ptr_nonnull(text);
    if (t.lost)
        fake_land(c, HTTP_UNKNOWN, 0);
    else
        fake_answer(c, 200, text);
    free(text);
    json_decref(body);
}

static void serve_list(struct http_call *c)
{
    t.lists++;
    ck_assert(str_ends(c->url, STR("/api/v1/namespaces/ns/pods?labelSelector="
                                   "cardpack.io%2Fleader-of%3Dlease&limit=20")));
    json_t *items = json_array();
    for (int i = 0; i < PODS; i++) {
        if (t.pods[i].uid != NULL && strcmp(t.pods[i].value, "lease") == 0)
            json_array_append_new(items, pod_json(i));
    }
    say_json(c, json_pack("{s:s, s:{}, s:o}", "kind", "PodList", "metadata", "items", items));
}

static void serve_patch(struct http_call *c)
{
    t.patches++;
    ck_assert_str_is(c->content_type, "application/merge-patch+json");
    int i = pod_of(c->url);
    if (i < 0) {
        say_status(c, 404, "NotFound", "pods not found");
        return;
    }
    json_t *patch = json_loadb(c->body.p, c->body.n, 0, NULL);
    const char *uid = NULL;
    json_t *value = NULL;
    ck_assert_int_eq(json_unpack_ex(patch, NULL, JSON_STRICT, "{s:{s:s, s:{s:o}}}", "metadata",
                                    "uid", &uid, "labels", LEADER_LABEL_KEY, &value),
                     0);
    if (strcmp(uid, t.pods[i].uid) != 0) {
        json_decref(patch);
        say_status(c, t.uid_status, "Conflict", t.uid_says);
        return;
    }
    if (!t.drops)
        label_pod(i, json_is_null(value) ? "" : json_string_value(value));
    json_decref(patch);
    say_json(c, pod_json(i));
}

static void serve_one(struct http_call *c)
{
    if (c->url.n == 0) { /* no memory for it */
        fake_land(c, HTTP_NOT_SENT, 0);
        return;
    }
    if (t.refuse == 0 || (t.refused != NULL && strcmp(t.refused, c->method) != 0)) {
        if (strcmp(c->method, "PATCH") == 0)
            serve_patch(c);
        else
            serve_list(c);
        return;
    }
    t.patches += strcmp(c->method, "PATCH") == 0 ? 1 : 0;
    t.lists += strcmp(c->method, "GET") == 0 ? 1 : 0;
    if (t.reason != NULL)
        say_status(c, t.refuse, t.reason, t.why);
    else
        fake_answer(c, t.refuse, "<html>");
}

static void pass(uint64_t ms)
{
    for (uint64_t at = 0; at <= ms; at += 10) {
        fake_turn(t.loop);
        while (!t.silent && !list_is_empty(&fake_calls))
            serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
        t.loop->clock_ms += 10;
    }
}

static bool leads(void *ctx)
{
    (void)ctx;
    return t.leads;
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    t.pods[0].name = "cardpack-a";
    t.pods[1].name = "cardpack-b";
    t.pods[2].name = "cardpack-c";
    t.pods[0].uid = "uid-a";
    t.pods[1].uid = "uid-b";
    t.uid_status = 409;
    t.uid_says = "Precondition failed: UID in precondition: x, UID in object meta: y";
    t.log = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ge(t.log, 0);
    log_setup(t.log, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    t.loop = fake_loop();
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
}

static enum errc try_open(struct err *e)
{
    struct leader_label_settings s = {.loop = t.loop,
                                      .api = t.api,
                                      .namespace = STR("ns"),
                                      .pod = STR("cardpack-a"),
                                      .uid = STR("uid-a"),
                                      .lease = STR("lease"),
                                      .leads = leads};
    return leader_label_new(&s, &t.label, e);
}

static void open_label(void)
{
    struct err e = ERR_INIT;
    ck_assert_ok(try_open(&e), &e);
}

static void tear_down(void)
{
    fail_alloc_disarm();
    t.label = leader_label_free(t.label);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    (void)close(t.log);
}

static void lead(bool yes)
{
    t.leads = yes;
    leader_label_look(t.label);
}

static void labelled(const char *a, const char *b, const char *c)
{
    ck_assert_str_eq(t.pods[0].value, a);
    ck_assert_str_eq(t.pods[1].value, b);
    ck_assert_str_eq(t.pods[2].value, c);
}

/* How often the log has this text. */
static unsigned told(const char *text)
{
    static char log[65536];
    unsigned n = 0;
    ssize_t size = pread(t.log, log, sizeof(log) - 1, 0);
    ck_assert_int_ge(size, 0);
    log[size] = '\0';
    for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
        n++;
    return n;
}

static void trouble_is(const char *part)
{
    struct str trouble = leader_label_trouble(t.label);
    ck_assert_msg(part[0] == '\0' ? trouble.n == 0
                                  : memmem(trouble.p, trouble.n, part, strlen(part)) != NULL,
                  "\"%.*s\" is not \"%s\"", STR_ARG(trouble), part);
}

START_TEST(set_and_removed)
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

END_TEST

/* Nothing tells the module that the Lease has expired by the clock. */
START_TEST(looks_by_itself)
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

END_TEST

START_TEST(left_by_an_earlier_process)
{
    label_pod(OWN, "lease");
    open_label();
    pass(ROUND);
    labelled("", "", "");
}

END_TEST

START_TEST(former_leaders)
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

END_TEST

/* The leader of another Lease is in the same namespace. */
START_TEST(another_lease)
{
    label_pod(1, "other-lease");
    open_label();
    lead(true);
    pass(ROUND);
    labelled("lease", "other-lease", "");
}

END_TEST

START_TEST(a_former_leader_that_disappears)
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

END_TEST

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
START_TEST(refused)
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

END_TEST

/* The list is refused: the label is set nevertheless. */
START_TEST(may_not_list)
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

END_TEST

static const struct {
    unsigned status;
    const char *says;
} replaced[] = {
    {409, "Precondition failed: UID in precondition: x, UID in object meta: y"},
    {422, "Pod \"p\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable"},
};

/* The own pod was deleted, and another one has its name: that one is never labelled. */
START_TEST(the_pod_is_replaced)
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

END_TEST

START_TEST(the_pod_is_gone)
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

END_TEST

/* The answers are lost, and the requests have taken effect. */
START_TEST(answers_are_lost)
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

END_TEST

/* The Lease is lost while the call is under way: it is not canceled, and the next one follows it.
 */
START_TEST(lost_in_a_call)
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

END_TEST

START_TEST(an_answer_without_the_label)
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

END_TEST

static const char *const garbled[] = {
    "", "{", "[]", "{\"items\":{}}", "{\"items\":[{}]}", "{\"items\":[{\"metadata\":null}]}"};

/* A list that can't be read, or that lacks the own pod, is tried again. */
START_TEST(garbled_lists)
{
    open_label();
    t.silent = true;
    lead(true);
    for (unsigned i = 0; fake_waiting("GET", "pods?") == NULL; i++) {
        ck_assert_uint_lt(i, 10);
        pass(0);
        if (fake_waiting("PATCH", "pods") != NULL)
            serve_one(fake_find("PATCH", "pods"));
    }
    fake_answer(fake_find("GET", "pods?"), 200, garbled[_i]);
    t.silent = false;
    pass(1000);
    labelled("lease", "", "");
    trouble_is("");
}

END_TEST

static enum errc opens(void *ctx)
{
    struct err e = ERR_INIT;
    (void)ctx;
    enum errc code = try_open(&e);
    ck_assert((code == OK) == (t.label != NULL));
    t.label = leader_label_free(t.label);
    return code;
}

START_TEST(no_memory_to_open)
{
    ck_assert_uint_ge(fail_alloc_each(opens, NULL), 4);
}

END_TEST

/* A call that lacks memory is repeated. */
START_TEST(no_memory_for_a_call)
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

END_TEST

int main(void)
{
    Suite *suite = suite_create("leader_label");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, set_and_removed);
    tcase_add_test(tc, looks_by_itself);
    tcase_add_test(tc, left_by_an_earlier_process);
    tcase_add_test(tc, former_leaders);
    tcase_add_test(tc, another_lease);
    tcase_add_loop_test(tc, a_former_leader_that_disappears, 0, 2);
    tcase_add_loop_test(tc, refused, 0, (int)COUNT_OF(refusals));
    tcase_add_test(tc, may_not_list);
    tcase_add_loop_test(tc, the_pod_is_replaced, 0, (int)COUNT_OF(replaced));
    tcase_add_test(tc, the_pod_is_gone);
    tcase_add_test(tc, answers_are_lost);
    tcase_add_test(tc, lost_in_a_call);
    tcase_add_test(tc, an_answer_without_the_label);
    tcase_add_loop_test(tc, garbled_lists, 0, (int)COUNT_OF(garbled));
    tcase_add_test(tc, no_memory_to_open);
    tcase_add_loop_test(tc, no_memory_for_a_call, 0, 30);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
