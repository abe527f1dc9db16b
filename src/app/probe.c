/*
 * A list of what is answered, and not of what is refused: a route that is added to routes.c is not
 * on this port until it is named here.
 */
#include "probe.h"

static const char *const paths[] = {"/healthz", "/livez", "/readyz", "/version", "/metrics"};

static void refuse(struct http_request *r, unsigned status, struct str text)
{
    buf_put(r->answer, text);
    http_request_respond(r, status, "text/plain; charset=utf-8");
}

void probe_handle(void *service, struct http_request *r)
{
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        if (str_eq(r->path, str_of(paths[i]))) {
            routes_handle(service, r);
            return;
        }
    }
    refuse(r, 404,
           STR("not on this port, which has /healthz, /livez, /readyz, /version and /metrics\n"));
}

void probe_too_large(void *service, struct http_request *r, uint64_t body_bytes)
{
    (void)service;
    (void)body_bytes;
    refuse(r, 413, STR("a probe has no body\n"));
}
