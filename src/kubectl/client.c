/* Runs one kube_call at a time on a loop of its own, and stops the loop when the call is done. */
#include "kubectl/client.h"

#include "kubectl/limit.h"
#include "report/table.h"

#include <stdio.h>

static void on_done(struct http_call *http)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct kubectl_client *c = CONTAINER_OF(call, struct kubectl_client, call);
    loop_stop(c->loop);
}

enum errc kubectl_client_open(struct kubectl_client *c, const struct kubectl_args *a,
                              const struct kube_api_settings *s, struct err *reterr)
{
    *c = (struct kubectl_client){.args = a};
    enum errc code = loop_new(&c->loop, reterr);
    if (code == OK)
        code = kube_api_new(c->loop, s, &c->api, reterr);
    return code;
}

void kubectl_client_close(struct kubectl_client *c)
{
    kube_call_cancel(&c->call);
    kube_call_done(&c->call);
    c->api = kube_api_free(c->api);
    if (c->loop != NULL)
        c->loop = loop_free(c->loop);
}

struct str kubectl_client_namespace(const struct kubectl_client *c)
{
    struct str of_context = kube_api_namespace(c->api);
    if (c->args->namespace.n > 0)
        return c->args->namespace;
    return of_context.n > 0 ? of_context : STR("default");
}

static enum errc on_chunk(struct http_call *http, struct str chunk, struct err *reterr)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct kubectl_client *c = CONTAINER_OF(call, struct kubectl_client, call);
    return c->take(c->ctx, chunk, reterr);
}

static enum errc run(struct kubectl_client *c, const char *method, struct str path,
                     const struct http_call *http, struct err *reterr)
{
    kube_call_done(&c->call);
    c->call.http = *http;
    c->call.http.timeout_ms = c->args->timeout_ms;
    c->call.http.max_reply = LIMIT_KUBECTL_BYTES;
    c->call.http.on_done = on_done;
    kube_call_start(c->api, &c->call, method, path);
    enum errc code = loop_run(c->loop, reterr);
    if (code == OK && c->call.http.outcome != HTTP_ANSWERED)
        code = kube_call_result(&c->call, reterr);
    return code;
}

enum errc kubectl_client_call(struct kubectl_client *c, const char *method, struct str path,
                              struct str body, struct err *reterr)
{
    return run(c, method, path, &(struct http_call){.body = body}, reterr);
}

enum errc kubectl_client_stream(struct kubectl_client *c, struct str path,
                                enum errc (*take)(void *ctx, struct str chunk, struct err *e),
                                void *ctx, struct err *reterr)
{
    c->take = take;
    c->ctx = ctx;
    return run(c, "GET", path, &(struct http_call){.on_chunk = on_chunk}, reterr);
}

void kubectl_say(const char *fmt, ...)
{
    char text[1024];
    char bytes[4 * sizeof(text)];
    struct buf shown = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes) - 1};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text_put_printable(&shown, str_of(text)); /* one byte becomes at most four */
    (void)fprintf(stderr, "kubectl cardpack: %.*s\n", STR_ARG(buf_str(&shown)));
}
