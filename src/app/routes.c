#include "cross_site.h"
#include "explain.h"
#include "extender.h"
#include "log.h"
#include "preempt.h"
#include "service.h"
#include "ui.h"
#include "whatif.h"

#include <stdio.h>

#define PREFIX "/gpushare-scheduler"

static void respond_text(struct http_request *r, unsigned status, struct str text)
{
    buf_put(r->answer, text);
    http_request_respond(r, status, "text/plain; charset=utf-8");
}

static void handle_filter(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    filter_handle(s, r);
}

static void handle_prioritize(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    prioritize_handle(s, r);
}

static void handle_preempt(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    preempt_handle(s, r);
}

static void handle_bind(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    binder_handle(s->binder, r);
}

static void handle_inspect(struct service *s, struct http_request *r, struct str rest)
{
    inspect_handle(s, r, rest.n > 0 ? rest : STR_NULL);
}

static void handle_cards(struct service *s, struct http_request *r, struct str rest)
{
    cards_handle(s, r, rest.n > 0 ? rest : STR_NULL);
}

static void handle_explain_get(struct service *s, struct http_request *r, struct str rest)
{
    explain_handle_get(s, r, rest);
}

static void handle_explain_post(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    explain_handle_post(s, r);
}

static void handle_fit(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    whatif_handle(s, r);
}

/* Who opens the bare address. Not for good, as /ui is: another program's port it may be tomorrow.
 */
static void handle_root(struct service *s, struct http_request *r, struct str rest)
{
    (void)s;
    (void)rest;
    http_request_header(r, "Location", "ui/");
    respond_text(r, 303, STR("see ui/\n"));
}

static void handle_metrics(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    metrics_handle(s, r);
}

static void handle_version(struct service *s, struct http_request *r, struct str rest)
{
    (void)s;
    (void)rest;
    respond_text(r, 200, STR(CARDPACK_VERSION));
}

static void handle_alive(struct service *s, struct http_request *r, struct str rest)
{
    (void)s;
    (void)rest;
    respond_text(r, 200, STR("ok"));
}

static void handle_ready(struct service *s, struct http_request *r, struct str rest)
{
    struct str missing;
    (void)rest;
    bool ready = service_ready(s, &missing);
    if (s->draining) {
        ready = false;
        missing = STR("it is shutting down");
    }
    respond_text(r, ready ? 200 : 503, ready ? STR("ok") : missing);
}

static void handle_cluster(struct service *s, struct http_request *r, struct str rest)
{
    if (s->cluster != NULL)
        cluster_handle(s->cluster, r, rest);
    else
        http_respond_error(r, 404, STR("only the embedded cluster (--cluster) takes pods"));
}

/* What a body that can't be taken is answered with: verbs in their own form, which is all that
 * kube-scheduler reads, and with 200, without which it reads nothing. */
enum verb {
    VERB_NONE,
    VERB_FILTER,
    VERB_PRIORITIZE,
    VERB_PREEMPT,
    VERB_BIND,
};

static const struct route {
    const char *method;
    const char *path;
    bool subtree; /* also what lies below: PATH/... */
    enum verb verb;
    void (*handle)(struct service *s, struct http_request *r, struct str rest);
} routes[] = {
    {"POST", PREFIX "/filter", false, VERB_FILTER, handle_filter},
    {"POST", PREFIX "/prioritize", false, VERB_PRIORITIZE, handle_prioritize},
    {"POST", PREFIX "/preempt", false, VERB_PREEMPT, handle_preempt},
    {"POST", PREFIX "/bind", false, VERB_BIND, handle_bind},
    {"GET", PREFIX "/inspect", true, VERB_NONE, handle_inspect},
    {"GET", PREFIX "/cards", true, VERB_NONE, handle_cards},
    {"GET", PREFIX "/explain", true, VERB_NONE, handle_explain_get},
    {"POST", PREFIX "/explain", false, VERB_NONE, handle_explain_post},
    {"POST", PREFIX "/fit", false, VERB_NONE, handle_fit},
    {"GET", "/", false, VERB_NONE, handle_root},
    {"GET", "/ui", true, VERB_NONE, ui_handle},
    {"GET", "/metrics", false, VERB_NONE, handle_metrics},
    {"GET", "/version", false, VERB_NONE, handle_version},
    {"GET", "/healthz", false, VERB_NONE, handle_alive},
    {"GET", "/livez", false, VERB_NONE, handle_alive},
    {"GET", "/readyz", false, VERB_NONE, handle_ready},
    {"POST", "/api/v1/namespaces", true, VERB_NONE, handle_cluster},
    {"DELETE", "/api/v1/namespaces", true, VERB_NONE, handle_cluster},
};

/* What lies below the route's path; absent where the path is another. */
static bool match(const struct route *route, struct str path, struct str *ret_rest)
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

static bool method_matches(const struct route *route, struct str method)
{
    struct str wanted = str_of(route->method);
    return str_eq(method, wanted) || (str_eq(method, STR("HEAD")) && str_eq(wanted, STR("GET")));
}

/* The route; or NULL, with every method that the path has in *ret_allow. */
static const struct route *find(const struct http_request *r, struct str *ret_rest,
                                char allow[static 64])
{
    struct buf list = {.p = allow, .cap = 64, .max = 63};
    allow[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!match(&routes[i], r->path, ret_rest))
            continue;
        if (method_matches(&routes[i], r->method))
            return &routes[i];
        buf_printf(&list, "%s%s", list.n == 0 ? "" : ", ", routes[i].method);
    }
    return NULL;
}

/* What the request counts as. */
static enum metrics_verb kind_of(const struct route *route)
{
    static const struct {
        const char *path;
        enum metrics_verb kind;
    } others[] = {
        {PREFIX "/inspect", METRICS_INSPECT},
        {PREFIX "/explain", METRICS_EXPLAIN},
        {PREFIX "/fit", METRICS_FIT},
        {PREFIX "/cards", METRICS_CARDS},
        {"/", METRICS_PAGE},
        {"/ui", METRICS_PAGE},
        {"/api/v1/namespaces", METRICS_CLUSTER},
        {"/metrics", METRICS_METRICS},
        {"/version", METRICS_PROBE},
        {"/healthz", METRICS_PROBE},
        {"/livez", METRICS_PROBE},
        {"/readyz", METRICS_PROBE},
    };

    static const enum metrics_verb verbs[] = {[VERB_FILTER] = METRICS_FILTER,
                                              [VERB_PRIORITIZE] = METRICS_PRIORITIZE,
                                              [VERB_PREEMPT] = METRICS_PREEMPT,
                                              [VERB_BIND] = METRICS_BIND};

    if (route == NULL)
        return METRICS_OTHER;
    if (route->verb != VERB_NONE)
        return verbs[route->verb];
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (str_eq(str_of(route->path), str_of(others[i].path)))
            return others[i].kind;
    }
    return METRICS_OTHER;
}

void routes_handle(void *service, struct http_request *r)
{
    struct service *s = service;
    char allow[64];
    char text[256];
    struct str rest;
    const struct route *route = find(r, &rest, allow);
    const char *fault = route == NULL ? NULL : cross_site_fault(route->method, r);
    r->kind = (unsigned char)kind_of(route);
    if (fault != NULL) {
        http_respond_error(r, 403, str_of(fault));
    } else if (route != NULL) {
        if (route->verb != VERB_NONE)
            s->backend->asked(s->backend);
        route->handle(s, r, rest);
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
    const struct route *route = find(r, &rest, allow);
    enum verb verb = route == NULL ? VERB_NONE : route->verb;
    r->kind = (unsigned char)kind_of(route);
    r->outcome = OUTCOME_ERROR;
    switch (verb) {
    case VERB_FILTER:
        extender_write_filter_error(r->answer, str_of(text));
        http_request_respond(r, 200, "application/json");
        return;
    case VERB_PRIORITIZE:
        extender_write_no_priorities(r->answer);
        http_request_respond(r, 200, "application/json");
        return;
    case VERB_PREEMPT:
        preempt_write(r->answer, NULL, 0);
        http_request_respond(r, 200, "application/json");
        return;
    case VERB_BIND:
        extender_write_bind(r->answer, str_of(text));
        http_request_respond(r, 200, "application/json");
        return;
    case VERB_NONE:
        http_respond_error(r, 413, str_of(text));
        return;
    }
}
