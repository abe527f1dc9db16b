/*
 * Runs one kube_call at a time on a loop of its own, and stops the loop when the call is done.
 *
 * If kubectl proxy gets no answer from the API server (no connection, no credentials), it answers
 * 500 with a plain text. So may a server behind the Service, but kubectl logs only its own errors.
 * The first call may include a log-in of the kubeconfig's user, so it gets more time.
 */
#include "kubectl/client.h"

#include "kubectl/limit.h"
#include "objects/kubeconfig_server.h"

/* The address of kubectl proxy, whose socket needs none. */
#define PROXY_SERVER "http://kubectl"

static void client_on_done(struct http_call *http)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct kubectl_client *c = CONTAINER_OF(call, struct kubectl_client, call);
    loop_stop(c->loop);
}

static enum errc client_find_server(struct kubectl_client *c, struct kubeconfig *k, struct err *e)
{
    const struct kubectl_args *a = c->args;
    bool daemon = a->daemon_url.n > 0;
    if (!daemon && a->server.n == 0) {
        k->server = STR(PROXY_SERVER);
        return kubectl_proxy_start(&c->proxy, c->loop, a, e);
    }
    k->server = daemon ? a->daemon_url : a->server;
    k->ca_file = a->certificate_authority;
    k->token_file = a->token_file;
    if (k->token_file.n > 0 && !str_starts(k->server, STR("https://")))
        return err_set(e, ERR_DENIED, "--token-file: a token is sent over https only, not to %.*s",
                       STR_ARG(k->server));
    if (kubeconfig_server_check(&k->server, e) != OK)
        return err_wrap(e, "%s", daemon ? "--daemon-url" : "--server");
    return OK;
}

enum errc kubectl_client_open(struct kubectl_client *c, const struct kubectl_args *a,
                              struct err *reterr)
{
    struct kubeconfig config = {.server = STR_NULL};
    *c = (struct kubectl_client){.args = a};
    enum errc code = loop_new(&c->loop, reterr);
    if (code == OK)
        code = client_find_server(c, &config, reterr);
    struct kube_api_settings s = {.config = &config,
                                  .socket = str_of(c->proxy.socket),
                                  .user_agent = STR("kubectl-cardpack/" CARDPACK_VERSION)};
    return code == OK ? kube_api_new(c->loop, &s, &c->api, reterr) : code;
}

void kubectl_client_close(struct kubectl_client *c)
{
    kube_call_cancel(&c->call);
    kube_call_done(&c->call);
    c->api = kube_api_free(c->api);
    kubectl_proxy_stop(&c->proxy);
    if (c->loop != NULL)
        c->loop = loop_free(c->loop);
}

static bool client_is_through_kubectl(const struct kubectl_client *c)
{
    return c->proxy.socket[0] != '\0';
}

enum errc kubectl_client_namespace(const struct kubectl_client *c, struct arena *a, struct str *ret,
                                   struct err *reterr)
{
    uint64_t timeout_ms = c->args->command == KUBECTL_COMPLETE ? c->args->timeout_ms : UINT64_MAX;
    *ret = c->args->namespace.n > 0 ? c->args->namespace : STR("default");
    if (c->args->namespace.n > 0 || !client_is_through_kubectl(c))
        return OK;
    return kubectl_context_namespace(c->loop, c->args, timeout_ms, a, ret, reterr);
}

/* PROXY_SERVER means nothing to a user, so an error names the path alone. */
enum errc kubectl_client_result(const struct kubectl_client *c, struct err *reterr)
{
    enum errc code = kube_call_result(&c->call, reterr);
    char *at = code == OK || reterr == NULL || !client_is_through_kubectl(c)
                   ? NULL
                   : strstr(reterr->text, PROXY_SERVER "/");
    if (at != NULL) {
        const char *path = at + sizeof(PROXY_SERVER) - 1;
        memmove(at, path, strlen(path) + 1);
    }
    return code;
}

static enum errc client_on_chunk(struct http_call *http, struct str chunk, struct err *reterr)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct kubectl_client *c = CONTAINER_OF(call, struct kubectl_client, call);
    return c->take(c->ctx, chunk, reterr);
}

/* The time limit of a call: kubectl may log in during the first one. */
static uint64_t client_limit_of(const struct kubectl_client *c)
{
    const struct kubectl_args *a = c->args;
    bool may_log_in = client_is_through_kubectl(c) && !c->is_asked && !a->timeout_given;
    return may_log_in ? MAX_OF(a->timeout_ms, LIMIT_LOGIN_MS) : a->timeout_ms;
}

/* kubectl's own answer, as an error with its first line. Its standard error shows the others. */
static enum errc client_refused_by_kubectl(struct kubectl_client *c, struct err *e)
{
    struct str line;
    struct str rest;
    struct str reply = str_trim(kubectl_client_reply(c));
    if (!client_is_through_kubectl(c) || kubectl_client_status(c) != 500)
        return OK;
    (void)str_cut(reply, '\n', &line, &rest);
    line = str_trim(line);
    if (!kubectl_child_has_logged(&c->proxy.child, line))
        return OK;
    return err_set(e, ERR_UNAVAILABLE, "kubectl proxy: %.*s", STR_ARG(line));
}

static enum errc client_run(struct kubectl_client *c, const char *method, struct str path,
                            const struct http_call *http, struct err *reterr)
{
    kube_call_done(&c->call);
    c->call.http = *http;
    c->call.http.timeout_ms = client_limit_of(c);
    c->call.http.max_reply = LIMIT_KUBECTL_BYTES;
    c->call.http.on_done = client_on_done;
    c->is_asked = true;
    c->is_answered = false;
    kube_call_start(c->api, &c->call, method, path);
    enum errc code = loop_run(c->loop, reterr);
    if (code == OK && c->call.http.outcome != HTTP_ANSWERED) {
        code = kubectl_client_result(c, reterr);
        if (code == ERR_UNAVAILABLE && kubectl_child_is_gone(&c->proxy.child, reterr))
            (void)err_wrap(reterr, "kubectl proxy");
        return code;
    }
    if (code == OK)
        code = client_refused_by_kubectl(c, reterr);
    c->is_answered = code == OK;
    return code;
}

enum errc kubectl_client_call(struct kubectl_client *c, const char *method, struct str path,
                              struct str body, struct err *reterr)
{
    return client_run(c, method, path, &(struct http_call){.body = body}, reterr);
}

enum errc kubectl_client_has_dra(struct kubectl_client *c, bool *ret, struct err *reterr)
{
    enum errc code =
        kubectl_client_call(c, "GET", STR("/apis/resource.k8s.io/v1"), STR_NULL, reterr);
    if (code == OK)
        *ret = kubectl_client_status(c) != 404;
    return code;
}

enum errc kubectl_client_stream(struct kubectl_client *c, struct str path,
                                enum errc (*take)(void *ctx, struct str chunk, struct err *e),
                                void *ctx, struct err *reterr)
{
    c->take = take;
    c->ctx = ctx;
    return client_run(c, "GET", path,
                      &(struct http_call){.on_chunk = client_on_chunk, .bulk = true}, reterr);
}
