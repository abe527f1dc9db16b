/*
 * Joins the reflectors, the ingest into the cache and the leadership, and checks immediately before
 * a Binding is sent that it still may be.
 */
#include "daemon/backend/kube_backend.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/backend/leadership.h"
#include "daemon/backend/post_deadline.h"
#include "daemon/backend/proof.h"
#include "kube/ingest.h"
#include "kube/reflector.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * A watch without any byte for so long is dead: the API server sends a bookmark about every minute.
 */
#define WATCH_QUIET_MS 180000

/* Time for the watch to name the pods that a list lacked because they are younger. */
#define PROVE_AFTER_MS 10000

struct feed {
    struct kube_backend *backend;
    enum cache_kind kind;
    void (*ingest)(struct ingest *in, struct str json, bool gone);
    struct reflector *reflector;
    struct ingest_loss loss;
};

/* One call to the API server. */
struct backend_task {
    struct backend_call *call;
    struct kube_call kube;
    struct buf body;
};

struct kube_backend {
    struct backend interface;
    struct loop *loop;
    struct kube_api *api;
    struct ingest ingest;
    void (*show)(void *ctx, const struct pod_view *pod, const struct err *fault);
    void *show_ctx;
    struct feed feeds[CACHE_KINDS];
    struct dra_feed *dra;           /* NULL: not wanted */
    struct kube_backend_counts own; /* used if the settings have no counts */
    struct kube_backend_counts *counts;
    struct leadership *leadership;
    void (*changed)(void *ctx); /* of the settings */
    void *changed_ctx;
    uint64_t post_deadline_ms;
    bool read_wanted; /* the leadership waits for a list of pods that begins from now on */
    bool read_begun;
    size_t posting;      /* Bindings under way */
    struct timer prove;  /* see kube_backend_prove() */
    struct timer relist; /* armed when the cache lacks an object */
};

/* ---- the feeds of the cache ---- */

static void kube_backend_note_loss(struct feed *f)
{
    struct kube_backend *b = f->backend;
    uint64_t again_ms = ingest_note_loss(&b->ingest, f->kind, &f->loss);
    if (again_ms > 0 && !timer_armed(&b->relist))
        timer_arm(b->loop, &b->relist, again_ms);
}

static void kube_backend_on_begin(void *ctx)
{
    struct feed *f = ctx;
    f->loss.in_list = false;
    if (f->kind == CACHE_PODS)
        f->backend->read_begun = f->backend->read_wanted;
    ingest_list_begin(&f->backend->ingest, f->kind);
}

/* A replica that does not lead leaves the pods to the one that does. */
static void kube_backend_show(void *ctx, const struct pod_view *pod, const struct err *fault)
{
    struct kube_backend *b = ctx;
    if (b->interface.term(&b->interface) > 0)
        b->show(b->show_ctx, pod, fault);
}

static void kube_backend_on_change(void *ctx, enum reflector_change change, struct str object)
{
    struct feed *f = ctx;
    f->ingest(&f->backend->ingest, object, change == REFLECTOR_GONE);
    kube_backend_note_loss(f);
}

static void kube_backend_on_end(void *ctx)
{
    struct feed *f = ctx;
    struct kube_backend *b = f->backend;
    if (ingest_list_end(&b->ingest, f->kind) > 0)
        timer_arm(b->loop, &b->prove, PROVE_AFTER_MS);
    kube_backend_note_loss(f);
    f->loss.lacks = f->loss.in_list;
    /* A list with a lost object is not complete and will be repeated. */
    if (f->kind == CACHE_PODS && b->read_begun && !f->loss.lacks) {
        b->read_wanted = b->read_begun = false;
        leadership_read(b->leadership);
    }
}

/*
 * Runs some time after a list that lacked confirmed pods. By now the watch has named the pods that
 * are younger than the list. The others were deleted before the list was read, and only another
 * list proves that.
 */
static void kube_backend_prove(struct timer *t)
{
    struct kube_backend *b = CONTAINER_OF(t, struct kube_backend, prove);
    size_t cursor = 0;
    for (const struct pod *p = cache_next_pod(b->ingest.cache, &cursor); p != NULL;
         p = cache_next_pod(b->ingest.cache, &cursor)) {
        if (p->state == POD_CONFIRMED && p->missing) {
            log_info("a confirmed pod is in no list: reading the pods again",
                     kv_str("namespace", p->namespace), kv_str("pod", p->name));
            reflector_relist(b->feeds[CACHE_PODS].reflector);
            return;
        }
    }
}

/* Lists everything again: only complete lists make the cache correct. */
static void kube_backend_relist_all(struct timer *t)
{
    struct kube_backend *b = CONTAINER_OF(t, struct kube_backend, relist);
    for (size_t i = 0; i < COUNT_OF(b->feeds); i++)
        reflector_relist(b->feeds[i].reflector);
}

static enum errc kube_backend_feed_start(struct kube_backend *b, enum cache_kind kind,
                                         unsigned page_size, struct err *reterr)
{
    static const struct {
        struct str path;
        struct str kind;
        const char *of;
        struct str selector;
        void (*ingest)(struct ingest *in, struct str json, bool gone);
    } table[] = {
        [CACHE_NODES] = {STR("/api/v1/nodes"), STR("NodeList"), "nodes", {NULL, 0}, ingest_node},
        [CACHE_PODS] = {STR("/api/v1/pods"), STR("PodList"), "pods", INGEST_POD_SELECTOR,
                        ingest_pod},
        [CACHE_HEALTH] = {STR("/api/v1/namespaces/kube-system/configmaps"),
                          STR("ConfigMapList"),
                          "configmaps",
                          {NULL, 0},
                          ingest_configmap},
    };
    struct feed *f = &b->feeds[kind];
    *f = (struct feed){.backend = b, .kind = kind, .ingest = table[kind].ingest};
    struct reflector_settings settings = {.path = table[kind].path,
                                          .kind = table[kind].kind,
                                          .selector = table[kind].selector,
                                          .page_size = page_size,
                                          .quiet_ms = WATCH_QUIET_MS,
                                          .counts = &b->counts->feeds[kind]};
    struct reflector_sink sink = {.begin = kube_backend_on_begin,
                                  .change = kube_backend_on_change,
                                  .end = kube_backend_on_end,
                                  .of = table[kind].of,
                                  .ctx = f};
    return reflector_new(b->loop, b->api, &settings, &sink, &f->reflector, reterr);
}

/* ---- whether this replica may decide ---- */

static void kube_backend_read_anew(void *ctx)
{
    struct kube_backend *b = ctx;
    b->read_wanted = true;
    b->read_begun = false;
    reflector_relist(b->feeds[CACHE_PODS].reflector);
}

/*
 * Whether no Binding of this replica is under way or in doubt: none is posted and no card is
 * reserved. A pod that the watch has shown bound may still have a second copy under way, which
 * `posting` counts.
 */
static bool kube_backend_idle(void *ctx)
{
    const struct kube_backend *b = ctx;
    size_t cursor = 0;
    if (b->posting > 0)
        return false;
    for (const struct pod *p = cache_next_pod(b->ingest.cache, &cursor); p != NULL;
         p = cache_next_pod(b->ingest.cache, &cursor)) {
        if (p->state == POD_RESERVED)
            return false;
    }
    return true;
}

/* Which of the cache's lists is not in yet; empty: none. */
static struct str kube_backend_missing_list(const struct kube_backend *b)
{
    const struct reflector *health = b->feeds[CACHE_HEALTH].reflector;
    if (!reflector_synced(b->feeds[CACHE_NODES].reflector))
        return STR("the first list of nodes is not in yet");
    if (!reflector_synced(b->feeds[CACHE_PODS].reflector))
        return STR("the first list of pods is not in yet");
    if (!reflector_synced(health) && !reflector_denied(health))
        return STR("the first list of unhealthy cards is not in yet");
    return dra_feed_missing(b->dra);
}

static struct str kube_backend_lost_object(const struct kube_backend *b)
{
    for (size_t i = 0; i < COUNT_OF(b->feeds); i++) {
        if (b->feeds[i].loss.lacks)
            return b->feeds[i].loss.torn
                       ? STR("an object of the API server can't be read: the log names it")
                       : STR("memory was short, and the API server's objects are read again");
    }
    return dra_feed_lost(b->dra);
}

static bool kube_backend_ready(struct backend *interface, struct str *ret_missing)
{
    struct kube_backend *b = CONTAINER_OF(interface, struct kube_backend, interface);
    *ret_missing = kube_backend_missing_list(b);
    if (ret_missing->n == 0)
        *ret_missing = kube_backend_lost_object(b);
    if (ret_missing->n == 0 && leadership_term(b->leadership) == 0)
        *ret_missing = leadership_why_not(b->leadership);
    return ret_missing->n == 0;
}

static bool kube_backend_stands_by(struct backend *interface, struct str *ret_text)
{
    struct kube_backend *b = CONTAINER_OF(interface, struct kube_backend, interface);
    *ret_text = kube_backend_missing_list(b);
    if (ret_text->n == 0)
        *ret_text = kube_backend_lost_object(b);
    if (ret_text->n > 0)
        return false;
    if (leadership_term(b->leadership) == 0)
        *ret_text = leadership_why_not(b->leadership);
    return leadership_takes_part(b->leadership);
}

static void kube_backend_on_leadership(void *ctx)
{
    const struct kube_backend *b = ctx;
    if (b->changed != NULL)
        b->changed(b->changed_ctx);
}

static uint64_t kube_backend_term(struct backend *interface)
{
    struct str missing;
    const struct kube_backend *b = CONTAINER_OF(interface, struct kube_backend, interface);
    return kube_backend_ready(interface, &missing) ? leadership_term(b->leadership) : 0;
}

static void kube_backend_asked(struct backend *interface)
{
    struct kube_backend *b = CONTAINER_OF(interface, struct kube_backend, interface);
    leadership_asked(b->leadership);
}

/* ---- Bindings and reads ---- */

/*
 * Called at the last moment at which a Binding can be held back: its term may have ended, or the
 * cache may have lost an object, since the decision.
 */
static bool kube_backend_may_post(struct backend_call *c)
{
    return c->term != 0 && kube_backend_term(c->backend) == c->term;
}

static bool kube_backend_may_send(struct http_call *http)
{
    return kube_backend_may_post(CONTAINER_OF(http, struct backend_task, kube.http)->call);
}

static void kube_backend_refuse_post(struct backend_call *c)
{
    c->post = POST_REFUSED;
    c->unsent = true;
    (void)err_set(&c->err, ERR_UNAVAILABLE,
                  "this replica does not lead any more, or has to read the objects again");
}

static void kube_backend_post_done(struct http_call *http)
{
    struct backend_call *c = CONTAINER_OF(http, struct backend_task, kube.http)->call;
    struct kube_backend *b = CONTAINER_OF(c->backend, struct kube_backend, interface);
    assert(b->posting > 0);
    b->posting--;
    c->post = proof_of_post(http, &c->arena);
    c->retry_after_ms = http->retry_after_ms;
    c->err = (struct err)ERR_INIT;
    if (c->post != POST_CREATED)
        (void)kube_call_result(&c->task->kube, &c->err);
    if (c->post == POST_NOT_SENT && !kube_backend_may_post(c))
        kube_backend_refuse_post(c);
    c->done(c);
}

static void kube_backend_start(struct backend_call *c, const char *method, struct str path,
                               void (*done)(struct http_call *))
{
    struct kube_backend *b = CONTAINER_OF(c->backend, struct kube_backend, interface);
    c->task->kube.http.timeout_ms = c->timeout_ms;
    c->task->kube.http.on_done = done;
    kube_call_start(b->api, &c->task->kube, method, path);
}

static struct str kube_backend_pod_path(struct backend_call *c, struct str namespace,
                                        struct str name, struct str tail)
{
    struct buf path;
    buf_init(&path, 4 * KIB);
    buf_put(&path, STR("/api/v1/namespaces/"));
    kube_put_segment(&path, namespace);
    buf_put(&path, STR("/pods/"));
    kube_put_segment(&path, name);
    buf_put(&path, tail);
    struct str copy = buf_failed(&path) ? STR_NULL : arena_dup(&c->arena, buf_str(&path));
    buf_done(&path);
    return copy;
}

static void kube_backend_done_deferred(struct deferred *d)
{
    struct backend_call *c = CONTAINER_OF(d, struct backend_call, later);
    c->done(c);
}

static void kube_backend_done_later(struct backend_call *c)
{
    struct kube_backend *b = CONTAINER_OF(c->backend, struct kube_backend, interface);
    c->retry_after_ms = 0;
    c->later.run = kube_backend_done_deferred;
    loop_defer(b->loop, &c->later);
}

/* Reports the call as not sent for lack of memory; the caller may try later. */
static void kube_backend_fail_later(struct backend_call *c)
{
    (void)err_set(&c->err, ERR_NOMEM, "out of memory");
    c->post = POST_NOT_SENT;
    c->get = GET_FAILED;
    c->unauthorized = false;
    kube_backend_done_later(c);
}

static void kube_backend_post(struct backend *interface, struct backend_call *c,
                              const struct binding *binding)
{
    struct kube_backend *b = CONTAINER_OF(interface, struct kube_backend, interface);
    struct jwrite w;
    char tail[sizeof("/binding?timeout=ms") + 20];
    kube_call_done(&c->task->kube);
    arena_reset(&c->arena);
    buf_clear(&c->task->body, SIZE_MAX);
    jwrite_init(&w, &c->task->body);
    kube_write_binding(&w, binding);
    (void)snprintf(tail, sizeof(tail), "/binding?timeout=%" PRIu64 "ms", b->post_deadline_ms);
    struct str path = kube_backend_pod_path(c, binding->namespace, binding->name, str_of(tail));
    if (path.p == NULL || buf_failed(&c->task->body)) {
        kube_backend_fail_later(c);
        return;
    }
    if (!kube_backend_may_post(c)) {
        kube_backend_refuse_post(c);
        kube_backend_done_later(c);
        return;
    }
    c->task->kube.http.body = buf_str(&c->task->body);
    c->task->kube.http.may_send = kube_backend_may_send;
    assert(c->task->kube.http.client == NULL && c->later.loop == NULL && c->term != 0);
    b->posting++;
    kube_backend_start(c, "POST", path, kube_backend_post_done);
}

static void kube_backend_get_done(struct http_call *http)
{
    struct backend_call *c = CONTAINER_OF(http, struct backend_task, kube.http)->call;
    struct kube_backend *b = CONTAINER_OF(c->backend, struct kube_backend, interface);
    struct jread r;
    c->get = GET_FAILED;
    c->retry_after_ms = http->retry_after_ms;
    c->err = (struct err)ERR_INIT;
    bool answered = http->outcome == HTTP_ANSWERED;
    if (answered && http->status == 200) {
        jread_init(&r, buf_str(&http->reply), &c->arena);
        kube_read_pod(&r, &c->arena, &c->pod);
        if (jread_finish(&r, &c->err) == OK && c->pod.uid.n > 0)
            c->get = GET_FOUND;
        else if (c->err.code == OK)
            (void)err_set(&c->err, ERR_SYNTAX, "the answer to a GET of a pod is no pod");
    } else {
        (void)kube_call_result(&c->task->kube, &c->err);
    }
    if (answered && http->status == 404 && proof_no_pod(http, &c->arena))
        c->get = GET_GONE;
    c->unauthorized = answered && http->status == 401;
    if (c->unauthorized)
        kube_api_refresh(b->api);
    c->done(c);
}

static void kube_backend_get(struct backend *interface, struct backend_call *c,
                             struct str namespace, struct str name)
{
    (void)interface;
    kube_call_done(&c->task->kube);
    arena_reset(&c->arena);
    c->task->kube.http.body = STR_NULL;
    c->task->kube.http.may_send = NULL;
    struct str path = kube_backend_pod_path(c, namespace, name, STR(""));
    if (path.p == NULL) {
        kube_backend_fail_later(c);
        return;
    }
    kube_backend_start(c, "GET", path, kube_backend_get_done);
}

static void kube_backend_cancel(struct backend_call *c)
{
    struct kube_backend *b = CONTAINER_OF(c->backend, struct kube_backend, interface);
    if (c->task->kube.http.client != NULL && c->task->kube.http.on_done == kube_backend_post_done) {
        assert(b->posting > 0);
        b->posting--;
    }
    kube_call_cancel(&c->task->kube);
    deferred_cancel(&c->later);
}

static void kube_backend_refresh(struct backend *interface)
{
    struct kube_backend *b = CONTAINER_OF(interface, struct kube_backend, interface);
    kube_api_refresh(b->api);
}

static struct backend_task *kube_backend_open_task(struct backend_call *c)
{
    struct backend_task *t = mem_alloc(sizeof(*t));
    if (t == NULL)
        return NULL;
    *t = (struct backend_task){.call = c};
    buf_init(&t->body, LIMIT_REPLY_BYTES);
    return t;
}

static void kube_backend_close_task(struct backend_task *t)
{
    kube_call_done(&t->kube);
    buf_done(&t->body);
    mem_free(t);
}

const struct http_call *kube_backend_request(const struct backend_task *t)
{
    return &t->kube.http;
}

/* ---- life ---- */

static void kube_backend_warn_of_short_settle(const struct election_times *times,
                                              uint64_t settle_ms)
{
    uint64_t least_ms = post_deadline_settle_ms(times);
    if (settle_ms < least_ms)
        log_warn("start-settle is too short: a Binding of the previous leader may come after it",
                 kv_uint("start_settle_ms", settle_ms), kv_uint("least_ms", least_ms));
}

static enum errc kube_backend_feeds_start(struct kube_backend *b,
                                          const struct kube_backend_settings *s, struct err *reterr)
{
    const struct dra_feed_settings dra = {.loop = s->loop,
                                          .api = s->api,
                                          .ingest = &b->ingest,
                                          .page_size = s->page_size,
                                          .dra = s->dra,
                                          .counts = &b->counts->dra};
    for (size_t kind = 0; kind < COUNT_OF(b->feeds); kind++) {
        enum errc code = kube_backend_feed_start(b, (enum cache_kind)kind, s->page_size, reterr);
        if (code != OK)
            return code;
    }
    return s->dra == CONFIG_DRA_OFF ? OK : dra_feed_new(&dra, &b->dra, reterr);
}

enum errc kube_backend_new(const struct kube_backend_settings *s, struct kube_backend **ret,
                           struct err *reterr)
{
    struct kube_backend *b = mem_alloc(sizeof(*b));
    if (b == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the cluster's client");
    *b = (struct kube_backend){
        .interface = {.open = kube_backend_open_task,
                      .close = kube_backend_close_task,
                      .post = kube_backend_post,
                      .get = kube_backend_get,
                      .cancel = kube_backend_cancel,
                      .ready = kube_backend_ready,
                      .stands_by = kube_backend_stands_by,
                      .term = kube_backend_term,
                      .asked = kube_backend_asked,
                      .refresh = kube_backend_refresh},
        .loop = s->loop,
        .api = s->api,
        .changed = s->changed,
        .changed_ctx = s->changed_ctx,
        .prove = {.fire = kube_backend_prove},
        .relist = {.fire = kube_backend_relist_all},
    };
    b->counts = s->counts == NULL ? &b->own : s->counts;
    const struct election_times *times = s->election != NULL ? &s->election->times : NULL;
    b->post_deadline_ms = post_deadline_ms(times, s->start_settle_ms);
    kube_backend_warn_of_short_settle(times, s->start_settle_ms);
    ingest_init(&b->ingest, s->loop, s->cache);
    b->ingest.measured = s->measured;
    b->show = s->show;
    b->show_ctx = s->show_ctx;
    b->ingest.show = s->show == NULL ? NULL : kube_backend_show;
    b->ingest.ctx = b;
    enum errc code = kube_backend_feeds_start(b, s, reterr);
    if (code != OK) {
        kube_backend_free(b);
        return code;
    }
    struct leadership_settings leadership = {.loop = s->loop,
                                             .api = s->api,
                                             .election = s->election,
                                             .settle_ms = s->start_settle_ms,
                                             .read = kube_backend_read_anew,
                                             .idle = kube_backend_idle,
                                             .changed = kube_backend_on_leadership,
                                             .counts = &b->counts->leadership,
                                             .ctx = b};
    code = leadership_new(&leadership, &b->leadership, reterr);
    if (code != OK)
        kube_backend_free(b);
    else
        *ret = b;
    return code;
}

void kube_backend_resign(struct kube_backend *b, void (*done)(void *ctx), void *ctx)
{
    leadership_resign(b->leadership, done, ctx);
}

struct kube_backend *kube_backend_free(struct kube_backend *b)
{
    if (b == NULL)
        return NULL;
    leadership_free(b->leadership);
    dra_feed_free(b->dra);
    for (size_t i = 0; i < COUNT_OF(b->feeds); i++)
        reflector_free(b->feeds[i].reflector);
    timer_cancel(&b->prove);
    timer_cancel(&b->relist);
    ingest_done(&b->ingest);
    mem_free(b);
    return NULL;
}

struct backend *kube_backend_interface(struct kube_backend *b)
{
    return &b->interface;
}
