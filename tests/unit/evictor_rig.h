/*
 * An evictor and an API server. The node has two cards of 16: card 0 has pods a and b with 5 each,
 * card 1 has c with 10. A pod of priority 100 wants 12; evicting c alone is enough.
 */
#pragma once

#include "base/log.h"
#include "cache_rig.h"
#include "daemon/evict/evictor.h"
#include "daemon/service.h"
#include "fail_alloc.h"
#include "on_loop.h"
#include "script_server.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PODS "POST /base/api/v1/namespaces/ns/pods/"
/* An API server's Status: texts of Kubernetes 1.20.2 and 1.36.3. */
#define FAILURE(code, reason, text)                                                                \
    SCRIPT_BODY,                                                                                   \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","       \
        "\"message\":\"" text "\",\"reason\":\"" reason "\",\"details\":{},\"code\":" #code "}\n", \
        code, NULL
#define GRANTED                                                                              \
    SCRIPT_BODY,                                                                             \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\"," \
        "\"code\":201}\n",                                                                   \
        201, NULL
#define BUDGET                      \
    FAILURE(429, "TooManyRequests", \
            "Cannot evict pod as it would violate the pod's disruption budget.")
#define TWO_BUDGETS                                                                           \
    FAILURE(500, "",                                                                          \
            "This pod has more than one PodDisruptionBudget, which the eviction subresource " \
            "does not support.")
#define BUSY SCRIPT_BODY, "Too many requests, please try again later.\n", 429, "Retry-After: 1\r\n"
#define ILL  FAILURE(503, "ServiceUnavailable", "etcdserver: request timed out")
#define LOST SCRIPT_CLOSE, NULL, 0, NULL
#define DENIED                                                                           \
    FAILURE(403, "Forbidden",                                                            \
            "pods \\\"c\\\" is forbidden: User \\\"cardpack\\\" cannot create resource " \
            "\\\"pods/eviction\\\" in API group \\\"\\\" in the namespace \\\"ns\\\"")
#define WEBHOOK \
    FAILURE(403, "Forbidden", "admission webhook \\\"w.example\\\" denied the request: no")
#define OLD                                                                                   \
    FAILURE(400, "BadRequest",                                                                \
            "no kind \\\"Eviction\\\" is registered for version \\\"policy/v1\\\" in scheme " \
            "\\\"pkg/api/legacyscheme/scheme.go:30\\\"")
#define OTHER_UID                                                                              \
    FAILURE(409, "Conflict",                                                                   \
            "Operation cannot be fulfilled on Pod \\\"c\\\": the UID in the precondition (c) " \
            "does not match the UID in record (d). The object might have been deleted and "    \
            "then recreated")
#define NO_PATH FAILURE(404, "NotFound", "the server could not find the requested resource")
#define NO_POD                                                                           \
    SCRIPT_BODY,                                                                         \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","             \
        "\"reason\":\"NotFound\",\"message\":\"pods \\\"c\\\" not found\",\"code\":404," \
        "\"details\":{\"kind\":\"pods\",\"name\":\"c\"}}",                               \
        404, NULL
/* A load balancer's answer. */
#define BARE(code) SCRIPT_BODY, "<html>" #code "</html>\n", code, NULL
#define TRY(pod, how)                         \
    {                                         \
        PODS pod "/eviction?dryRun=All ", how \
    }
#define EVICT(pod, how)            \
    {                              \
        PODS pod "/eviction ", how \
    }

static struct bench {
    struct rig rig; /* `service` borrows only its cache */
    struct service service;
    struct loop *loop;
    struct script_server server;
    struct kube_api *api;
    struct backend backend;
    uint64_t term;
    struct evictor *evictor;
    struct evictor_counts counts;
    struct arena arena;
    char path[64];
    int log;
    size_t wanted;
    const char *text;
    bool later; /* filter's last answer asked the scheduler to try again */
} b;

static inline uint64_t term(struct backend *backend)
{
    (void)backend;
    return b.term;
}

/* ---- the cache ---- */

static inline void apply(const struct cache_event *e)
{
    struct effect fx;
    ck_assert_int_eq(cache_apply(&b.service.cache, e, 1, &fx), OK);
    cache_check(&b.service.cache);
}

struct eviction_shape {
    const char *uid;
    const char *mem;
    const char *node;
    const char *idx;
    int32_t priority;
    bool deleting;
    bool never;
};

static inline struct pod_view view_of(const struct eviction_shape *s,
                                      struct container_view *container)
{
    *container = (struct container_view){.name = STR("c"), .mem = str_of(s->mem)};
    return (struct pod_view){.uid = str_of(s->uid),
                             .namespace = STR("ns"),
                             .name = str_of(s->uid),
                             .node = str_of(s->node),
                             .phase = STR("Pending"),
                             .idx = str_of(s->idx),
                             .priority = s->priority,
                             .deleting = s->deleting,
                             .never_preempts = s->never,
                             .containers = container,
                             .n_containers = 1,
                             .n_mains = 1};
}

static inline void show(struct eviction_shape s)
{
    struct container_view c;
    apply(&(struct cache_event){.type = CACHE_POD_SET, .pod = view_of(&s, &c)});
}

static inline void gone(const char *uid)
{
    apply(&(struct cache_event){.type = CACHE_POD_GONE, .pod = {.uid = str_of(uid)}});
}

static const struct eviction_shape wants = {.uid = "wants", .mem = "12", .priority = 100};

static inline const struct pod *pod(const char *uid)
{
    return cache_pod(&b.service.cache, str_of(uid));
}

/* ---- the filter ---- */

/* The verdict on the first node. Notes the verdicts on all nodes as filter does. */
static inline enum verdict ask_of(struct eviction_shape s, const struct str *names, size_t n)
{
    struct container_view c;
    struct filter_args args = {.pod = view_of(&s, &c), .names = names, .n = n};
    struct candidates j = {.verdicts = NULL};
    arena_reset(&b.arena);
    if (evaluate(&b.service.cache, NULL, &b.service.step_budget, &args, &b.arena, false, &j,
                 NULL) != OK)
        return VERDICT_COUNT;
    b.later = evictor_filtered(b.evictor, &args, &j).n > 0;
    return (enum verdict)j.verdicts[0];
}

static inline enum verdict ask(struct eviction_shape s)
{
    static const struct str name = STR("n");
    return ask_of(s, &name, 1);
}

static inline void set_up(void)
{
    b = (struct bench){.term = 1, .path = "/tmp/cardpack-test-evictor-XXXXXX"};
    int fd = mkstemp(b.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    b.log = memfd_create("log", MFD_CLOEXEC);
    log_setup(b.log, LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    b.loop = loop_make();
    b.backend.term = term;
    b.service.backend = &b.backend;
    cache_init(&b.service.cache, (struct map_seed){1, 2});
    budgets_init(&b.service.budgets, (struct map_seed){1, 2});
    arena_init(&b.arena, MIB);
    apply(&(struct cache_event){.type = CACHE_NODE_SET,
                                .node = {.name = STR("n"), .mem = STR("32"), .count = STR("2")}});
    show((struct eviction_shape){.uid = "a", .mem = "5", .node = "n", .idx = "0"});
    show((struct eviction_shape){.uid = "b", .mem = "5", .node = "n", .idx = "0"});
    show((struct eviction_shape){.uid = "c", .mem = "10", .node = "n", .idx = "1"});
    show(wants);
}

static inline struct evictor_settings settings(void)
{
    return (struct evictor_settings){.loop = b.loop,
                                     .cache = &b.service.cache,
                                     .budgets = &b.service.budgets,
                                     .backend = &b.backend,
                                     .api = b.api,
                                     .keep_ms = 3600000,
                                     .tick_ms = 1,
                                     .pause_ms = 3600000,
                                     .look_ms = 1,
                                     .retry_ms = 1,
                                     .counts = &b.counts};
}

static inline void serve(const struct script_step *steps, size_t n)
{
    struct err e = ERR_INIT;
    script_start(&b.server, b.loop, steps, n);
    script_kubeconfig(&b.server, b.path);
    struct kube_api_settings api = {.kubeconfig = str_of(b.path), .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(b.loop, &api, &b.api, &e), &e);
    struct evictor_settings set = settings();
    ck_assert_ok(evictor_new(&set, &b.evictor, &e), &e);
}

/* Removes the pause between two tries. */
static inline void again_soon(void)
{
    struct err e = ERR_INIT;
    struct evictor_settings set = settings();
    set.pause_ms = 1;
    b.evictor = evictor_free(b.evictor);
    ck_assert_ok(evictor_new(&set, &b.evictor, &e), &e);
}

#define SERVE(...)                                            \
    static const struct script_step steps_[] = {__VA_ARGS__}; \
    serve(steps_, COUNT_OF(steps_))

static inline uint64_t count_ended(void)
{
    uint64_t ended = 0;
    for (size_t i = 0; i < COUNT_OF(b.counts.ends); i++)
        ended += b.counts.ends[i];
    return ended;
}

/* Whether a rescue is under way. */
static inline bool is_active(void)
{
    return b.counts.begun > count_ended();
}

/* Frees the evictor. Everything that began must have ended, once. */
static inline void free_evictor(void)
{
    b.evictor = evictor_free(b.evictor);
    ck_assert_uint_eq(count_ended(), b.counts.begun);
}

static inline void tear_down(void)
{
    fail_alloc_disarm();
    free_evictor();
    b.api = kube_api_free(b.api);
    if (b.server.loop != NULL)
        script_stop(&b.server);
    b.loop = loop_free(b.loop);
    budgets_done(&b.service.budgets);
    cache_done(&b.service.cache);
    arena_done(&b.arena);
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    (void)close(b.log);
    (void)unlink(b.path);
}

/* ---- what happened ---- */

static inline unsigned times_logged(const char *text)
{
    static char log[65536];
    unsigned n = 0;
    ssize_t size = pread(b.log, log, sizeof(log) - 1, 0);
    ck_assert(size >= 0 && size < (ssize_t)sizeof(log) - 1);
    log[size] = '\0';
    for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
        n++;
    return n;
}

static inline bool is_logged(void *ctx)
{
    (void)ctx;
    return times_logged(b.text) > 0;
}

static inline void run_to_log(const char *text)
{
    b.text = text;
    run_until(b.loop, is_logged, NULL);
}

/* A request has come; its answer is not read yet. */
static inline bool has_asked(void *ctx)
{
    void (*act)(void) = ctx;
    if (b.server.n_requests < b.wanted)
        return false;
    if (act != NULL)
        act();
    return true;
}

static inline void run_to_request(size_t n, void (*act)(void))
{
    b.wanted = n;
    run_until(b.loop, has_asked, (void *)act);
}

static inline bool is_idle(void *ctx)
{
    (void)ctx;
    return !is_active();
}

/* A rescue has ended, or an eviction was requested. */
static inline bool has_ended_or_asked(void *ctx)
{
    (void)ctx;
    return b.server.n_requests > 0 || (b.counts.begun > 0 && !is_active());
}

/* Runs until the rescue has failed; checks the total number of requests. */
static inline void run_to_failure(size_t requests)
{
    run_to_log("reason=EvictionForCardsFailed");
    run_until(b.loop, is_idle, NULL);
    ck_assert_uint_eq(b.server.n_requests, requests);
    ck_assert(pod("wants") == NULL || !pod("wants")->kept);
}

static inline void reserve_it(const char *uid)
{
    const struct pod *p = pod(uid);
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = p->uid,
                                        .namespace = p->namespace,
                                        .name = p->name,
                                        .node = STR("n"),
                                        .request = p->request}};
    apply(&e);
}
