/* The lock of a node against an API server with one node and the pod that a lock names. */
#include "daemon/bind/node_lock.h"

#include "api/request.h"
#include "core/dialect/dialect.h"
#include "fake_net.h"

#include <jansson.h>

#define NOW_NS UINT64_C(1700000000123456789)
#define OURS   "2023-11-14T22:13:20.123456789Z,ns,p"

static struct {
    struct loop *loop;
    struct kube_api *api;
    struct node_lock lock;
    unsigned ends;

    char value[256]; /* of the lock; "": none */
    unsigned version;
    /* The pod that the lock names: its node; "": not bound yet; "ended": on n; "no card": it asks
     * for none; NULL: there is none. */
    const char *pod;
    unsigned gets;
    unsigned patches;
    bool lost; /* carries the next PATCH out, without an answer */
    bool late; /* the next PATCH is carried out only by arrive(), without an answer */
    char late_body[512];
    bool unsent;        /* the next PATCH reaches no server */
    bool other;         /* another client changes the node before the next PATCH */
    const char *takes;  /* that client takes the lock with this value */
    unsigned forbidden; /* PATCHes are refused with this status */
    const char *json;   /* of the node; NULL: as `value` says */
    size_t containers;  /* further ones of the pod */
} t;

void api_fail(const char *file, int line, const char *why)
{
    ck_abort_msg("%s:%d: %s", file, line, why);
}

static void say_status(struct http_call *c, unsigned code, const char *reason, const char *kind)
{
    struct text s = {.p = NULL};
    char details[64];
    (void)snprintf(details, sizeof(details), ",\"details\":{\"kind\":\"%s\"}", kind);
    status_write(&s, code, reason, "no", details);
    text_put(&s, (struct str){"", 1});
    fake_answer(c, code, s.p);
    text_done(&s);
}

static void say_node(struct http_call *c)
{
    char version[16];
    if (t.json != NULL) {
        fake_answer(c, 200, t.json);
        return;
    }
    (void)snprintf(version, sizeof(version), "%u", t.version);
    json_t *notes = json_pack("{s:s}", "other", "note");
    if (t.value[0] != '\0')
        json_object_set_new(notes, dialect_facts(t.lock.dialect)->lock.p, json_string(t.value));
    json_t *node = json_pack("{s:{s:s, s:s, s:o}}", "metadata", "name", "n", "resourceVersion",
                             version, "annotations", notes);
    char *text = json_dumps(node, JSON_COMPACT);
    fake_answer(c, 200, text);
    free(text);
    json_decref(node);
}

static void say_pod(struct http_call *c)
{
    bool ended = strcmp(t.pod, "ended") == 0;
    bool plain = strcmp(t.pod, "no card") == 0;
    struct buf text;
    buf_init(&text, LIMIT_OBJECT_BYTES);
    buf_printf(&text,
               "{\"metadata\":{\"namespace\":\"other\",\"name\":\"q\",\"uid\":\"u\"},\"spec\":{"
               "\"nodeName\":\"%s\",\"containers\":[",
               ended || plain ? "n" : t.pod);
    for (size_t i = 0; i <= t.containers; i++)
        buf_printf(&text, "%s{\"name\":\"c%zu\",\"resources\":{\"limits\":{\"%s\":\"1\"}}}",
                   i == 0 ? "" : ",", i, plain ? "cpu" : "nvidia.com/gpu");
    buf_printf(&text, "]},\"status\":{\"phase\":\"%s\"}}", ended ? "Failed" : "Pending");
    fake_answer(c, 200, buf_cstr(&text));
    buf_done(&text);
}

static void carry_out(const struct http_call *c)
{
    json_t *patch = json_loadb(c->body.p, c->body.n, 0, NULL);
    json_t *value = NULL;
    const char *version = NULL;
    ck_assert_int_eq(json_unpack_ex(patch, NULL, JSON_STRICT, "{s:{s:s, s:{s:o}}}", "metadata",
                                    "resourceVersion", &version, "annotations",
                                    dialect_facts(t.lock.dialect)->lock.p, &value),
                     0);
    (void)snprintf(t.value, sizeof(t.value), "%s",
                   json_is_null(value) ? "" : json_string_value(value));
    t.version++;
    json_decref(patch);
}

static bool names_version(const struct http_call *c)
{
    char part[64];
    int n = snprintf(part, sizeof(part), "\"resourceVersion\":\"%u\"", t.version);
    return memmem(c->body.p, c->body.n, part, (size_t)n) != NULL;
}

/* The late PATCH arrives. Returns whether it was carried out. */
static bool arrive(void)
{
    struct http_call c = {.body = str_of(t.late_body)};
    ck_assert_uint_gt(c.body.n, 0);
    if (!names_version(&c))
        return false;
    carry_out(&c);
    return true;
}

static void serve_patch(struct http_call *c)
{
    t.patches++;
    ck_assert_str_is(c->content_type, "application/merge-patch+json");
    if (t.other) {
        t.other = false;
        t.version++;
        (void)snprintf(t.value, sizeof(t.value), "%s", t.takes);
    }
    if (t.late) {
        t.late = false;
        (void)snprintf(t.late_body, sizeof(t.late_body), "%.*s", STR_ARG(c->body));
        fake_land(c, HTTP_UNKNOWN, 0);
    } else if (t.unsent) {
        t.unsent = false;
        fake_land(c, HTTP_NOT_SENT, 0);
    } else if (t.forbidden != 0) {
        say_status(c, t.forbidden, "Forbidden", "nodes");
    } else if (!names_version(c)) {
        say_status(c, 409, "Conflict", "nodes");
    } else {
        carry_out(c);
        if (t.lost) {
            t.lost = false;
            fake_land(c, HTTP_UNKNOWN, 0);
        } else {
            say_node(c);
        }
    }
}

static void serve_one(struct http_call *c)
{
    if (strcmp(c->method, "PATCH") == 0) {
        ck_assert(c->may_send == NULL || c->may_send(c));
        serve_patch(c);
    } else if (str_ends(c->url, STR("/api/v1/nodes/n"))) {
        t.gets++;
        say_node(c);
    } else {
        ck_assert_msg(str_ends(c->url, STR("/api/v1/namespaces/other/pods/q")), "%.*s",
                      STR_ARG(c->url));
        if (t.pod != NULL)
            say_pod(c);
        else
            say_status(c, 404, "NotFound", "pods");
    }
}

static void pass(void)
{
    for (unsigned i = 0; i < 20; i++) {
        fake_turn(t.loop);
        while (!list_is_empty(&fake_calls))
            serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
    }
}

static void ended(struct node_lock *l)
{
    (void)l;
    t.ends++;
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    dialects_use(DIALECTS_ALL);
    t.version = 7;
    t.loop = fake_loop();
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
    t.lock = (struct node_lock){.api = t.api,
                                .node = STR("n"),
                                .dialect = DIALECT_HAMI,
                                .namespace = STR("ns"),
                                .name = STR("p"),
                                .done = ended};
    node_lock_init(&t.lock);
}

static void tear_down(void)
{
    node_lock_done(&t.lock);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
}

static void lock_is(const char *value)
{
    (void)snprintf(t.value, sizeof(t.value), "%s", value);
}

static void take_is(enum node_lock_result result, const char *value)
{
    unsigned ends = t.ends;
    node_lock_take(&t.lock, NOW_NS);
    pass();
    ck_assert_uint_eq(t.ends, ends + 1);
    ck_assert_msg(t.lock.result == result, "%d: %s", t.lock.result, t.lock.err.text);
    ck_assert_str_eq(t.value, value);
}

static void release_leaves(const char *value)
{
    unsigned ends = t.ends;
    node_lock_release(&t.lock);
    pass();
    ck_assert_uint_eq(t.ends, ends + 1);
    ck_assert_int_eq(t.lock.result, NODE_LOCK_TAKEN);
    ck_assert_str_eq(t.value, value);
}

static const struct {
    enum dialect dialect;
    const char *value;
    const char *pod; /* as t.pod */
    enum node_lock_result result;
} locks[] = {
    {DIALECT_HAMI, "", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "", NULL, NODE_LOCK_TAKEN},
    /* Of another pod: alive, and gone. */
    {DIALECT_HAMI, "2023-11-14T22:13:10Z,other,q", "n", NODE_LOCK_HELD},
    {DIALECT_HAMI, "2023-11-14T22:13:10Z,other,q", NULL, NODE_LOCK_TAKEN},
    /* Without a name, only time ends it: after five minutes. */
    {DIALECT_VGPU, "2023-11-14T22:13:10Z", NULL, NODE_LOCK_HELD},
    {DIALECT_HAMI, "2023-11-14T22:13:10Z", NULL, NODE_LOCK_HELD},
    {DIALECT_VGPU, "2023-11-14T22:08:20Z", NULL, NODE_LOCK_HELD},
    {DIALECT_VGPU, "2023-11-14T22:08:19Z", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "2023-11-15T00:08:20+02:00", NULL, NODE_LOCK_HELD},
    {DIALECT_VGPU, "2023-11-15T00:08:19+02:00", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "2023-11-14T16:38:20-05:30", NULL, NODE_LOCK_HELD},
    {DIALECT_VGPU, "2023-11-14T16:38:19-05:30", NULL, NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "2023-11-15T00:13:10+02:00,other,q", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "2023-11-14T16:38:19*05:30", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "1970-01-01T00:08:19+02:00", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "+02:00", NULL, NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "2023-11-14T22:08:19Z,other,q", "n", NODE_LOCK_TAKEN},
    /* This pod's, from an earlier bind. */
    {DIALECT_HAMI, "2023-11-14T22:13:10Z,ns,p", "n", NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "soon,other,q", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "soon", NULL, NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "x", NULL, NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "x,other,q", "n", NODE_LOCK_TAKEN},
    {DIALECT_HAMI, ",other,q", "n", NODE_LOCK_TAKEN},
    /* In the future: clocks may differ by as much as a lock may last. */
    {DIALECT_HAMI, "2023-11-14T22:18:20Z,other,q", "n", NODE_LOCK_HELD},
    {DIALECT_HAMI, "2023-11-14T22:18:21Z,other,q", "n", NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "2023-11-14T22:18:20Z", NULL, NODE_LOCK_HELD},
    {DIALECT_VGPU, "2023-11-14T22:18:21Z", NULL, NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "2100-01-01T00:00:00Z,other,q", "n", NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "2100-01-01T00:00:00Z", NULL, NODE_LOCK_TAKEN},
    {DIALECT_VGPU, "9999-01-01T00:00:00Z", NULL, NODE_LOCK_TAKEN},
    /* The pod has ended, is on another node, was not bound for long, or has no card. */
    {DIALECT_HAMI, "2023-11-14T22:13:10Z,other,q", "ended", NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "2023-11-14T22:13:10Z,other,q", "elsewhere", NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "2023-11-14T22:12:50Z,other,q", "", NODE_LOCK_HELD},
    {DIALECT_HAMI, "2023-11-14T22:12:49Z,other,q", "", NODE_LOCK_TAKEN},
    {DIALECT_HAMI, "2023-11-14T22:12:49Z,other,q", "n", NODE_LOCK_HELD},
    {DIALECT_HAMI, "2023-11-14T22:13:10Z,other,q", "no card", NODE_LOCK_TAKEN},
};

TEST_EACH(takes_a_lock_that_is_free, COUNT_OF(locks))
{
    char before[sizeof(t.value)];
    bool hami = locks[_i].dialect == DIALECT_HAMI;
    t.lock.dialect = locks[_i].dialect;
    t.pod = locks[_i].pod;
    lock_is(locks[_i].value);
    memcpy(before, t.value, sizeof(before));
    if (locks[_i].result == NODE_LOCK_TAKEN) {
        take_is(NODE_LOCK_TAKEN, hami ? OURS : "2023-11-14T22:13:20.123456789Z");
        ck_assert_uint_eq(t.patches, 1);
        release_leaves("");
        return;
    }
    take_is(locks[_i].result, before);
    ck_assert_uint_eq(t.patches, 0);
    ck_assert_msg(strstr(t.lock.err.text, "node n is locked") != NULL, "%s", t.lock.err.text);
    release_leaves(before);
}

/* The answer is lost: a read shows that the lock is there, and another PATCH is not sent. */
TEST(an_unknown_outcome_is_read)
{
    t.lost = true;
    take_is(NODE_LOCK_TAKEN, OURS);
    ck_assert_uint_eq(t.patches, 1);
    ck_assert_uint_eq(t.gets, 2);
    t.lost = true;
    release_leaves("");
    ck_assert_uint_eq(t.patches, 2);
}

TEST(a_patch_that_was_not_sent_is_sent_again)
{
    t.unsent = true;
    take_is(NODE_LOCK_TAKEN, OURS);
    ck_assert_uint_eq(t.patches, 2);
}

/* Between the GET and the PATCH the node changes: without a lock, and with one. */
TEST(never_replaces_a_lock_that_it_has_not_seen)
{
    t.other = true;
    t.takes = "";
    take_is(NODE_LOCK_TAKEN, OURS);
    ck_assert_uint_eq(t.patches, 2);
    release_leaves("");
    t.other = true;
    t.pod = "n";
    t.takes = "2023-11-14T22:13:20Z,other,q";
    take_is(NODE_LOCK_HELD, t.takes);
    release_leaves(t.takes);
}

/* A second try of the same bind: the lock is there already. */
TEST(the_same_bind_takes_it_again)
{
    take_is(NODE_LOCK_TAKEN, OURS);
    node_lock_take(&t.lock, NOW_NS + 1000);
    pass();
    ck_assert_int_eq(t.lock.result, NODE_LOCK_TAKEN);
    ck_assert_str_eq(t.value, OURS);
    ck_assert_uint_eq(t.patches, 1);
}

TEST(a_missing_right_is_told)
{
    t.forbidden = 403;
    take_is(NODE_LOCK_FAILED, "");
    ck_assert_uint_eq(t.patches, 1);
    ck_assert_msg(strstr(t.lock.err.text,
                         "no right to get and patch nodes, which dialect hami needs") != NULL,
                  "%s", t.lock.err.text);
}

/* A node whose lock can't be read is not locked over it; what is not needed is not read. */
static const struct {
    const char *json;
    enum node_lock_result result;
    const char *says;
} odd_nodes[] = {
    {"{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"hami.io/mutex.lock\":\"\xff\"}}}",
     NODE_LOCK_FAILED,
     "node n can't be read: metadata.annotations[hami.io/mutex.lock]: invalid UTF-8"},
    {"{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"hami.io/mutex.lock\":[]}}}",
     NODE_LOCK_FAILED,
     "node n can't be read: metadata.annotations[hami.io/mutex.lock]: expected a string"},
    {"{\"metadata\":{\"resourceVersion\":7}}", NODE_LOCK_FAILED,
     "node n can't be read: metadata.resourceVersion: "},
    {"{\"metadata\":{}}", NODE_LOCK_FAILED, "node n can't be read: it has no resourceVersion"},
    {"{\"metadata\":{\"managedFields\":[[[[{\"\xff\":\"\xff\"}]]]],\"annotations\":{\"a\":\"\xff\","
     "\"hami.io/mutex.lock\":\"" OURS "\"},\"resourceVersion\":\"7\"},\"status\":\"\xff\"}",
     NODE_LOCK_TAKEN, ""},
};

TEST_EACH(a_node_that_can_not_be_read, COUNT_OF(odd_nodes))
{
    lock_is("");
    node_lock_take(&t.lock, NOW_NS); /* which makes the text of our lock */
    pass();
    t.patches = t.gets = 0;
    t.json = odd_nodes[_i].json;
    take_is(odd_nodes[_i].result, OURS);
    ck_assert_msg(strstr(t.lock.err.text, odd_nodes[_i].says) != NULL, "%s", t.lock.err.text);
    ck_assert_uint_eq(t.patches, 0);
    ck_assert_uint_eq(t.gets, 1);
}

/* The pod of the lock has as many containers as etcd lets through, and has ended. */
TEST(a_pod_as_large_as_it_can_be)
{
    lock_is("2023-11-14T22:13:10Z,other,q");
    t.pod = "ended";
    t.containers = 30000;
    take_is(NODE_LOCK_TAKEN, OURS);
}

TEST(gives_up_after_some_tries)
{
    t.forbidden = 409;
    take_is(NODE_LOCK_FAILED, "");
    ck_assert_uint_eq(t.patches, 5);
}

/* The API server carries a PATCH out after the bind has given up, and after it has looked for its
 * lock: that lock would keep the node from all other pods for five minutes. */
TEST_EACH(a_late_patch_comes_too_late, 2)
{
    t.lock.dialect = _i == 0 ? DIALECT_HAMI : DIALECT_VGPU;
    t.late = true;
    node_lock_take(&t.lock, NOW_NS);
    fake_turn(t.loop);
    serve_one(LIST_FIRST(&fake_calls, struct http_call, link)); /* the GET */
    fake_turn(t.loop);
    serve_one(LIST_FIRST(&fake_calls, struct http_call, link)); /* the PATCH */
    node_lock_cancel(&t.lock);
    release_leaves("");
    ck_assert(!arrive());
    ck_assert_str_eq(t.value, "");
}

/* The node has changed since: the PATCH fails anyway. */
TEST(a_late_patch_of_an_older_node_is_left_alone)
{
    t.late = true;
    node_lock_take(&t.lock, NOW_NS);
    fake_turn(t.loop);
    serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
    fake_turn(t.loop);
    serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
    node_lock_cancel(&t.lock);
    t.version++;
    release_leaves("");
    ck_assert_uint_eq(t.patches, 1);
    ck_assert(!arrive());
}

/* It arrives between the two looks, or just before the PATCH that is to keep it out. */
TEST_EACH(a_late_patch_that_arrives_is_removed, 2)
{
    t.late = true;
    node_lock_take(&t.lock, NOW_NS);
    for (unsigned i = 0; i < 2; i++) {
        fake_turn(t.loop);
        serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
    }
    node_lock_cancel(&t.lock);
    node_lock_release(&t.lock);
    fake_turn(t.loop);
    if (_i == 1) {
        serve_one(LIST_FIRST(&fake_calls, struct http_call, link)); /* the GET */
        fake_turn(t.loop);
    }
    ck_assert(arrive());
    ck_assert_str_eq(t.value, OURS);
    pass();
    ck_assert_uint_eq(t.ends, 1);
    ck_assert_int_eq(t.lock.result, NODE_LOCK_TAKEN);
    ck_assert_str_eq(t.value, "");
}

static bool may_not(struct node_lock *l)
{
    (void)l;
    return false;
}

/* This replica does not lead any more. */
TEST(asks_before_it_writes)
{
    t.lock.may = may_not;
    node_lock_take(&t.lock, NOW_NS);
    fake_turn(t.loop);
    serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
    fake_turn(t.loop);
    struct http_call *patch = LIST_FIRST(&fake_calls, struct http_call, link);
    ck_assert_str_eq(patch->method, "PATCH");
    ck_assert(!patch->may_send(patch));
    node_lock_cancel(&t.lock);
    ck_assert_uint_eq(t.ends, 0);
}

/* A second PATCH that is not sent leaves the first one under way, be it a PATCH that takes the lock
 * or the one that keeps the first out. */
TEST_EACH(a_patch_that_is_not_sent_hides_no_late_one, 2)
{
    t.late = true;
    node_lock_take(&t.lock, NOW_NS);
    for (unsigned i = 0; i < 2; i++) {
        fake_turn(t.loop);
        serve_one(LIST_FIRST(&fake_calls, struct http_call, link)); /* the GET, the PATCH */
    }
    t.unsent = true;
    for (unsigned i = 0; _i == 0 && i < 2; i++) {
        fake_turn(t.loop);
        serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
    }
    node_lock_cancel(&t.lock);
    release_leaves("");
    ck_assert(!t.unsent);
    ck_assert(!arrive());
    ck_assert_str_eq(t.value, "");
}

int main(void)
{
    TCase *c = unit_case("node_lock");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
