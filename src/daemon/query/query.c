/*
 * Answers people's questions. The pod of explain's GET is always read from the API server: the
 * watch may not have shown it yet, and the cache does not keep a pod without a valid request.
 */
#include "daemon/query/query.h"

#include "base/log.h"
#include "base/mem.h"
#include "report/explain_write.h"
#include "report/inspect_write.h"
#include "report/pod_read.h"
#include "report/whatif.h"

#define CALL_TIMEOUT_MS 10000
#define OVER            STR("cardpack is shutting down")

struct explain_call {
    struct backend_call call;
    struct service *service;
    struct http_request *request;
    struct list_link link; /* in the service's explains */
};

static void query_respond_explain(struct service *s, struct http_request *r,
                                  const struct pod_view *pod)
{
    struct str missing;
    if (!service_ready(s, &missing)) {
        http_respond_error(r, 503, missing);
        return;
    }
    struct err e = ERR_INIT;
    enum errc code = explain_write(&s->cache, &s->step_budget, pod, r->arena, r->answer, &e);
    if (code != OK && !buf_failed(r->answer)) {
        buf_clear(r->answer, SIZE_MAX);
        http_respond_error(r, 503, str_of(e.text));
        return;
    }
    http_request_respond(r, 200, "application/json");
}

static void query_call_free(struct explain_call *c)
{
    list_remove(&c->link);
    backend_call_done(&c->call);
    mem_free(c);
}

static void query_looked_up(struct backend_call *call)
{
    struct explain_call *c = CONTAINER_OF(call, struct explain_call, call);
    if (call->get == GET_FOUND)
        query_respond_explain(c->service, c->request, &call->pod);
    else if (call->get == GET_GONE)
        http_respond_error(c->request, 404, STR("there is no such pod"));
    else
        http_respond_error(c->request, 502, str_of(call->err.text));
    query_call_free(c);
}

void query_explain_get(struct service *s, struct http_request *r)
{
    struct str namespace;
    struct str name;
    struct str missing;
    if (!str_cut(r->rest, '/', &namespace, &name) || namespace.n == 0 || name.n == 0 ||
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
    if (c == NULL || backend_call_init(&c->call, s->backend) != OK) {
        mem_free(c);
        http_respond_error(r, 503, STR("cardpack is out of memory"));
        return;
    }
    c->service = s;
    c->request = r;
    list_push_back(&s->explains, &c->link);
    c->call.timeout_ms = CALL_TIMEOUT_MS;
    c->call.done = query_looked_up;
    s->backend->get(s->backend, &c->call, namespace, name);
}

void query_end(struct service *s)
{
    s->closing = true;
    LIST_FOR_EACH (struct explain_call, c, &s->explains, link) {
        s->backend->cancel(&c->call);
        http_respond_error(c->request, 503, OVER);
        query_call_free(c);
    }
}

void query_explain_post(struct service *s, struct http_request *r)
{
    struct pod_view pod;
    struct err e = ERR_INIT;
    if (pod_read(r->body, r->arena, &pod, &e) == OK)
        query_respond_explain(s, r, &pod);
    else
        http_respond_error(r, e.code == ERR_NOMEM ? 503 : 400, str_of(e.text));
}

/* ---- inspect, cards, fit ---- */

static void query_respond_inspect(struct service *s, struct http_request *r, enum inspect_form form,
                                  bool used)
{
    struct str node = r->rest.n > 0 ? r->rest : STR_NULL;
    const struct measured *m = used ? &s->measured : NULL;
    if (inspect_write(&s->cache, m, node, form, r->arena, r->answer) != OK)
        r->answer->failed = true;
    http_request_respond(r, 200, "application/json");
}

/* Answers with what is known so far: gpushare's inspect has no form for "not ready". */
void query_inspect(struct service *s, struct http_request *r)
{
    struct str used = http_request_parameter(r, "used");
    bool asked = str_eq(used, STR("true"));
    if (asked || used.p == NULL || str_eq(used, STR("false")))
        query_respond_inspect(s, r, INSPECT_GPUSHARE, asked);
    else
        http_respond_error(r, 400, STR("used is true or false"));
}

void query_cards(struct service *s, struct http_request *r)
{
    struct str missing;
    if (service_ready(s, &missing))
        query_respond_inspect(s, r, INSPECT_CARDS, true);
    else
        http_respond_error(r, 503, missing);
}

void query_fit(struct service *s, struct http_request *r)
{
    struct whatif_question q;
    struct str missing;
    struct err e = ERR_INIT;
    if (whatif_read(r->body, r->arena, &q, &e) != OK) {
        http_respond_error(r, e.code == ERR_NOMEM ? 503 : 400, str_of(e.text));
        return;
    }
    if (!service_ready(s, &missing)) {
        http_respond_error(r, 503, missing);
        return;
    }
    if (whatif_write(&s->cache, &s->step_budget, &q, r->arena, r->answer) != OK)
        r->answer->failed = true;
    http_request_respond(r, 200, "application/json");
}
