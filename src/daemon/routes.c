/* The table of routes, and the handlers that are too small for a file of their own. */
#include "base/log.h"
#include "daemon/cross_site.h"
#include "daemon/page/ui.h"
#include "daemon/query/query.h"
#include "daemon/service.h"
#include "extender/extender.h"
#include "extender/extender_preempt.h"

#include <stdio.h>

#define PREFIX  "/gpushare-scheduler"
#define TELL_MS 1000

void http_respond_error(struct http_request *r, unsigned status, struct str text)
{
    struct jwrite w;
    jwrite_init(&w, r->answer);
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("error"), text);
    jwrite_object_end(&w);
    http_request_respond(r, status, "application/json");
}

static void routes_respond_text(struct http_request *r, unsigned status, struct str text)
{
    buf_put(r->answer, text);
    http_request_respond(r, status, "text/plain; charset=utf-8");
}

static void routes_handle_bind(struct service *s, struct http_request *r)
{
    bind_handle(s->binder, r);
}

/*
 * Redirects a browser from / to the page. The redirect is not permanent, unlike that of /ui:
 * another program may use this port later, and browsers remember a permanent one.
 */
static void routes_handle_root(struct service *s, struct http_request *r)
{
    (void)s;
    http_request_header(r, "Location", "ui/");
    routes_respond_text(r, 303, STR("see ui/\n"));
}

static void routes_handle_version(struct service *s, struct http_request *r)
{
    (void)s;
    routes_respond_text(r, 200, STR(CARDPACK_VERSION));
}

/* A line for a person with curl. */
static void routes_respond_line(struct http_request *r, unsigned status, struct str text)
{
    buf_put(r->answer, text);
    routes_respond_text(r, status, STR("\n"));
}

static void routes_handle_alive(struct service *s, struct http_request *r)
{
    (void)s;
    routes_respond_line(r, 200, STR("ok"));
}

/*
 * Whether this replica could answer kube-scheduler now, or as the next leader: what a Deployment
 * waits for. A leader without its label gets no requests from the Service.
 */
static void routes_handle_ready(struct service *s, struct http_request *r)
{
    struct str text;
    bool ready = s->backend->stands_by(s->backend, &text);
    struct str trouble = leader_label_trouble(s->label);
    if (s->draining) {
        ready = false;
        text = STR("it is shutting down");
    } else if (trouble.n > 0) {
        ready = false;
        text = trouble;
        buf_put(r->answer, STR("this replica leads, and its pod can't get the leader's label: "));
    }
    routes_respond_line(r, ready ? 200 : 503, text.n > 0 ? text : STR("ok"));
}

/* Whether this replica answers kube-scheduler: for a load balancer that must find the leader. */
static void routes_handle_ready_leader(struct service *s, struct http_request *r)
{
    struct str missing = STR("it is shutting down");
    bool leads = !s->draining && service_ready(s, &missing);
    routes_respond_line(r, leads ? 200 : 503, leads ? STR("ok") : missing);
}

static void routes_handle_embedded(struct service *s, struct http_request *r)
{
    if (s->embedded != NULL)
        embedded_handle(s->embedded, r, r->rest);
    else
        http_respond_error(r, 404, STR("only the embedded cluster (--cluster) takes pods"));
}

static const struct route {
    const char *method;
    const char *path;
    bool subtree; /* also matches PATH/...; the handler finds "..." in rest */
    enum metrics_verb kind;
    void (*handle)(struct service *s, struct http_request *r);
} routes[] = {
    {"POST", PREFIX "/filter", false, METRICS_FILTER, filter_handle},
    {"POST", PREFIX "/prioritize", false, METRICS_PRIORITIZE, prioritize_handle},
    {"POST", PREFIX "/preempt", false, METRICS_PREEMPT, preempt_handle},
    {"POST", PREFIX "/bind", false, METRICS_BIND, routes_handle_bind},
    {"GET", PREFIX "/inspect", true, METRICS_INSPECT, query_inspect},
    {"GET", PREFIX "/cards", true, METRICS_CARDS, query_cards},
    {"GET", PREFIX "/explain", true, METRICS_EXPLAIN, query_explain_get},
    {"POST", PREFIX "/explain", false, METRICS_EXPLAIN, query_explain_post},
    {"POST", PREFIX "/fit", false, METRICS_FIT, query_fit},
    {"GET", "/", false, METRICS_UI, routes_handle_root},
    {"GET", "/ui", true, METRICS_UI, ui_handle},
    {"GET", "/metrics", false, METRICS_METRICS, metrics_handle},
    {"GET", "/version", false, METRICS_PROBE, routes_handle_version},
    {"GET", "/healthz", false, METRICS_PROBE, routes_handle_alive},
    {"GET", "/livez", false, METRICS_PROBE, routes_handle_alive},
    {"GET", "/readyz", false, METRICS_PROBE, routes_handle_ready},
    {"GET", "/readyz/leader", false, METRICS_PROBE, routes_handle_ready_leader},
    {"POST", "/api/v1/namespaces", true, METRICS_EMBEDDED, routes_handle_embedded},
    {"DELETE", "/api/v1/namespaces", true, METRICS_EMBEDDED, routes_handle_embedded},
};

static bool routes_is_verb(enum metrics_verb kind)
{
    return kind == METRICS_FILTER || kind == METRICS_PRIORITIZE || kind == METRICS_PREEMPT ||
           kind == METRICS_BIND;
}

/* Sets *ret_rest to the part of the path below the route. */
static bool routes_match(const struct route *route, struct str path, struct str *ret_rest)
{
    struct str prefix = str_of(route->path);
    if (!str_starts(path, prefix))
        return false;
    struct str below = str_skip(path, prefix.n);
    if (below.n > 0 && (!route->subtree || below.p[0] != '/'))
        return false;
    *ret_rest = str_skip(below, 1);
    return true;
}

static bool routes_method_matches(const struct route *route, struct str method)
{
    struct str wanted = str_of(route->method);
    return str_eq(method, wanted) || (str_eq(method, STR("HEAD")) && str_eq(wanted, STR("GET")));
}

/* Returns the route; or NULL, with all methods that the path supports in `allow`. */
static const struct route *routes_find(struct str method, struct str path, struct str *ret_rest,
                                       char allow[static 64])
{
    struct buf list = buf_on(allow, 64);
    allow[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!routes_match(&routes[i], path, ret_rest))
            continue;
        if (routes_method_matches(&routes[i], method))
            return &routes[i];
        buf_printf(&list, "%s%s", list.n == 0 ? "" : ", ", routes[i].method);
    }
    return NULL;
}

static enum metrics_verb routes_kind_of(const struct route *route)
{
    return route == NULL ? METRICS_OTHER : route->kind;
}

void routes_handle(void *service, struct http_request *r)
{
    struct service *s = service;
    char allow[64];
    char text[256];
    const struct route *route = routes_find(r->method, r->path, &r->rest, allow);
    const char *fault = route == NULL ? NULL : cross_site_fault(route->method, r);
    r->kind = (unsigned char)routes_kind_of(route);
    if (fault != NULL) {
        http_respond_error(r, 403, str_of(fault));
    } else if (route != NULL) {
        if (routes_is_verb(route->kind))
            s->backend->asked(s->backend);
        route->handle(s, r);
    } else if (allow[0] != '\0') {
        (void)snprintf(text, sizeof(text), "%.*s is not allowed here, only %s",
                       (int)MIN_OF(r->method.n, (size_t)32), r->method.p, allow);
        http_request_header(r, "Allow", allow);
        http_respond_error(r, 405, str_of(text));
    } else {
        http_respond_error(r, 404,
                           STR("no such path; see /ui/, " PREFIX "/inspect, " PREFIX
                               "/explain/NAMESPACE/POD, /metrics, /version, /readyz"));
    }
}

/*
 * Requests of people may wait while a turn of the loop takes long; kube-scheduler's verbs, the
 * kubelet's probes and /metrics may not.
 */
bool routes_may_wait(void *service, const char *method, const char *path)
{
    char allow[64];
    struct str rest;
    (void)service;
    enum metrics_verb kind =
        routes_kind_of(routes_find(str_of(method), str_of(path), &rest, allow));
    return kind != METRICS_OTHER && kind != METRICS_PROBE && kind != METRICS_METRICS &&
           !routes_is_verb(kind);
}

static bool routes_is_probe(struct str path)
{
    char allow[64];
    struct str rest;
    enum metrics_verb kind = routes_kind_of(routes_find(STR("GET"), path, &rest, allow));
    return kind == METRICS_PROBE || kind == METRICS_METRICS;
}

/*
 * Clients decide how often this happens: a metric counts each refusal, and the log gets one line a
 * second.
 */
void routes_no_memory(void *service, const struct http_request *r)
{
    struct service *s = service;
    uint64_t now_ms = loop_now_ms(s->loop);
    s->memory_untold++;
    if (s->memory_told_ms != 0 && now_ms < s->memory_told_ms + TELL_MS)
        return;
    log_warn("memory-budget is spent: requests are refused", kv_str("peer", r->peer),
             kv_uint("count", s->memory_untold), kv_uint("used", s->memory.used),
             kv_uint("memory_budget", s->memory.max));
    s->memory_told_ms = now_ms;
    s->memory_untold = 0;
}

void routes_too_large(void *service, struct http_request *r, uint64_t body_bytes)
{
    char allow[64];
    char text[128];
    struct str rest;
    (void)service;
    (void)snprintf(text, sizeof(text), "the request's body of %llu bytes is over max-body",
                   (unsigned long long)body_bytes);
    log_warn("a request's body is over max-body", kv_str("path", r->path), kv_str("peer", r->peer),
             kv_uint("bytes", body_bytes));
    enum metrics_verb kind = routes_kind_of(routes_find(r->method, r->path, &rest, allow));
    r->kind = (unsigned char)kind;
    r->outcome = OUTCOME_ERROR;
    /* kube-scheduler reads only the form of the verb, and only with status 200. */
    if (kind == METRICS_FILTER)
        extender_write_filter_error(r->answer, str_of(text));
    else if (kind == METRICS_PRIORITIZE)
        extender_write_no_priorities(r->answer);
    else if (kind == METRICS_PREEMPT)
        extender_preempt_write(r->answer, NULL, 0);
    else if (kind == METRICS_BIND)
        extender_write_bind(r->answer, str_of(text));
    if (routes_is_verb(kind))
        http_request_respond(r, 200, "application/json");
    else
        http_respond_error(r, 413, str_of(text));
}

void probe_handle(void *service, struct http_request *r)
{
    if (routes_is_probe(r->path)) {
        routes_handle(service, r);
        return;
    }
    routes_respond_text(
        r, 404,
        STR("not on this port, which has /healthz, /livez, /readyz, /readyz/leader, /version and "
            "/metrics\n"));
}

void probe_too_large(void *service, struct http_request *r, uint64_t body_bytes)
{
    (void)service;
    (void)body_bytes;
    routes_respond_text(r, 413, STR("a probe has no body\n"));
}
