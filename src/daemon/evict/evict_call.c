/* Sends one Eviction to the API server and turns its answer into an enum evict_answer. */
#include "daemon/evict/evict_call.h"

#include "daemon/backend/proof.h"
#include "io/limit.h"

#define CALL_TIMEOUT_MS 10000

static bool evict_call_says(struct str message, const char *part)
{
    return message.n > 0 && memmem(message.p, message.n, part, strlen(part)) != NULL;
}

/*
 * How Kubernetes 1.20.2 and 1.36.3 refuse an Eviction:
 *   - 429: a PodDisruptionBudget forbids it, or the server is too busy
 *   - 500: the pod has two PodDisruptionBudgets
 *   - 400: this version of the API is not registered
 *   - 403: an admission webhook refuses this pod, or the right to evict is missing
 *   - 404 without the name of an object: the resource is not served
 *
 * Only a Status of the API server proves that the eviction had no effect, as with a Binding
 * (proof.c). A load balancer in front of it answers with the same codes, and may have passed
 * the eviction on.
 */
static enum evict_answer evict_call_refusal_of(const struct kube_status *s)
{
    switch (s->code) {
    case 400:
        return evict_call_says(s->message, "no kind \"Eviction\" is registered") ? EVICT_UNSERVED
                                                                                 : EVICT_REFUSED;
    case 403:
        return evict_call_says(s->message, "\"pods/eviction\"") ? EVICT_DENIED : EVICT_REFUSED;
    case 404:
        if (proof_status_no_pod(s))
            return EVICT_GONE;
        return str_eq(s->reason, STR("NotFound")) && s->details_kind.n == 0 ? EVICT_UNSERVED
                                                                            : EVICT_FAILED;
    case 405:
        return EVICT_UNSERVED;
    case 409:
        return evict_call_says(s->message, "the UID in the precondition") ? EVICT_GONE
                                                                          : EVICT_FAILED;
    case 422:
        return EVICT_REFUSED;
    default:
        return evict_call_says(s->message, "disruption budget") ||
                       evict_call_says(s->message, "PodDisruptionBudget")
                   ? EVICT_REFUSED
                   : EVICT_FAILED;
    }
}

static enum evict_answer evict_call_verdict_of(const struct http_call *http, struct arena *arena)
{
    struct kube_status s;
    if (http->outcome != HTTP_ANSWERED)
        return EVICT_FAILED;
    if (http->status >= 200 && http->status < 300)
        return EVICT_GRANTED;
    return proof_refused(http, arena, &s) ? evict_call_refusal_of(&s) : EVICT_FAILED;
}

static void evict_call_on_done(struct http_call *http)
{
    struct evict_call *c = CONTAINER_OF(http, struct evict_call, kube.http);
    c->err = (struct err)ERR_INIT;
    (void)kube_call_result(&c->kube, &c->err);
    c->answer = evict_call_verdict_of(http, &c->arena);
    if (http->outcome == HTTP_ANSWERED && http->status == 401)
        kube_api_refresh(c->api);
    c->done(c);
}

static bool evict_call_may_send(struct http_call *http)
{
    struct evict_call *c = CONTAINER_OF(http, struct evict_call, kube.http);
    return c->may_send(c);
}

static void evict_call_fail(struct deferred *d)
{
    struct evict_call *c = CONTAINER_OF(d, struct evict_call, later);
    c->answer = EVICT_FAILED;
    (void)err_set(&c->err, ERR_NOMEM, "out of memory");
    c->done(c);
}

void evict_call_init(struct evict_call *c)
{
    arena_init(&c->arena, LIMIT_REPLY_BYTES);
    buf_init(&c->body, 4 * KIB);
    buf_init(&c->path, 4 * KIB);
    c->later.run = evict_call_fail;
}

void evict_call_done(struct evict_call *c)
{
    assert(c->later.loop == NULL);
    kube_call_done(&c->kube);
    arena_done(&c->arena);
    buf_done(&c->body);
    buf_done(&c->path);
}

void evict_call_start(struct evict_call *c, const struct eviction *e, bool dry)
{
    assert(c->may_send != NULL && c->done != NULL && c->later.loop == NULL);
    struct jwrite w;
    kube_call_done(&c->kube);
    arena_reset(&c->arena);
    buf_clear(&c->body, SIZE_MAX);
    buf_clear(&c->path, SIZE_MAX);
    jwrite_init(&w, &c->body);
    eviction_write(&w, e);
    buf_put(&c->path, STR("/api/v1/namespaces/"));
    kube_put_segment(&c->path, e->namespace);
    buf_put(&c->path, STR("/pods/"));
    kube_put_segment(&c->path, e->name);
    buf_put(&c->path, dry ? STR("/eviction?dryRun=All") : STR("/eviction"));
    if (buf_failed(&c->body) || buf_failed(&c->path)) {
        loop_defer(c->loop, &c->later);
        return;
    }
    c->kube.http.body = buf_str(&c->body);
    c->kube.http.timeout_ms = CALL_TIMEOUT_MS;
    c->kube.http.may_send = evict_call_may_send;
    c->kube.http.on_done = evict_call_on_done;
    kube_call_start(c->api, &c->kube, "POST", buf_str(&c->path));
}

void evict_call_cancel(struct evict_call *c)
{
    kube_call_cancel(&c->kube);
    deferred_cancel(&c->later);
}
