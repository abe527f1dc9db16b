/* The routes of cardpack-node: /healthz, /readyz and /metrics. */
#include "node/node_program.h"
#include "report/expo.h"

#define TEXT "text/plain; charset=utf-8"

static void node_http_text(struct http_request *r, unsigned status, struct str text)
{
    buf_put(r->answer, text);
    buf_putc(r->answer, '\n');
    http_request_respond(r, status, TEXT);
}

/* why: if it is not. */
static void node_http_is(struct http_request *r, bool good, struct str why)
{
    node_http_text(r, good ? 200 : 503, good ? STR("ok") : why);
}

void node_http_handle(void *ctx, struct http_request *r)
{
    const struct node_program *n = ctx;
    struct str why;
    bool health = str_eq(r->path, STR("/healthz"));
    bool ready = str_eq(r->path, STR("/readyz"));
    bool metrics = str_eq(r->path, STR("/metrics"));
    if (!health && !ready && !metrics) {
        node_http_text(r, 404, STR("there is /healthz, /readyz and /metrics"));
    } else if (!str_eq(r->method, STR("GET")) && !str_eq(r->method, STR("HEAD"))) {
        http_request_header(r, "Allow", "GET, HEAD");
        node_http_text(r, 405, STR("use GET"));
    } else if (health) {
        bool alive = node_program_is_alive(n, &why);
        node_http_is(r, alive, why);
    } else if (ready) {
        bool good = node_program_is_ready(n, &why);
        node_http_is(r, good, why);
    } else {
        node_metrics_write(n, r->answer);
        http_request_respond(r, 200, EXPO_CONTENT_TYPE);
    }
}

void node_http_too_large(void *ctx, struct http_request *r, uint64_t body_bytes)
{
    (void)ctx;
    (void)body_bytes;
    node_http_text(r, 413, STR("these routes take no body"));
}
