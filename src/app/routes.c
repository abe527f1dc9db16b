#include "extender.h"
#include "log.h"
#include "service.h"

#include <stdio.h>

#define PREFIX "/gpushare-scheduler"

static void respond_text(struct http_request *r, unsigned status, struct str text)
{
    buf_put(r->answer, text);
    http_request_respond(r, status, "text/plain; charset=utf-8");
}

static void respond_error(struct http_request *r, unsigned status, struct str text)
{
    struct jwrite w;
    jwrite_init(&w, r->answer);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("error"));
    jwrite_str(&w, text);
    jwrite_object_end(&w);
    http_request_respond(r, status, "application/json");
}

static void handle_filter(struct service *s, struct http_request *r, struct str rest)
{
    (void)rest;
    filter_handle(s, r);
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
    respond_text(r, ready ? 200 : 503, ready ? STR("ok") : missing);
}

static void handle_cluster(struct service *s, struct http_request *r, struct str rest)
{
    if (s->cluster != NULL)
        cluster_handle(s->cluster, r, rest);
    else
        respond_error(r, 404, STR("only the embedded cluster (--cluster) takes pods"));
}

/* What a body that can't be taken is answered with: verbs in their own form, which is all that
 * kube-scheduler reads, and with 200, without which it reads nothing. */
enum verb {
    VERB_NONE,
    VERB_FILTER,
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
    {"POST", PREFIX "/bind", false, VERB_BIND, handle_bind},
    {"GET", PREFIX "/inspect", true, VERB_NONE, handle_inspect},
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

void routes_handle(void *service, struct http_request *r)
{
    struct service *s = service;
    char allow[64];
    char text[256];
    struct str rest;
    const struct route *route = find(r, &rest, allow);
    if (route != NULL) {
        if (route->verb != VERB_NONE)
            s->backend->asked(s->backend);
        route->handle(s, r, rest);
    } else if (allow[0] != '\0') {
        (void)snprintf(text, sizeof(text), "%.*s is not allowed here, only %s",
                       (int)MIN_OF(r->method.n, (size_t)32), r->method.p, allow);
        http_request_header(r, "Allow", allow);
        respond_error(r, 405, str_of(text));
    } else {
        respond_error(r, 404, STR("no such path; see " PREFIX "/inspect, /version, /readyz"));
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
    switch (verb) {
    case VERB_FILTER:
        extender_write_filter_error(r->answer, str_of(text));
        http_request_respond(r, 200, "application/json");
        return;
    case VERB_BIND:
        extender_write_bind(r->answer, str_of(text));
        http_request_respond(r, 200, "application/json");
        return;
    case VERB_NONE:
        respond_error(r, 413, str_of(text));
        return;
    }
}
