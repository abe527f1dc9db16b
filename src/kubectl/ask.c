/*
 * Asks the daemon through the API server's Service proxy. The proxy's path names the Service's
 * port, with "https:" before the Service's name if the daemon uses TLS. Without the right to get
 * Services it is unknown whether it does. So plain HTTP is tried first, and then TLS if a
 * connection was made without a valid answer.
 *
 * An error of the daemon is recognized by its form, {"error": ...}. Any other answer that is not
 * 200 comes from the API server or from another server behind the Service.
 */
#include "kubectl/ask.h"

#include "base/limit.h"
#include "kubectl/say.h"
#include "json/jread.h"
#include "json/jwrite.h"

#define PREFIX "/gpushare-scheduler"

/* The path on the daemon. */
static void ask_put_tail(struct buf *path, const struct kubectl_question *q)
{
    if (q->command == KUBECTL_DOCTOR) {
        buf_put(path, STR("/readyz"));
    } else if (q->command == KUBECTL_VERSION) {
        buf_put(path, STR("/version"));
    } else if (q->command == KUBECTL_TOP || q->command == KUBECTL_CARDS) {
        buf_put(path, STR(PREFIX "/cards"));
        if (q->node.n > 0) {
            buf_putc(path, '/');
            kube_put_segment(path, q->node);
        }
    } else if (q->command == KUBECTL_FIT) {
        buf_put(path, STR(PREFIX "/fit"));
    } else {
        buf_put(path, STR(PREFIX "/explain"));
        if (q->pod == NULL) {
            buf_putc(path, '/');
            kube_put_segment(path, q->namespace);
            buf_putc(path, '/');
            kube_put_segment(path, q->name);
        }
    }
}

static void ask_put_path(struct buf *path, const struct kubectl_args *a,
                         const struct kubectl_question *q, bool tls)
{
    struct str name;
    struct str port;
    if (a->daemon_url.n == 0) {
        if (!str_cut(a->service_name, ':', &name, &port))
            port = STR("http");
        buf_put(path, STR("/api/v1/namespaces/"));
        kube_put_segment(path, a->service_namespace);
        buf_put(path, STR("/services/"));
        buf_put(path, tls ? STR("https:") : STR(""));
        kube_put_escaped(path, name);
        buf_putc(path, ':');
        kube_put_escaped(path, port);
        buf_put(path, STR("/proxy"));
    }
    ask_put_tail(path, q);
}

/* The text of the daemon's {"error": "..."}; absent: not an answer of the daemon. */
static struct str ask_daemon_error(struct str reply, struct arena *a)
{
    struct jread r;
    struct str key;
    struct str text = STR_NULL;
    bool other = false;
    jread_init(&r, reply, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        return STR_NULL;
    jread_object (&r, key) {
        if (str_eq(key, STR("error")) && jread_type(&r) == JTYPE_STRING) {
            text = jread_str(&r);
        } else {
            other = true;
            jread_skip(&r);
        }
    }
    return jread_finish(&r, NULL) == OK && !other ? text : STR_NULL;
}

/* Whether the daemon's refusal is final: to read the API server directly would give the same. */
static bool ask_is_final(const struct kubectl_question *q, unsigned status)
{
    return status == 400 || (status == 404 && q->command == KUBECTL_EXPLAIN && q->pod == NULL);
}

static enum errc ask_refused(const struct kubectl_question *q, unsigned status, struct str why,
                             struct err *e)
{
    if (status == 404)
        return err_set(e, ERR_NOTFOUND, "pod %.*s/%.*s: %.*s", STR_ARG(q->namespace),
                       STR_ARG(q->name), STR_ARG(why));
    return err_set(e, ERR_SYNTAX, "%.*s", STR_ARG(why));
}

/* One try. *ret_again: a connection was made, but there was no answer of the daemon. */
static enum errc ask_try_daemon(struct kubectl_client *c, const struct kubectl_question *q,
                                bool tls, struct arena *a, struct str *ret, bool *ret_again,
                                struct err *e)
{
    struct buf path;
    struct str body = STR_NULL;
    buf_init(&path, LIMIT_FILE_BYTES);
    ask_put_path(&path, c->args, q, tls);
    if (q->pod != NULL)
        body = q->command == KUBECTL_FIT ? kubectl_fit_body(q, a) : q->pod->json;
    *ret_again = false;
    enum errc code =
        buf_failed(&path) ? err_set(e, ERR_NOMEM, "out of memory")
        : q->pod != NULL && body.p == NULL
            ? err_set(e, ERR_LIMIT, "the pod is too large")
            : kubectl_client_call(c, q->pod == NULL ? "GET" : "POST", buf_str(&path), body, e);
    buf_done(&path);
    if (code != OK)
        return code;
    unsigned status = kubectl_client_status(c);
    struct str reply = kubectl_client_reply(c);
    struct str why = status == 200 ? STR_NULL : ask_daemon_error(reply, a);
    if (status == 200) {
        *ret = arena_dup(a, reply);
        return ret->p == NULL ? err_set(e, ERR_LIMIT, "the daemon's answer is too large") : OK;
    }
    if (why.p != NULL && ask_is_final(q, status))
        return ask_refused(q, status, why, e);
    if (why.p != NULL)
        return err_set(e, ERR_UNAVAILABLE, "the daemon says %u: %.*s", status, STR_ARG(why));
    (void)kubectl_client_result(c, e);
    *ret_again = status == 400 || status >= 500; /* Kubernetes 1.20: 500 for a broken connection */
    e->code = ERR_UNAVAILABLE;
    return ERR_UNAVAILABLE;
}

/* The Service has no endpoints: TLS would not help. */
static bool ask_has_no_endpoint(const struct err *e)
{
    return strstr(e->text, "no endpoints available") != NULL;
}

enum errc kubectl_ask_daemon(struct kubectl_client *c, const struct kubectl_question *q,
                             struct arena *a, struct str *ret, struct err *reterr)
{
    struct err with_tls = ERR_INIT;
    bool again = false;
    enum errc code = ask_try_daemon(c, q, false, a, ret, &again, reterr);
    if (code != ERR_UNAVAILABLE || !again || c->args->daemon_url.n > 0 ||
        ask_has_no_endpoint(reterr))
        return code;
    code = ask_try_daemon(c, q, true, a, ret, &again, &with_tls);
    if (code != OK && !again) /* the daemon uses TLS, and this is its error */
        *reterr = with_tls;
    return code;
}

enum errc kubectl_ask(struct kubectl_client *c, const struct kubectl_question *q, struct arena *a,
                      struct str *ret, struct err *reterr)
{
    struct err why = ERR_INIT;
    if (c->args->way == KUBECTL_DIRECT)
        return kubectl_ask_directly(c, q, a, ret, reterr);
    enum errc code = kubectl_ask_daemon(c, q, a, ret, reterr);
    /* Without an answer the API server itself is not reachable. */
    bool elsewhere = code == ERR_UNAVAILABLE && c->is_answered && c->args->daemon_url.n == 0;
    if (!elsewhere || q->command == KUBECTL_VERSION)
        return code;
    if (c->args->way == KUBECTL_DAEMON_ONLY)
        return err_wrap(reterr, "no answer from the daemon, and --direct=false");
    kubectl_say_once(
        "no answer from the daemon (%s): reading the API server alone, as with --direct",
        reterr->text);
    code = kubectl_ask_directly(c, q, a, ret, &why);
    *reterr = why;
    return code;
}
