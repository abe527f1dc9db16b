/*
 * A kube_backend and an API server with a Lease and three lists. The server answers lists and calls
 * about the Lease at once; watches stay open; the test answers Bindings and GETs of pods.
 */
#pragma once

#include "api/leases.h"
#include "daemon/backend/kube_backend.h"
#include "fail_alloc.h"
#include "fake_net.h"

#include <stdio.h>
#include <unistd.h>

#define LEASE_MS  UINT64_C(9000)
#define SETTLE_MS UINT64_C(8000)

static const char *const list_paths[CACHE_KINDS] = {
    [CACHE_NODES] = "/api/v1/nodes?",
    [CACHE_PODS] = "/api/v1/pods?",
    [CACHE_HEALTH] = "/configmaps?",
};

static struct kube_rig {
    struct loop *loop;
    struct kube_api *api;
    struct cache cache;
    struct kube_backend *backend;
    struct kube_backend_counts counts;
    struct backend *face;
    struct backend_call call;
    unsigned done;    /* how often the call's `done` was called */
    unsigned changes; /* how often the backend said that its readiness may have changed */
    char token[64];

    /* State of the API server: */
    bool lease_silent;              /* does not answer calls about the Lease */
    bool held[CACHE_KINDS];         /* does not answer lists of this kind */
    const char *items[CACHE_KINDS]; /* the items of each list */
} k;

/* The setting dra of the next backend. */
static enum config_dra rig_dra = CONFIG_DRA_OFF;

#define NODE_N                                                                      \
    "{\"metadata\":{\"name\":\"n\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem" \
    "\":\"16\",\"aliyun.com/gpu-count\":\"1\"},\"allocatable\":{\"aliyun.com/gpu-"  \
    "mem\":\"16\",\"aliyun.com/gpu-count\":\"1\"}}}"
#define POD(name, where)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" name               \
    "\",\"resourceVersion\":\"7\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},"       \
    "\"spec\":{" where "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun." \
    "com/gpu-mem\":\"8\"}}}]},\"status\":{\"phase\":\"Pending\"}}"
#define PENDING_P POD("p", "")
#define BOUND_P   POD("p", "\"nodeName\":\"n\",")

/* ---- the API server ---- */

void api_fail(const char *file, int line, const char *why)
{
    ck_abort_msg("%s:%d: %s", file, line, why);
}

static inline void say(struct http_call *c, unsigned status, struct text *t)
{
    text_put(t, (struct str){"", 1});
    fake_answer(c, status, t->p);
    text_done(t);
}

/* A refusal by the API server: with a Status. */
static inline void say_status(struct http_call *c, unsigned code, const char *reason,
                              const char *kind)
{
    char details[64];
    struct text t = {.p = NULL};
    (void)snprintf(details, sizeof(details), ",\"details\":{\"kind\":\"%s\"}", kind);
    status_write(&t, code, reason, "says the test", details);
    say(c, code, &t);
}

static inline void serve_lease(struct http_call *c)
{
    struct text t = {.p = NULL};
    const char *path = memmem(c->url.p, c->url.n, "/apis/", 6);
    struct api_request r = api_request_read(
        str_of(c->method), str_skip(c->url, path == NULL ? 0 : (size_t)(path - c->url.p)));
    ck_assert_int_eq(r.verb, API_LEASE);
    unsigned status = lease_serve(&t, &r, c->body);
    say(c, status, &t);
}

/* NULL: there is none. */
static inline struct lease *the_lease(void)
{
    struct lease *l = lease_find(STR("kube-system"), STR("cardpack"));
    return l == NULL || l->object == NULL ? NULL : l;
}

/* Its content; the Lease must exist. */
static inline json_t *lease_content(void)
{
    const struct lease *l = the_lease();
    if (l == NULL)
        ck_abort_msg("there is no Lease");
    return l->object;
}

static inline const char *holder(void)
{
    return lease_text(the_lease(), "spec", "holderIdentity");
}

/* Another client writes the holder; "" is a release. */
static inline void lease_taken_by(const char *who)
{
    json_t *spec = json_object_get(lease_content(), "spec");
    json_object_set_new(spec, "holderIdentity", json_string(who));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(who[0] == '\0' ? 1 : 9));
    json_object_set_new(spec, "renewTime",
                        json_sprintf("2026-01-01T00:00:00.%06uZ", (unsigned)store.rv));
    if (who[0] == '\0')
        json_object_set_new(
            json_object_get(lease_content(), "metadata"), "annotations",
            json_pack("{s:O}", "cardpack.io/released-at", json_object_get(spec, "renewTime")));
    lease_bump(the_lease());
}

/* Another replica writes into the Lease that it wants to lead. */
static inline void lease_wanted(void)
{
    json_t *metadata = json_object_get(lease_content(), "metadata");
    if (json_object_get(metadata, "annotations") == NULL)
        json_object_set_new(metadata, "annotations", json_object());
    json_object_set_new(json_object_get(metadata, "annotations"), "cardpack.io/wanted-by",
                        json_sprintf("other %u", (unsigned)store.rv));
    lease_bump(the_lease());
}

static inline void list_open(struct http_call *c, enum cache_kind kind)
{
    struct text t = {.p = NULL};
    list_head_write(&t, kind, 10, "", 0);
    text_put(&t, (struct str){"", 1});
    fake_chunk(c, t.p);
    text_done(&t);
}

static inline void list_serve(struct http_call *c, enum cache_kind kind)
{
    list_open(c, kind);
    fake_chunk(c, k.items[kind]);
    fake_answer(c, 200, "]}");
}

/* Answers one request. False: all that are left wait for the test. */
static inline bool serve_one(void)
{
    LIST_FOR_EACH (struct http_call, c, &fake_calls, link) {
        if (memmem(c->url.p, c->url.n, "/leases", 7) != NULL && !k.lease_silent) {
            serve_lease(c);
            return true;
        }
        if (memmem(c->url.p, c->url.n, "watch=true", 10) != NULL)
            continue;
        for (size_t i = 0; i < CACHE_KINDS; i++) {
            if (memmem(c->url.p, c->url.n, list_paths[i], strlen(list_paths[i])) != NULL &&
                !k.held[i]) {
                list_serve(c, (enum cache_kind)i);
                return true;
            }
        }
    }
    return false;
}

static inline void serve(void)
{
    unsigned served = 0;
    fake_turn(k.loop);
    while (serve_one())
        ck_assert_uint_lt(served++, FAKE_TURNS);
}

static inline void pass(uint64_t ms)
{
    serve();
    for (uint64_t at = 0; at < ms; at += 100) {
        k.loop->clock_ms += 100;
        serve();
    }
}

static inline struct http_call *watch_of(enum cache_kind kind)
{
    LIST_FOR_EACH (struct http_call, c, &fake_calls, link) {
        if (memmem(c->url.p, c->url.n, list_paths[kind], strlen(list_paths[kind])) != NULL &&
            memmem(c->url.p, c->url.n, "watch=true", 10) != NULL)
            return c;
    }
    ck_abort_msg("no watch of %s", list_paths[kind]);
}

static inline void watch_says(enum cache_kind kind, const char *type, const char *object)
{
    char text[2048];
    int n = snprintf(text, sizeof(text), "{\"type\":\"%s\",\"object\":%s}\n", type, object);
    ck_assert(n > 0 && n < (int)sizeof(text));
    fake_chunk(watch_of(kind), text);
}

/* ---- the backend ---- */

static inline void call_done(struct backend_call *c)
{
    ck_assert_ptr_eq(c, &k.call);
    k.done++;
}

static inline void on_changed(void *ctx)
{
    struct kube_rig *rig = ctx;
    rig->changes++;
}

/* Opens the backend; its first turn has not run. */
static inline void rig_open_settling(bool elected, uint64_t settle_ms)
{
    struct err e = ERR_INIT;
    k = (struct kube_rig){.items = {[CACHE_NODES] = NODE_N, [CACHE_PODS] = PENDING_P, ""}};
    k.loop = fake_loop();
    (void)snprintf(k.token, sizeof(k.token), "/tmp/cardpack-test-token-XXXXXX");
    int fd = mkstemp(k.token);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "first", 5), 5);
    ck_assert_int_eq(close(fd), 0);
    cache_init(&k.cache, (struct map_seed){1, 2});
    struct kubeconfig config = {.server = STR("https://api/base"), .token_file = str_of(k.token)};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(k.loop, &api, &k.api, &e), &e);
    struct election_settings election = {.namespace = STR("kube-system"),
                                         .name = STR("cardpack"),
                                         .identity = STR("me"),
                                         .times = {LEASE_MS, 6000, 2000}};
    struct kube_backend_settings s = {.loop = k.loop,
                                      .cache = &k.cache,
                                      .api = k.api,
                                      .page_size = 500,
                                      .dra = rig_dra,
                                      .election = elected ? &election : NULL,
                                      .start_settle_ms = settle_ms,
                                      .counts = &k.counts,
                                      .changed = on_changed,
                                      .changed_ctx = &k};
    ck_assert_ok(kube_backend_new(&s, &k.backend, &e), &e);
    k.face = kube_backend_interface(k.backend);
    ck_assert_int_eq(backend_call_init(&k.call, k.face), OK);
    k.call.done = call_done;
    k.call.timeout_ms = 10000;
}

static inline void rig_open(bool elected)
{
    rig_open_settling(elected, SETTLE_MS);
}

static inline void rig_close(void)
{
    backend_call_done(&k.call);
    k.backend = kube_backend_free(k.backend);
    k.api = kube_api_free(k.api);
    cache_done(&k.cache);
    k.loop = loop_free(k.loop);
    leases_reset();
    (void)unlink(k.token);
}

static inline bool is_ready(void)
{
    struct str missing;
    bool ready = k.face->ready(k.face, &missing);
    ck_assert(ready == (missing.n == 0));
    ck_assert(ready == (k.face->term(k.face) > 0));
    return ready;
}

static inline void is_missing(const char *part)
{
    struct str missing;
    ck_assert(!k.face->ready(k.face, &missing));
    ck_assert_msg(memmem(missing.p, missing.n, part, strlen(part)) != NULL, "\"%.*s\" lacks \"%s\"",
                  STR_ARG(missing), part);
    ck_assert_uint_eq(k.face->term(k.face), 0);
}

static inline void lead(void)
{
    rig_open(true);
    pass(2 * SETTLE_MS);
    ck_assert(is_ready());
    ck_assert_str_eq(holder(), "me");
}

static inline void apply(const struct cache_event *e)
{
    struct effect fx;
    ck_assert_int_eq(cache_apply(&k.cache, e, loop_wall_ns(k.loop), &fx), OK);
    cache_check(&k.cache);
}

static inline const struct pod *pod_p(void)
{
    return cache_pod(&k.cache, STR("p"));
}

/* Holds a card for the pod in the present term. */
static inline void reserve_p(void)
{
    const struct pod *p = pod_p();
    apply(&(struct cache_event){.type = CACHE_RESERVE,
                                .reserve = {.uid = p->uid,
                                            .namespace = p->namespace,
                                            .name = p->name,
                                            .node = STR("n"),
                                            .request = p->request}});
    k.call.term = k.face->term(k.face);
}

static inline void cancel_p(void)
{
    apply(&(struct cache_event){.type = CACHE_CANCEL, .holder = {.uid = STR("p")}});
}

static inline void post_p(void)
{
    static const struct binding binding = {.namespace = STR("ns"),
                                           .name = STR("p"),
                                           .uid = STR("p"),
                                           .node = STR("n"),
                                           .mem = 8,
                                           .idx = STR("0"),
                                           .card_total = 16,
                                           .assume_ns = 1};
    k.face->post(k.face, &k.call, &binding);
    fake_turn(k.loop);
}

static inline void get_p(void)
{
    k.face->get(k.face, &k.call, STR("ns"), STR("p"));
    fake_turn(k.loop);
}

#define BINDING_OF_P "/api/v1/namespaces/ns/pods/p/binding"

static inline bool binding_waits(void)
{
    return fake_waiting("POST", BINDING_OF_P) != NULL;
}

static inline struct http_call *binding_of_p(void)
{
    return fake_find("POST", BINDING_OF_P);
}

static inline struct http_call *read_of_p(void)
{
    return fake_find("GET", "/api/v1/namespaces/ns/pods/p");
}

static inline void posted(enum post_result how)
{
    ck_assert_uint_eq(k.done, 1);
    ck_assert_int_eq(k.call.post, how);
    ck_assert(!binding_waits());
    k.done = 0;
}

/* Another replica wants the Lease, and gets it. */
static inline void wanted_and_given(void)
{
    lease_wanted();
    pass(4000);
    ck_assert_str_eq(holder(), "");
    ck_assert(!is_ready());
}

/* Makes the nth allocation from now on fail. */
static inline void fails(size_t nth)
{
    fail_alloc_arm(FAIL_ONCE, nth);
}

/* Whether that allocation has failed. */
static inline bool failed(void)
{
    fail_alloc_disarm();
    return fail_alloc_hit();
}
