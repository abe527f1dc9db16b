/*
 * The pod that a GET names is read from the API server, whatever the watch has shown: it may not
 * have come yet, and a pod without a valid request is not kept in the cache.
 */
#include "explain.h"

#include "explain_write.h"
#include "log.h"
#include "mem.h"
#include "pod_read.h"

#define CALL_TIMEOUT_MS 10000
#define OVER            STR("cardpack is shutting down")

struct explain_call {
    struct backend_call call;
    struct service *service;
    struct http_request *request;
    struct explain_call *next;
};

static void respond(struct service *s, struct http_request *r, const struct pod_view *pod)
{
    struct str missing;
    if (!service_ready(s, &missing)) {
        http_respond_error(r, 503, missing);
        return;
    }
    if (explain_write(s, pod, r->arena, r->answer) != OK)
        r->answer->failed = true;
    http_request_respond(r, 200, "application/json");
}

static void unlink_call(struct explain_call *c)
{
    struct explain_call **at = &c->service->explains;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

static void call_free(struct explain_call *c)
{
    unlink_call(c);
    backend_call_done(&c->call);
    mem_free(c);
}

static void looked_up(struct backend_call *call)
{
    struct explain_call *c = CONTAINER_OF(call, struct explain_call, call);
    if (call->get == GET_FOUND)
        respond(c->service, c->request, &call->pod);
    else if (call->get == GET_GONE)
        http_respond_error(c->request, 404, STR("there is no such pod"));
    else
        http_respond_error(c->request, 502, str_of(call->err.text));
    call_free(c);
}

void explain_handle_get(struct service *s, struct http_request *r, struct str pod)
{
    struct str namespace;
    struct str name;
    struct str missing;
    if (!str_cut(pod, '/', &namespace, &name) || namespace.n == 0 || name.n == 0 ||
        memchr(name.p, '/', name.n) != NULL) {
        http_respond_error(r, 404, STR("which pod? .../explain/NAMESPACE/POD"));
        return;
    }
    if (s->closing) {
        http_respond_error(r, 503, OVER);
        return;
    }
    if (!service_ready(s, &missing)) {
        http_respond_error(r, 503, missing);
        return;
    }
    struct explain_call *c = mem_alloc(sizeof(*c));
    if (c == NULL) {
        http_respond_error(r, 503, STR("cardpack is out of memory"));
        return;
    }
    c->service = s;
    c->request = r;
    c->next = s->explains;
    s->explains = c;
    backend_call_init(&c->call, s->backend);
    c->call.timeout_ms = CALL_TIMEOUT_MS;
    c->call.done = looked_up;
    s->backend->get(s->backend, &c->call, namespace, name);
}

void explain_end(struct service *s)
{
    s->closing = true;
    while (s->explains != NULL) {
        struct explain_call *c = s->explains;
        s->backend->cancel(&c->call);
        http_respond_error(c->request, 503, OVER);
        call_free(c);
    }
}

void explain_handle_post(struct service *s, struct http_request *r)
{
    struct pod_view pod;
    struct err e = ERR_INIT;
    if (pod_read(r->body, r->arena, &pod, &e) == OK)
        respond(s, r, &pod);
    else
        http_respond_error(r, e.code == ERR_NOMEM ? 503 : 400, str_of(e.text));
}
