/* bind.h, where the device plugin finds its pod by a lock of the node. */
#include "bind_fixture.h"

#include "api/request.h"
#include "dialect_rig.h"

#include <jansson.h>

#define OTHERS "2023-11-14T22:29:00Z" /* a minute ago */

static struct {
    char lock[256]; /* of node "n"; "": none */
    unsigned version;
    unsigned patches;
    unsigned denied; /* the method GET gets this status */
    bool bare;       /* without a Status, as from a load balancer */
    bool silent;     /* PATCHes are carried out, but not answered */
} server;

void api_fail(const char *file, int line, const char *why)
{
    ck_abort_msg("%s:%d: %s", file, line, why);
}

static void say_node(struct http_call *c)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "{\"metadata\":{\"resourceVersion\":\"%u\",\"annotations\":{%s%s%s}}}",
                   server.version, server.lock[0] == '\0' ? "" : "\"hamivgpu\":\"", server.lock,
                   server.lock[0] == '\0' ? "" : "\"");
    fake_answer(c, 200, text);
}

static void say_denied(struct http_call *c)
{
    struct text s = {.p = NULL};
    if (server.bare) {
        fake_answer(c, server.denied, "<html>no</html>");
        return;
    }
    status_write(&s, server.denied, "Forbidden", "nodes is forbidden", "");
    text_put(&s, (struct str){"", 1});
    fake_answer(c, server.denied, s.p);
    text_done(&s);
}

/* Returns false if the call gets no answer. */
static bool serve_one(struct http_call *c)
{
    if (strcmp(c->method, "GET") == 0) {
        if (server.denied != 0)
            say_denied(c);
        else
            say_node(c);
        return true;
    }
    json_t *patch = json_loadb(c->body.p, c->body.n, 0, NULL);
    json_t *value = NULL;
    const char *version = NULL;
    ck_assert_int_eq(json_unpack(patch, "{s:{s:s, s:{s:o}}}", "metadata", "resourceVersion",
                                 &version, "annotations", "hamivgpu", &value),
                     0);
    uint64_t seen = 0;
    ck_assert(str_to_u64(str_of(version), UINT32_MAX, &seen) && seen == server.version);
    (void)snprintf(server.lock, sizeof(server.lock), "%s",
                   json_is_null(value) ? "" : json_string_value(value));
    server.version++;
    server.patches++;
    json_decref(patch);
    if (server.silent)
        return false;
    say_node(c);
    return true;
}

static void serve(void)
{
    for (unsigned i = 0; i < 10; i++) {
        while (!list_is_empty(&fake_calls)) {
            if (!serve_one(LIST_FIRST(&fake_calls, struct http_call, link)))
                return;
        }
        fake_turn(fixture.loop);
    }
}

static void serve_for(uint64_t ms)
{
    for (uint64_t at = 0; at < ms; at += 100) {
        pass(100);
        serve();
    }
}

static void open_node(void)
{
    memset(&server, 0, sizeof(server));
    server.version = 1;
    all_dialects();
    bind_fixture_open_with(true);
    set_node(&fixture.rig, "n", DIALECT_VGPU);
    for (unsigned i = 0; i < 2; i++) {
        struct object o;
        object_pod(&o, i == 0 ? "a" : "b", plain[DIALECT_VGPU], "", "");
        struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
        ck_assert_int_eq(rig_apply(&fixture.rig, &e), OK);
        object_end(&o);
    }
}

static void get_says_of(const char *pod, struct str node, struct said_view said)
{
    static const struct container_view container = {
        .name = STR("c"), .of = {[DIALECT_VGPU] = {.mem = STR("8"), .count = STR("1")}}};
    get_shows(pod, (struct pod_view){.node = node,
                                     .said = {[DIALECT_VGPU] = said},
                                     .containers = &container,
                                     .n_containers = 1,
                                     .n_mains = 1});
}

/* Answers the GET of a pod that is not bound. */
static void get_says_vgpu(const char *pod)
{
    get_says_of(pod, STR_NULL, (struct said_view){.idx = STR_NULL});
}

/* Answers the GET of a bound pod that the plugin has served. */
static void get_says_served(const char *pod)
{
    get_says_of(pod, STR("n"),
                (struct said_view){.idx = STR("GPU-a,NVIDIA,8,0:"), .assigned = STR("success")});
}

static struct asker *ask_of(const char *pod)
{
    struct asker *a = ask(pod);
    get_says_vgpu(pod);
    return a;
}

TEST(the_lock_comes_before_the_binding)
{
    open_node();
    struct asker *a = ask_of("a");
    ck_assert(!posts("a") && server.lock[0] == '\0');
    serve();
    ck_assert(posts("a"));
    ck_assert_int_eq(strncmp(server.lock, "2023-11-14T22:", 14), 0);
    post_says("a", POST_CREATED, NULL);
    serve();
    succeeds(a);
    ck_assert_str_ne(server.lock, "");
    bind_fixture_close();
}

TEST(a_refused_binding_leaves_no_lock)
{
    open_node();
    struct asker *a = ask_of("a");
    serve();
    post_says("a", POST_REFUSED, "no");
    get_says_vgpu("a");
    says(a, "can't bind pod ns/a to node n");
    ck_assert_int_eq(used(), 0);
    serve();
    ck_assert_str_eq(server.lock, "");
    ck_assert_uint_eq(server.patches, 2);
    bind_fixture_close();
}

TEST(waits_for_the_lock_of_another_pod)
{
    open_node();
    (void)snprintf(server.lock, sizeof(server.lock), "%s", OTHERS);
    struct asker *a = ask_of("a");
    serve_for(5000);
    ck_assert(!posts("a") && a->answered == 0);
    ck_assert_str_eq(server.lock, OTHERS);
    ck_assert_int_eq(used(), 8);
    server.lock[0] = '\0';
    serve_for(5000);
    ck_assert(posts("a"));
    bind_fixture_close();
}

TEST(the_lock_of_another_pod_at_the_deadline)
{
    open_node();
    (void)snprintf(server.lock, sizeof(server.lock), "%s", OTHERS);
    struct asker *a = ask_of("a");
    serve_for(TIMEOUT_MS + 1000);
    says(a, "node n is locked: its annotation hamivgpu is");
    ck_assert_uint_eq(fixture.counts.doubts, 0);
    ck_assert_int_eq(used(), 0);
    ck_assert_str_eq(server.lock, OTHERS);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    bind_fixture_close();
}

TEST(without_the_right_it_does_not_wait)
{
    open_node();
    server.denied = 403;
    struct asker *a = ask_of("a");
    serve();
    says(a, "no right to get and patch nodes, which dialect volcano-vgpu needs");
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

/* No Binding was sent, so there is no doubt about one; the lock may have been set. */
TEST(the_deadline_comes_while_the_lock_is_being_set)
{
    open_node();
    server.silent = true;
    struct asker *a = ask_of("a");
    serve();
    ck_assert_uint_eq(server.patches, 1);
    pass(TIMEOUT_MS + 100);
    ck_assert_uint_eq(a->answered, 1);
    ck_assert_uint_eq(fixture.counts.doubts, 0);
    ck_assert_int_eq(used(), 0);
    server.silent = false;
    serve_for(100);
    ck_assert_str_eq(server.lock, "");
    bind_fixture_close();
}

/* The Binding is sent again: the lock that is there is ours. */
TEST(the_lock_is_checked_before_each_binding)
{
    open_node();
    struct asker *a = ask_of("a");
    serve();
    post_says("a", POST_THROTTLED, "later");
    serve_for(1000);
    ck_assert(posts("a"));
    ck_assert_uint_eq(server.patches, 1);
    post_says("a", POST_THROTTLED, "later");
    (void)snprintf(server.lock, sizeof(server.lock), "%s", OTHERS);
    serve_for(1000);
    ck_assert(!posts("a") && a->answered == 0);
    bind_fixture_close();
}

/* The next pod waits while the first is reserved, and while the plugin has not served it. */
TEST(one_pod_at_a_time)
{
    open_node();
    struct asker *a = ask_of("a");
    struct asker *b = ask_of("b");
    says(b, "has not yet acknowledged another pod of the node");
    serve();
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
    b = ask_of("b");
    says(b, "has not yet acknowledged another pod of the node");
    struct object o;
    object_pod(&o, "a", plain[DIALECT_VGPU],
               "\"volcano.sh/vgpu-ids-new\":\"GPU-a,NVIDIA,8,0:\","
               "\"volcano.sh/bind-phase\":\"success\"",
               "n");
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(&fixture.rig, &e), OK);
    object_end(&o);
    server.lock[0] = '\0';
    (void)ask_of("b");
    serve();
    ck_assert(posts("b"));
    bind_fixture_close();
}

/* An earlier Binding took effect late: the plugin served the pod, before the lock was set again.
 * The read shows it, the watch does not yet. */
TEST(a_read_shows_that_the_plugin_is_done)
{
    open_node();
    struct asker *a = ask_of("a");
    serve();
    post_says("a", POST_UNKNOWN, "no answer");
    get_says_vgpu("a");
    server.lock[0] = '\0';
    serve_for(2000);
    ck_assert_str_ne(server.lock, "");
    post_says("a", POST_ASSIGNED, "already assigned");
    get_says_served("a");
    succeeds(a);
    serve();
    ck_assert_str_eq(server.lock, "");
    bind_fixture_close();
}

/* What a GET answers while the lock can't be removed, and for how long. */
static const struct {
    unsigned status;
    bool bare;
    unsigned ms;
} refusals[] = {
    {503, false, 5000}, /* the API server is away */
    {403, true, 1000},  /* a load balancer, which does not know cardpack's rights */
    {401, false, 1000}, /* the token is too old, and is replaced */
};

/* The lock is removed when the API server answers again. */
TEST_EACH(the_lock_is_removed_later, COUNT_OF(refusals))
{
    open_node();
    struct asker *a = ask_of("a");
    serve();
    post_says("a", POST_REFUSED, "no");
    server.denied = refusals[_i].status;
    server.bare = refusals[_i].bare;
    get_says_vgpu("a");
    says(a, "can't bind pod ns/a to node n");
    serve_for(refusals[_i].ms);
    ck_assert_str_ne(server.lock, "");
    server.denied = 0;
    serve_for(10000);
    ck_assert_str_eq(server.lock, "");
    bind_fixture_close();
}

/* After five minutes it keeps no pod from the node, and another scheduler may have replaced it. */
TEST_EACH(gives_up_when_the_lock_is_too_old, 2)
{
    open_node();
    (void)ask_of("a");
    serve();
    post_says("a", POST_REFUSED, "no");
    server.denied = _i == 0 ? 503 : 403;
    get_says_vgpu("a");
    serve_for(_i == 0 ? 340000 : 1000);
    server.denied = 0;
    serve_for(40000);
    ck_assert_str_ne(server.lock, "");
    bind_fixture_close();
    open_node(); /* the end comes while it waits */
    (void)ask_of("a");
    serve();
    post_says("a", POST_REFUSED, "no");
    server.denied = 503;
    get_says_vgpu("a");
    serve_for(500);
    bind_fixture_close();
}

static void bind_a(void)
{
    open_node();
    struct asker *a = ask_of("a");
    serve();
    post_says("a", POST_CREATED, NULL);
    succeeds(a);
}

/* The watch shows the bound pod. */
static void show_a(const char *annotations, const char *phase)
{
    struct object o;
    object_pod(&o, "a", plain[DIALECT_VGPU], annotations, "n");
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    e.pod.phase = str_of(phase);
    ck_assert_int_eq(rig_apply(&fixture.rig, &e), OK);
    object_end(&o);
}

#define WAITS                                            \
    "\"volcano.sh/vgpu-ids-new\":\"GPU-a,NVIDIA,8,0:\"," \
    "\"volcano.sh/bind-phase\":\"allocating\""
#define SERVED                                           \
    "\"volcano.sh/vgpu-ids-new\":\"GPU-a,NVIDIA,8,0:\"," \
    "\"volcano.sh/bind-phase\":\"success\""

/* Volcano's lock names no pod, so only the cardpack that has set it knows that it is of no use. The
 * kubelet may still ask the plugin for the pod. */
TEST_EACH(the_lock_of_a_pod_that_is_gone_is_removed, 2)
{
    bind_a();
    show_a(WAITS, "Pending");
    serve_for(30000);
    ck_assert_uint_eq(server.patches, 1);
    if (_i == 0)
        pod_gone(&fixture.rig, "a");
    else
        show_a(WAITS, "Failed");
    serve_for(8000);
    ck_assert_str_ne(server.lock, "");
    serve_for(4000);
    ck_assert_str_eq(server.lock, "");
    (void)ask_of("b");
    serve();
    ck_assert(posts("b"));
    bind_fixture_close();
}

/* What is not a lock of a pod that is gone. */
TEST_EACH(other_locks_are_left_alone, 3)
{
    bind_a();
    show_a(_i == 0 ? SERVED : WAITS, "Pending");
    serve_for(_i == 1 ? 310000 : 2000); /* 1: the lock keeps no pod away any more */
    if (_i == 2)
        (void)snprintf(server.lock, sizeof(server.lock), "%s", OTHERS);
    pod_gone(&fixture.rig, "a");
    serve_for(20000);
    ck_assert_str_ne(server.lock, "");
    ck_assert_uint_eq(server.patches, 1);
    bind_fixture_close();
    bind_a(); /* the end comes while it waits */
    serve_for(2000);
    bind_fixture_close();
}

TEST(ends_while_it_locks_and_unlocks)
{
    open_node();
    (void)ask_of("a");
    bind_fixture_close();
    open_node();
    struct asker *a = ask_of("a");
    serve();
    post_says("a", POST_REFUSED, "no");
    get_says_vgpu("a");
    ck_assert_uint_eq(a->answered, 1);
    bind_fixture_close();
}
