/* What cardpack-node announces, and an API server with the own node and its ConfigMap: shared by
 * its tests. */
#pragma once

#include "node/announce/announce.h"

#include "base/log.h"
#include "fail_alloc.h"
#include "fake_net.h"

#include <jansson.h>
#include <stdio.h>

static struct {
    struct loop *loop;
    struct kube_api *api;
    struct events *events;
    struct announce *announce;
    json_t *node;
    json_t *map; /* NULL: there is none */
    uint64_t version;
    unsigned node_patches;
    unsigned map_calls;
    unsigned told;     /* calls of told() */
    bool away;         /* the API server does not answer */
    unsigned refuse;   /* answers with this status */
    bool drops;        /* answers 200 and keeps the node as it was */
    bool map_conflict; /* the POST gets a 409: another program was faster */
    char events_said[8192];
} t;

/* ---- the API server ---- */

static inline void say(struct http_call *c, unsigned status, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    fake_answer(c, status, text);
    free(text);
    json_decref(body);
}

static inline void say_failure(struct http_call *c, unsigned status)
{
    say(c, status,
        json_pack("{s:s,s:s,s:i,s:s}", "kind", "Status", "status", "Failure", "code", (int)status,
                  "message", "because"));
}

/* RFC 7386. */
static inline void merge(json_t *to, json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach(patch, key, value)
    {
        if (json_is_null(value)) {
            json_object_del(to, key);
        } else if (json_is_object(value)) {
            if (!json_is_object(json_object_get(to, key)))
                json_object_set_new(to, key, json_object());
            merge(json_object_get(to, key), value);
        } else {
            json_object_set(to, key, value);
        }
    }
}

static inline void touch_node(void)
{
    char version[32];
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)++t.version);
    json_object_set_new(json_object_get(t.node, "metadata"), "resourceVersion",
                        json_string(version));
}

static inline void serve_node(struct http_call *c)
{
    t.node_patches++;
    ck_assert_str_is(c->content_type, "application/merge-patch+json");
    json_t *patch = json_loadb(c->body.p, c->body.n, 0, NULL);
    ck_assert_ptr_nonnull(patch);
    if (!t.drops)
        merge(t.node, patch);
    touch_node();
    json_decref(patch);
    say(c, 200, json_deep_copy(t.node));
}

static inline void serve_map(struct http_call *c)
{
    t.map_calls++;
    json_t *body = json_loadb(c->body.p, c->body.n, 0, NULL);
    ck_assert_ptr_nonnull(body);
    if (strcmp(c->method, "POST") == 0 && t.map_conflict) {
        t.map = json_pack("{s:{s:s}}", "data", "gpus", "7");
        t.map_conflict = false;
        json_decref(body);
        say_failure(c, 409);
        return;
    }
    if (strcmp(c->method, "POST") == 0) {
        ck_assert_ptr_null(t.map);
        ck_assert(str_ends(c->url, STR("/api/v1/namespaces/kube-system/configmaps")));
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(body, "metadata"), "name")),
            "unhealthy-gpu-gpu-7");
        t.map = body;
        say(c, 201, json_deep_copy(t.map));
        return;
    }
    ck_assert(str_ends(c->url, STR("/kube-system/configmaps/unhealthy-gpu-gpu-7")));
    if (t.map == NULL) {
        json_decref(body);
        say_failure(c, 404);
        return;
    }
    merge(t.map, body);
    json_decref(body);
    say(c, 200, json_deep_copy(t.map));
}

static inline void serve_one(struct http_call *c)
{
    if (c->url.n == 0) { /* no memory for it */
        fake_land(c, HTTP_NOT_SENT, 0);
    } else if (t.refuse != 0) {
        say_failure(c, t.refuse);
    } else if (memmem(c->url.p, c->url.n, "/events", 7) != NULL) {
        size_t n = strlen(t.events_said);
        (void)snprintf(t.events_said + n, sizeof(t.events_said) - n, "%.*s\n", STR_ARG(c->body));
        fake_answer(c, 201, "{}");
    } else if (str_ends(c->url, STR("/api/v1/nodes/gpu-7/status"))) {
        serve_node(c);
    } else {
        serve_map(c);
    }
}

static inline void pass(uint64_t ms)
{
    for (uint64_t at = 0; at <= ms; at += 10) {
        fake_turn(t.loop);
        while (!t.away && !list_is_empty(&fake_calls))
            serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
        t.loop->clock_ms += 10;
    }
}

/* ---- the world ---- */

static inline void on_told(void *ctx)
{
    ck_assert_ptr_eq(ctx, &t);
    t.told++;
}

static inline void on_lost(void *ctx, uint64_t lost, const struct err *why)
{
    (void)ctx;
    (void)lost;
    (void)why;
}

static inline enum errc try_open(struct err *e)
{
    const struct announce_settings s = {.loop = t.loop,
                                        .api = t.api,
                                        .node = STR("gpu-7"),
                                        .events = t.events,
                                        .written = on_told,
                                        .ctx = &t};
    return announce_new(&s, &t.announce, e);
}

static inline void set_up(void)
{
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    t.loop = fake_loop();
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
    const struct events_settings events = {.loop = t.loop,
                                           .api = t.api,
                                           .component = STR("cardpack-node"),
                                           .retry_ms = 1000,
                                           .drain_ms = 1000,
                                           .note = on_lost};
    ck_assert_ok(events_new(&events, &t.events, &e), &e);
    t.node = json_pack("{s:{s:s,s:{s:s}},s:{s:{s:s}}}", "metadata", "name", "gpu-7", "labels",
                       "zone", "a", "status", "capacity", "cpu", "8");
    touch_node();
    ck_assert_ok(try_open(&e), &e);
}

static inline void tear_down(void)
{
    fail_alloc_disarm();
    t.announce = announce_free(t.announce);
    t.events = events_free(t.events);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
    json_decref(t.node);
    json_decref(t.map);
}

/* Two cards; the health of each. */
static inline void cards(enum gpu_level first, enum gpu_level second)
{
    const struct announce_card list[] = {
        {.index = 0,
         .units = 40,
         .numa = 0,
         .health = first,
         .reason = first == GPU_HEALTHY ? STR("") : STR("XID 79"),
         .uuid = STR("GPU-a"),
         .pci = STR("00000000:3B:00.0"),
         .model = STR("NVIDIA A100")},
        {.index = 2,
         .units = 5,
         .numa = -1,
         .health = second,
         .reason = second == GPU_HEALTHY ? STR("") : STR("XID 48"),
         .uuid = STR("MIG-b"),
         .pci = STR("00000000:5E:00.0"),
         .model = STR("NVIDIA A100"),
         .profile = STR("1g.5gb")},
    };
    announce_cards(t.announce, list, COUNT_OF(list), ISOLATION_NONE, false);
}

/* The watch shows the node as it is now. */
static inline void watch(void)
{
    struct arena a;
    struct err e = ERR_INIT;
    struct own_node_view v;
    arena_init(&a, 65536);
    char *text = json_dumps(t.node, JSON_COMPACT);
    ck_assert_ok(own_node_read(str_of(text), &a, &v, &e), &e);
    announce_see(t.announce, &v);
    free(text);
    arena_done(&a);
}

static inline const char *at(const json_t *o, const char *a, const char *b, const char *c)
{
    const json_t *v = json_object_get(json_object_get(json_object_get(o, a), b), c);
    return v == NULL ? "(none)" : json_string_value(v);
}

static inline const char *map_has(void)
{
    return t.map == NULL
               ? "(none)"
               : json_string_value(json_object_get(json_object_get(t.map, "data"), "gpus"));
}

static inline void node_has(const char *count, const char *table, const char *isolation)
{
    ck_assert_str_eq(at(t.node, "status", "capacity", "aliyun.com/gpu-count"), count);
    ck_assert_str_eq(at(t.node, "status", "allocatable", "aliyun.com/gpu-count"), count);
    ck_assert_str_eq(at(t.node, "metadata", "annotations", "cardpack.io/cards"), table);
    ck_assert_str_eq(at(t.node, "metadata", "labels", "cardpack.io/isolation"), isolation);
    ck_assert_str_eq(at(t.node, "status", "capacity", "cpu"), "8");
    ck_assert_str_eq(at(t.node, "metadata", "labels", "zone"), "a");
}

static inline unsigned said(const char *part)
{
    unsigned n = 0;
    for (const char *p = strstr(t.events_said, part); p != NULL; p = strstr(p + 1, part))
        n++;
    return n;
}

#define FIRST                                                                          \
    "{\"index\":0,\"memory\":40,\"model\":\"NVIDIA-A100\",\"uuid\":\"GPU-a\",\"pci\":" \
    "\"00000000:3B:00.0\",\"numa\":0"
#define SECOND                                                                        \
    "{\"index\":2,\"memory\":5,\"model\":\"NVIDIA-A100\",\"uuid\":\"MIG-b\",\"pci\":" \
    "\"00000000:5E:00.0\",\"profile\":\"1g.5gb\""
#define ILL ",\"health\":\"Unhealthy\"}"
