/*
 * The proxy's path names the Service's port, and "https:" before its name where the daemon speaks
 * TLS. Which it does is not to be read without a right to get Services, so plain HTTP is tried, and
 * TLS where a connection was made and no answer came of it.
 *
 * What is an answer of the daemon's is told by its form, {"error": ...}: all else that is no 200
 * comes from the API server, or from whatever else stands behind that name.
 */
#include "kubectl_ask.h"

#include "jread.h"
#include "jwrite.h"
#include "limit.h"
#include "table.h"

#include <stdio.h>

#define PREFIX "/gpushare-scheduler"

void kubectl_say(const char *fmt, ...)
{
    char text[1024];
    char bytes[4 * sizeof(text)];
    struct buf shown = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes) - 1};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text_put_printable(&shown, str_of(text)); /* four bytes of one at the most */
    (void)fprintf(stderr, "kubectl cardpack: %.*s\n", STR_ARG(buf_str(&shown)));
}

struct str kubectl_fit_body(const struct kubectl_question *q, struct arena *a)
{
    struct buf body;
    struct jwrite w;
    buf_init(&body, 2 * LIMIT_OBJECT_BYTES);
    jwrite_init(&w, &body);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("replicas"));
    jwrite_u64(&w, q->replicas);
    jwrite_key(&w, STR("pod"));
    jwrite_raw(&w, q->pod->json);
    jwrite_object_end(&w);
    return arena_keep(a, &body);
}

/* The path behind the daemon's address. */
static void put_tail(struct buf *path, const struct kubectl_question *q)
{
    if (q->command == KUBECTL_VERSION) {
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

static void put_path(struct buf *path, const struct kubectl_args *a,
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
    put_tail(path, q);
}

/* {"error": "..."} of the daemon's; absent: it is not the daemon's answer. */
static struct str daemon_error(struct str reply, struct arena *a)
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

/* Whether the daemon's own refusal is the last word, as the API server would not say otherwise. */
static bool is_final(const struct kubectl_question *q, unsigned status)
{
    return status == 400 || (status == 404 && q->command == KUBECTL_EXPLAIN && q->pod == NULL);
}

static enum errc refused(const struct kubectl_question *q, unsigned status, struct str why,
                         struct err *e)
{
    if (status == 404)
        return err_set(e, ERR_NOTFOUND, "pod %.*s/%.*s: %.*s", STR_ARG(q->namespace),
                       STR_ARG(q->name), STR_ARG(why));
    return err_set(e, ERR_SYNTAX, "%.*s", STR_ARG(why));
}

/* One try. *ret_again: a connection was made, and what came of it is no answer. */
static enum errc try_daemon(struct kubectl_client *c, const struct kubectl_question *q, bool tls,
                            struct arena *a, struct str *ret, bool *ret_again, struct err *e)
{
    struct buf path;
    struct str body = STR_NULL;
    buf_init(&path, LIMIT_FILE_BYTES);
    put_path(&path, c->args, q, tls);
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
    struct str why = status == 200 ? STR_NULL : daemon_error(reply, a);
    if (status == 200) {
        *ret = arena_dup(a, reply);
        return ret->p == NULL ? err_set(e, ERR_LIMIT, "the daemon's answer is too large") : OK;
    }
    if (why.p != NULL && is_final(q, status))
        return refused(q, status, why, e);
    if (why.p != NULL)
        return err_set(e, ERR_UNAVAILABLE, "the daemon says %u: %.*s", status, STR_ARG(why));
    (void)kube_call_result(&c->call, e);
    *ret_again = status == 400 || status >= 500; /* 1.20 says 500 of a connection that broke */
    e->code = ERR_UNAVAILABLE;
    return ERR_UNAVAILABLE;
}

/* Nobody behind the Service: TLS would change nothing. */
static bool has_nobody(const struct err *e)
{
    return strstr(e->text, "no endpoints available") != NULL;
}

enum errc kubectl_ask_daemon(struct kubectl_client *c, const struct kubectl_question *q,
                             struct arena *a, struct str *ret, struct err *reterr)
{
    struct err with_tls = ERR_INIT;
    bool again = false;
    enum errc code = try_daemon(c, q, false, a, ret, &again, reterr);
    if (code != ERR_UNAVAILABLE || !again || c->args->daemon_url.n > 0 || has_nobody(reterr))
        return code;
    code = try_daemon(c, q, true, a, ret, &again, &with_tls);
    if (code != OK && !again) /* it does speak TLS, and that is what it says */
        *reterr = with_tls;
    return code;
}

/* What the call itself came to, where nothing was answered: the API server is silent, then. */
static bool is_answered(const struct kubectl_client *c)
{
    return c->call.http.outcome == HTTP_ANSWERED;
}

enum errc kubectl_ask(struct kubectl_client *c, const struct kubectl_question *q, struct arena *a,
                      struct str *ret, struct err *reterr)
{
    struct err why = ERR_INIT;
    if (c->args->way == KUBECTL_DIRECT)
        return kubectl_ask_directly(c, q, a, ret, reterr);
    enum errc code = kubectl_ask_daemon(c, q, a, ret, reterr);
    bool elsewhere = code == ERR_UNAVAILABLE && is_answered(c) && c->args->daemon_url.n == 0;
    if (!elsewhere || q->command == KUBECTL_VERSION)
        return code;
    if (c->args->way == KUBECTL_DAEMON_ONLY)
        return err_wrap(reterr, "no answer from the daemon, and --direct=false");
    kubectl_say("no answer from the daemon (%s): reading the API server alone", reterr->text);
    code = kubectl_ask_directly(c, q, a, ret, &why);
    *reterr = why;
    return code;
}
