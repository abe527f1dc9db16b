#include "evict_call.h"

#include "limit.h"
#include "post_verdict.h"

#define CALL_TIMEOUT_MS 10000

static bool says(struct str message, const char *part)
{
    return message.n > 0 && memmem(message.p, message.n, part, strlen(part)) != NULL;
}

/*
 * Seen of 1.20.2 and 1.36.3. A budget says 429, as do servers that are too busy, and for a pod of
 * two budgets 500; a version that is not known is a 400; and a 403 may be a webhook's opinion of
 * this one pod.
 */
static enum evict_answer verdict_of(const struct http_call *http, struct arena *arena)
{
    if (http->outcome != HTTP_ANSWERED)
        return EVICT_FAILED;
    if (http->status >= 200 && http->status < 300)
        return EVICT_GRANTED;
    struct str message = kube_status_message(buf_str(&http->reply), arena);
    bool budget = says(message, "disruption budget") || says(message, "PodDisruptionBudget");
    switch (http->status) {
    case 400:
        return says(message, "no kind \"Eviction\" is registered") ? EVICT_UNSERVED : EVICT_REFUSED;
    case 403:
        return says(message, "\"pods/eviction\"") ? EVICT_DENIED : EVICT_REFUSED;
    case 404:
        return pod_not_found(http, arena) ? EVICT_GONE : EVICT_UNSERVED;
    case 405:
        return EVICT_UNSERVED;
    case 409:
        return says(message, "the UID in the precondition") ? EVICT_GONE : EVICT_FAILED;
    case 422:
        return EVICT_REFUSED;
    default:
        return budget ? EVICT_REFUSED : EVICT_FAILED;
    }
}

static void on_done(struct http_call *http)
{
    struct evict_call *c = CONTAINER_OF(http, struct evict_call, kube.http);
    c->err = (struct err)ERR_INIT;
    (void)kube_call_result(&c->kube, &c->err);
    c->answer = verdict_of(http, &c->arena);
    if (http->outcome == HTTP_ANSWERED && http->status == 401)
        kube_api_refresh(c->api);
    c->done(c);
}

static bool may_send(struct http_call *http)
{
    struct evict_call *c = CONTAINER_OF(http, struct evict_call, kube.http);
    return c->may_send(c);
}

static void fail(struct deferred *d)
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
    c->later.run = fail;
}

void evict_call_done(struct evict_call *c)
{
    kube_call_done(&c->kube);
    arena_done(&c->arena);
    buf_done(&c->body);
    buf_done(&c->path);
}

void evict_call_start(struct evict_call *c, const struct eviction *e, bool dry)
{
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
    c->kube.http.may_send = may_send;
    c->kube.http.on_done = on_done;
    kube_call_start(c->api, &c->kube, "POST", buf_str(&c->path));
}

void evict_call_cancel(struct evict_call *c)
{
    kube_call_cancel(&c->kube);
    deferred_cancel(&c->later);
}
