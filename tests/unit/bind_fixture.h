/*
 * A binder with the test's clock and backend, for tests with several pods and several requests for
 * each. It has one node "n" with two cards of 16.
 */
#pragma once

#include "daemon/bind/bind.h"

#include "cache_rig.h"
#include "fake_net.h"
#include "kube/kube_api.h"
#include <stdio.h>

#define TIMEOUT_MS 25000
#define CALLS      8
#define ASKERS     8

/* A backend call under way. */
struct asked {
    struct backend_call *call; /* NULL: none */
    bool post;
    char pod[16];
    uint64_t assume_ns;
    uint64_t version; /* of a Binding */
};

struct asker {
    struct http_request request;
    struct arena arena;
    struct buf answer;
    char body[256];
    unsigned answered;
};

static struct bind_fixture {
    struct rig rig;
    struct loop *loop;
    struct backend backend;
    struct kube_api *api; /* NULL: no locks */
    struct binder *binder;
    struct bind_counts counts;
    struct asked asked[CALLS];
    struct asker askers[ASKERS];
    size_t n_askers;
    uint64_t term;
    bool unready;
    unsigned refreshes;
    unsigned told; /* number of events */
    char text[512];
} fixture;

/* ---- functions and calls that bind.c needs ---- */

static inline struct asked *note(struct backend_call *c, bool post, struct str pod,
                                 uint64_t assume_ns)
{
    struct asked *a = fixture.asked;
    while (a->call != NULL)
        a++;
    ck_assert_uint_lt((size_t)(a - fixture.asked), CALLS);
    *a = (struct asked){.call = c, .post = post, .assume_ns = assume_ns};
    (void)snprintf(a->pod, sizeof(a->pod), "%.*s", STR_ARG(pod));
    return a;
}

static inline void on_post(struct backend *b, struct backend_call *c, const struct binding *binding)
{
    ck_assert_ptr_eq(b, &fixture.backend);
    ck_assert_str_is(binding->node, "n");
    ck_assert_uint_gt(binding->idx.n, 0);
    c->pod = (struct pod_view){.uid = STR("no longer valid")}; /* see backend.h */
    note(c, true, binding->name, binding->assume_ns)->version = binding->version;
}

static inline void on_get(struct backend *b, struct backend_call *c, struct str namespace,
                          struct str name)
{
    ck_assert_ptr_eq(b, &fixture.backend);
    ck_assert_str_is(namespace, "ns");
    (void)note(c, false, name, 0);
}

static inline void on_cancel(struct backend_call *c)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (fixture.asked[i].call == c)
            fixture.asked[i].call = NULL;
    }
}

static inline bool is_ready(struct backend *b, struct str *ret_missing)
{
    (void)b;
    *ret_missing = fixture.unready ? STR("something is missing") : STR("");
    return !fixture.unready;
}

static inline uint64_t the_term(struct backend *b)
{
    (void)b;
    return fixture.term;
}

static inline void on_refresh(struct backend *b)
{
    (void)b;
    fixture.refreshes++;
}

/* Replaces http_server.h's function. */
void http_request_respond(struct http_request *r, unsigned status, const char *content_type)
{
    struct asker *a = CONTAINER_OF(r, struct asker, request);
    (void)content_type;
    ck_assert_uint_eq(status, 200);
    ck_assert_uint_eq(a->answered, 0);
    a->answered++;
}

/* Replaces events.h's function. */
void events_post(struct events *ev, const struct event_subject *pod, enum event_level level,
                 struct str reason, struct str message)
{
    (void)ev;
    (void)pod;
    ck_assert_int_eq(level, EVENT_WARNING);
    ck_assert_str_is(reason, "FailedBinding");
    (void)snprintf(fixture.text, sizeof(fixture.text), "%.*s", STR_ARG(message));
    fixture.told++;
}

/* ---- the fixture ---- */

/* locks: the locks of nodes are taken, by calls in fake_calls. */
static inline void bind_fixture_open_with(bool locks)
{
    struct err e = ERR_INIT;
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    rig_init(&fixture.rig);
    fixture.loop = fake_loop();
    if (locks)
        ck_assert_ok(kube_api_new(fixture.loop, &api, &fixture.api, &e), &e);
    fixture.term = 1;
    fixture.backend = (struct backend){.post = on_post,
                                       .get = on_get,
                                       .cancel = on_cancel,
                                       .ready = is_ready,
                                       .term = the_term,
                                       .refresh = on_refresh};
    struct bind_settings s = {.loop = fixture.loop,
                              .cache = &fixture.rig.cache,
                              .backend = &fixture.backend,
                              .api = fixture.api,
                              .timeout_ms = TIMEOUT_MS,
                              .counts = &fixture.counts};
    ck_assert_ok(bind_new(&s, &fixture.binder, &e), &e);
    node_set(&fixture.rig, "n", "32", "2", NULL);
    pod_set(&fixture.rig, .uid = "a");
    pod_set(&fixture.rig, .uid = "b");
}

static inline void bind_fixture_open(void)
{
    bind_fixture_open_with(false);
}

static inline void pass(uint64_t ms)
{
    for (uint64_t at = 0; at < ms; at += 10) {
        fixture.loop->clock_ms += 10;
        fake_turn(fixture.loop);
        cache_check(&fixture.rig.cache);
    }
}

static inline void bind_fixture_close(void)
{
    pass(10);
    fixture.binder = bind_free(fixture.binder);
    for (size_t i = 0; i < fixture.n_askers; i++) {
        arena_done(&fixture.askers[i].arena);
        buf_done(&fixture.askers[i].answer);
    }
    rig_done(&fixture.rig);
    fixture.api = kube_api_free(fixture.api);
    fixture.loop = loop_free(fixture.loop);
}

/* Sends a bind as kube-scheduler does, for the pod of this name and UID. */
static inline struct asker *ask_for(const char *name, const char *uid, const char *node)
{
    struct asker *a = &fixture.askers[fixture.n_askers++];
    ck_assert_uint_le(fixture.n_askers, ASKERS);
    arena_init(&a->arena, 1 << 16);
    buf_init(&a->answer, 1 << 16);
    a->request =
        (struct http_request){.method = STR("POST"), .arena = &a->arena, .answer = &a->answer};
    int n = snprintf(a->body, sizeof(a->body),
                     "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":"
                     "\"%s\"}",
                     name, uid, node);
    a->request.body = (struct str){a->body, (size_t)n};
    bind_handle(fixture.binder, &a->request);
    fake_turn(fixture.loop);
    return a;
}

static inline struct asker *ask(const char *pod)
{
    return ask_for(pod, pod, "n");
}

/* The pod's call under way; NULL: none. */
static inline struct asked *call_of(const char *pod)
{
    struct asked *found = NULL;
    for (size_t i = 0; i < CALLS; i++) {
        if (fixture.asked[i].call != NULL && strcmp(fixture.asked[i].pod, pod) == 0) {
            ck_assert_ptr_null(found);
            found = &fixture.asked[i];
        }
    }
    return found;
}

static inline bool posts(const char *pod)
{
    const struct asked *a = call_of(pod);
    return a != NULL && a->post;
}

static inline bool reads(const char *pod)
{
    const struct asked *a = call_of(pod);
    return a != NULL && !a->post;
}

/* Answers the pod's Binding. why NULL: without an error. */
static inline void post_says(const char *pod, enum post_result result, const char *why)
{
    ck_assert(posts(pod));
    struct asked *a = call_of(pod);
    struct backend_call *c = a->call;
    a->call = NULL;
    c->post = result;
    c->err = (struct err)ERR_INIT;
    if (why != NULL)
        (void)err_set(&c->err, ERR_DENIED, "%s", why);
    c->done(c);
    fake_turn(fixture.loop);
}

/* Answers the GET: the pod exists, as `view` shows it beside its names. */
static inline void get_shows(const char *pod, struct pod_view view)
{
    ck_assert(reads(pod));
    struct asked *a = call_of(pod);
    struct backend_call *c = a->call;
    a->call = NULL;
    c->get = GET_FOUND;
    c->err = (struct err)ERR_INIT;
    c->pod = view;
    c->pod.uid = c->pod.name = str_of(pod);
    c->pod.namespace = STR("ns");
    c->pod.phase = STR("Pending");
    c->done(c);
    fake_turn(fixture.loop);
}

/* The same: bound to this node and card; node NULL: not bound. */
static inline void get_says(const char *pod, const char *node, const char *idx)
{
    static const struct container_view container = {.name = STR("c"), .mem = STR("8")};
    get_shows(pod, (struct pod_view){.node = str_of(node),
                                     .idx = str_of(idx),
                                     .containers = &container,
                                     .n_containers = 1});
}

/* The same: unbound, has this version, and asks for `mem`. */
static inline void get_says_version(const char *pod, uint64_t version, const char *mem)
{
    struct container_view container = {.name = STR("c"), .mem = str_of(mem)};
    get_shows(pod,
              (struct pod_view){.version = version, .containers = &container, .n_containers = 1});
}

static inline void get_says_unbound(const char *pod)
{
    get_says(pod, NULL, NULL);
}

static inline void get_says_gone(const char *pod)
{
    ck_assert(reads(pod));
    struct asked *a = call_of(pod);
    struct backend_call *c = a->call;
    a->call = NULL;
    c->get = GET_GONE;
    c->err = (struct err)ERR_INIT;
    c->done(c);
    fake_turn(fixture.loop);
}

static inline void get_fails_by(const char *pod, bool unauthorized, const char *why)
{
    ck_assert(reads(pod));
    struct asked *a = call_of(pod);
    struct backend_call *c = a->call;
    a->call = NULL;
    c->get = GET_FAILED;
    c->unauthorized = unauthorized;
    (void)err_set(&c->err, unauthorized ? ERR_DENIED : ERR_UNAVAILABLE, "%s", why);
    c->done(c);
    fake_turn(fixture.loop);
}

static inline void get_fails(const char *pod)
{
    get_fails_by(pod, false, "the read has failed");
}

/* Answers the GET with 401; the token file is read again by then. */
static inline void get_says_unauthorized(const char *pod)
{
    get_fails_by(pod, true, "401: Unauthorized");
}

static inline void says(const struct asker *a, const char *text)
{
    ck_assert_uint_eq(a->answered, 1);
    ck_assert_msg(memmem(a->answer.p, a->answer.n, text, strlen(text)) != NULL,
                  "\"%.*s\" lacks \"%s\"", STR_ARG(buf_str(&a->answer)), text);
}

static inline void succeeds(const struct asker *a)
{
    says(a, "{\"Error\":\"\"}");
}

static inline int64_t used(void)
{
    return cache_node(&fixture.rig.cache, STR("n"))->used;
}
