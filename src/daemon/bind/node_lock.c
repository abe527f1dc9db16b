/* Takes and releases the lock of a node: HAMi's pkg/util/nodelock and Volcano's
 * pkg/scheduler/plugins/util/nodelock do the same, without a value by which a repeated PATCH is
 * recognised. */
#include "daemon/bind/node_lock.h"

#include "core/request/request.h"
#include "daemon/backend/proof.h"
#include "io/limit.h"
#include "objects/kube.h"
#include "objects/lock_text.h"
#include "objects/stamp.h"
#include "json/jwrite.h"

#include <inttypes.h>
#include <stdio.h>

/* GETs of one take or release: more mean that something writes to the node all the time. */
#define TRIES_MAX 5

#define CALL_TIMEOUT_MS 5000
#define NS_A_SECOND     UINT64_C(1000000000)

static void node_lock_get(struct node_lock *l);

void node_lock_init(struct node_lock *l)
{
    arena_init(&l->arena, LIMIT_OBJECT_ARENA);
    buf_init(&l->body, 64 * KIB);
    buf_init(&l->version, 4 * KIB);
    buf_init(&l->late, 4 * KIB);
}

void node_lock_cancel(struct node_lock *l)
{
    kube_call_cancel(&l->call);
}

void node_lock_done(struct node_lock *l)
{
    kube_call_cancel(&l->call);
    kube_call_done(&l->call);
    arena_done(&l->arena);
    buf_done(&l->body);
    buf_done(&l->version);
    buf_done(&l->late);
}

static void node_lock_end(struct node_lock *l, enum node_lock_result result)
{
    l->result = result;
    l->done(l);
}

/* The right comes first, because the end of the API server's message may be cut off. */
static void node_lock_end_denied(struct node_lock *l)
{
    (void)err_wrap(&l->err, "no right to get and patch nodes, which dialect %.*s needs",
                   STR_ARG(dialect_facts(l->dialect)->name));
    node_lock_end(l, NODE_LOCK_FAILED);
}

/* Whether the API server itself says that the right is missing: a load balancer says 403, too.
 * Other refusals, and 401 while a token is being replaced, may end by themselves. */
static bool node_lock_is_denied(struct node_lock *l)
{
    struct kube_status s;
    if (l->err.code != ERR_DENIED)
        return false;
    if (proof_refused(&l->call.http, &l->arena, &s) && s.code == 403)
        return true;
    l->err.code = ERR_UNAVAILABLE;
    return false;
}

static void node_lock_start(struct node_lock *l, const char *method, struct str body,
                            struct str path, void (*on_done)(struct http_call *http))
{
    l->call.http.body = body;
    l->call.http.content_type = body.p == NULL ? STR_NULL : STR("application/merge-patch+json");
    l->call.http.timeout_ms = CALL_TIMEOUT_MS;
    l->call.http.on_done = on_done;
    kube_call_start(l->api, &l->call, method, path);
}

static void node_lock_put_path(const struct node_lock *l, struct buf *path)
{
    buf_put(path, STR("/api/v1/nodes/"));
    kube_put_segment(path, l->node);
}

/* ---- the PATCH ---- */

static void node_lock_write_patch(struct node_lock *l)
{
    struct jwrite w;
    buf_clear(&l->body, SIZE_MAX);
    jwrite_init(&w, &l->body);
    jwrite_object_begin(&w);
    jwrite_object_at(&w, STR("metadata"));
    jwrite_str_at(&w, STR("resourceVersion"), buf_str(&l->version));
    jwrite_object_at(&w, STR("annotations"));
    jwrite_key(&w, dialect_facts(l->dialect)->lock);
    if (l->releases && !l->fences)
        jwrite_null(&w);
    else
        jwrite_str(&w, (struct str){l->text, l->text_n});
    jwrite_object_end(&w);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
}

static bool node_lock_may_send(struct http_call *http)
{
    struct node_lock *l = CONTAINER_OF(http, struct node_lock, call.http);
    return l->may == NULL || l->may(l);
}

static void node_lock_forget_late(struct node_lock *l)
{
    buf_clear(&l->late, SIZE_MAX);
}

/* After a refusal for certain, no further GET is of use. */
static void node_lock_patched(struct http_call *http)
{
    struct node_lock *l = CONTAINER_OF(http, struct node_lock, call.http);
    l->err = (struct err)ERR_INIT;
    bool fenced = l->fences;
    l->fences = false;
    if (kube_call_result(&l->call, &l->err) == OK) {
        node_lock_forget_late(l);
        if (fenced)
            node_lock_get(l);
        else
            node_lock_end(l, NODE_LOCK_TAKEN);
        return;
    }
    bool denied = node_lock_is_denied(l);
    if ((denied || http->outcome == HTTP_NOT_SENT) && !l->later)
        node_lock_forget_late(l);
    if (denied)
        node_lock_end_denied(l);
    else
        node_lock_get(l);
}

static void node_lock_patch(struct node_lock *l)
{
    char bytes[1024];
    struct buf path = BUF_ON(bytes);
    node_lock_write_patch(l);
    node_lock_put_path(l, &path);
    if (!l->releases || l->fences) {
        l->later = l->late.n > 0; /* with the same resourceVersion: see node_lock_got */
        node_lock_forget_late(l);
        buf_put(&l->late, buf_str(&l->version));
    }
    if (buf_failed(&l->body) || buf_failed(&l->late) || buf_failed(&path)) {
        (void)err_set(&l->err, ERR_NOMEM, "out of memory");
        node_lock_end(l, NODE_LOCK_FAILED);
        return;
    }
    l->call.http.may_send = node_lock_may_send;
    l->tried = true;
    node_lock_start(l, "PATCH", buf_str(&l->body), buf_str(&path), node_lock_patched);
}

/* ---- what the lock is ---- */

enum node_lock_state node_lock_judge(const struct node_lock *l, struct str value, uint64_t now_ns,
                                     struct lock_view *ret)
{
    lock_text_read(value, ret);
    if (l->text_n > 0 && str_eq(value, (struct str){l->text, l->text_n}))
        return NODE_LOCK_IS_OURS;
    if (!lock_is_fresh(ret, now_ns / NS_A_SECOND))
        return NODE_LOCK_IS_FREE;
    if (ret->name.p == NULL)
        return NODE_LOCK_OF_ANY;
    bool earlier = str_eq(ret->namespace, l->namespace) && str_eq(ret->name, l->name);
    return earlier ? NODE_LOCK_IS_FREE : NODE_LOCK_OF_POD;
}

static void node_lock_say_held(struct node_lock *l, struct str value)
{
    l->err = (struct err)ERR_INIT;
    (void)err_set(
        &l->err, ERR_CONFLICT,
        "node %.*s is locked: its annotation %.*s is \"%.*s\", until the device plugin has "
        "served that pod",
        STR_ARG(l->node), STR_ARG(dialect_facts(l->dialect)->lock),
        (int)MIN_OF(value.n, (size_t)NODE_LOCK_BYTES), value.p);
    node_lock_end(l, NODE_LOCK_HELD);
}

/* ---- the pod that the lock names ---- */

/* Whether this pod can be the one that the lock was set for: it asks for a card, and its plugin has
 * not served it, or its scheduler not bound it. */
static bool node_lock_is_of(struct node_lock *l, struct str pod)
{
    struct jread r;
    struct pod_view v;
    struct request request;
    jread_init(&r, pod, &l->arena);
    kube_read_pod(&r, &l->arena, &v);
    if (jread_finish(&r, NULL) != OK)
        return true;
    bool binds = l->now_ns / NS_A_SECOND <= (uint64_t)l->since_s + LOCK_BINDS_S;
    return !pod_view_terminal(&v) && (pod_view_bound(&v) ? str_eq(v.node, l->node) : binds) &&
           (request_read(&v, &request, NULL) != OK || request_wants(&request));
}

static void node_lock_asked(struct http_call *http)
{
    struct node_lock *l = CONTAINER_OF(http, struct node_lock, call.http);
    bool gone =
        http->outcome == HTTP_ANSWERED && http->status == 404 && proof_no_pod(http, &l->arena);
    bool here = http->outcome == HTTP_ANSWERED && http->status == 200;
    if (gone || (here && !node_lock_is_of(l, buf_str(&http->reply))))
        node_lock_patch(l);
    else
        node_lock_end(l, NODE_LOCK_HELD);
}

static void node_lock_ask(struct node_lock *l, const struct lock_view *owner)
{
    char bytes[2048];
    struct buf path = BUF_ON(bytes);
    buf_put(&path, STR("/api/v1/namespaces/"));
    kube_put_segment(&path, owner->namespace);
    buf_put(&path, STR("/pods/"));
    kube_put_segment(&path, owner->name);
    if (buf_failed(&path)) {
        node_lock_end(l, NODE_LOCK_HELD);
        return;
    }
    l->call.http.may_send = NULL;
    node_lock_start(l, "GET", STR_NULL, buf_str(&path), node_lock_asked);
}

/* ---- the GET ---- */

static void node_lock_read_metadata(struct node_lock *l, struct jread *r, struct str *ret_value)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("resourceVersion"))) {
            buf_clear(&l->version, SIZE_MAX);
            buf_put(&l->version, jread_str(r));
        } else if (str_eq(key, STR("annotations"))) {
            *ret_value = jread_member(r, dialect_facts(l->dialect)->lock);
        } else {
            jread_skip(r);
        }
    }
}

/* *ret_value: the lock; absent: none. */
static bool node_lock_read(struct node_lock *l, struct str *ret_value)
{
    struct jread r;
    struct str key;
    *ret_value = STR_NULL;
    buf_clear(&l->version, SIZE_MAX);
    jread_init(&r, buf_str(&l->call.http.reply), &l->arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("metadata")))
            node_lock_read_metadata(l, &r, ret_value);
        else
            jread_skip(&r);
    }
    return jread_finish(&r, &l->err) == OK && l->version.n > 0 && !buf_failed(&l->version);
}

static void node_lock_decide(struct node_lock *l, struct str value)
{
    struct lock_view owner;
    enum node_lock_state state = node_lock_judge(l, value, l->now_ns, &owner);
    if (l->releases) {
        l->fences = state != NODE_LOCK_IS_OURS && l->late.n > 0;
        if (state == NODE_LOCK_IS_OURS || l->fences)
            node_lock_patch(l);
        else
            node_lock_end(l, NODE_LOCK_TAKEN);
        return;
    }
    switch (state) {
    case NODE_LOCK_IS_OURS:
        node_lock_end(l, NODE_LOCK_TAKEN);
        return;
    case NODE_LOCK_IS_FREE:
        node_lock_patch(l);
        return;
    case NODE_LOCK_OF_POD:
        l->err = (struct err)ERR_INIT;
        (void)err_set(
            &l->err, ERR_CONFLICT,
            "node %.*s is locked for pod %.*s/%.*s, which its device plugin has not served "
            "yet",
            STR_ARG(l->node), STR_ARG(owner.namespace), STR_ARG(owner.name));
        l->since_s = owner.since_s;
        node_lock_ask(l, &owner);
        return;
    case NODE_LOCK_OF_ANY:
        node_lock_say_held(l, value);
        return;
    }
}

static void node_lock_got(struct http_call *http)
{
    struct node_lock *l = CONTAINER_OF(http, struct node_lock, call.http);
    struct str value;
    l->err = (struct err)ERR_INIT;
    if (http->outcome == HTTP_ANSWERED && http->status == 401 && l->tries < TRIES_MAX) {
        kube_api_refresh(l->api);
        node_lock_get(l);
        return;
    }
    if (kube_call_result(&l->call, &l->err) != OK) {
        if (node_lock_is_denied(l))
            node_lock_end_denied(l);
        else
            node_lock_end(l, NODE_LOCK_FAILED);
        return;
    }
    if (node_lock_read(l, &value)) {
        if (!str_eq(buf_str(&l->late), buf_str(&l->version)))
            node_lock_forget_late(l);
        node_lock_decide(l, value);
        return;
    }
    if (l->err.code == OK)
        (void)err_set(&l->err, ERR_SYNTAX, "it has no resourceVersion");
    (void)err_wrap(&l->err, "node %.*s can't be read", STR_ARG(l->node));
    node_lock_end(l, NODE_LOCK_FAILED);
}

static void node_lock_get(struct node_lock *l)
{
    char bytes[1024];
    struct buf path = BUF_ON(bytes);
    if (l->tries++ == TRIES_MAX) {
        if (l->err.code == OK)
            (void)err_set(&l->err, ERR_CONFLICT, "the node changes all the time");
        node_lock_end(l, NODE_LOCK_FAILED);
        return;
    }
    arena_reset(&l->arena);
    node_lock_put_path(l, &path);
    if (buf_failed(&path)) {
        (void)err_set(&l->err, ERR_RANGE, "the node's name is too long");
        node_lock_end(l, NODE_LOCK_FAILED);
        return;
    }
    l->call.http.may_send = NULL;
    node_lock_start(l, "GET", STR_NULL, buf_str(&path), node_lock_got);
}

/* ---- take and release ---- */

/* HAMi and Volcano read the time with Go's RFC 3339, which takes a fraction of a second. */
static void node_lock_write_text(struct node_lock *l, uint64_t now_ns)
{
    char stamp[STAMP_BYTES];
    struct buf out = BUF_ON(l->text);
    struct str time = stamp_print((uint32_t)(now_ns / NS_A_SECOND), stamp);
    buf_put(&out, (struct str){time.p, time.n - 1}); /* without the Z */
    buf_printf(&out, ".%09" PRIu64 "Z", now_ns % NS_A_SECOND);
    if (dialect_facts(l->dialect)->lock_owner)
        buf_printf(&out, ",%.*s,%.*s", STR_ARG(l->namespace), STR_ARG(l->name));
    assert(!buf_failed(&out));
    l->text_n = out.n;
}

void node_lock_take(struct node_lock *l, uint64_t now_ns)
{
    if (l->text_n == 0)
        node_lock_write_text(l, now_ns);
    l->now_ns = now_ns;
    l->releases = false;
    l->fences = false;
    l->tries = 0;
    node_lock_get(l);
}

void node_lock_release(struct node_lock *l)
{
    l->releases = true;
    l->fences = false;
    l->tries = 0;
    node_lock_get(l);
}
