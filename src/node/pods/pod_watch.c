/*
 * Feeds the pods of one node from a reflector to the callbacks. The selector names the node only:
 * with a selector on the phase as well, a pod that ends would look like one that was deleted.
 *
 * A pod that cannot be read is no error of the stream. Because its cards are not known then, a list
 * with such a pod does not end, and the pods are listed again after a while, unless as much of it
 * can be read as shows that it holds none: it has ended, or was deleted.
 */
#include "node/pods/pod_watch.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/reflector.h"
#include "objects/kube.h"

#define QUIET_MS  180000
#define PAGE_SIZE 500
#define AGAIN_MS  UINT64_C(10000) /* after a list with a pod that could not be read */

struct pod_watch {
    struct loop *loop;
    struct pod_watch_ops ops;
    struct reflector *reflector;
    struct arena arena; /* for one pod */
    struct timer again;
    bool lost;   /* a pod since `begin` could not be read */
    bool synced; /* see pod_watch_synced */
    uint64_t unreadable;
};

/* ---- one pod ---- */

static uint64_t pod_watch_version(struct str object, struct arena *a)
{
    struct jread r;
    struct str key;
    struct str text = STR_NULL;
    uint64_t version = 0;
    jread_init(&r, object, a);
    jread_object (&r, key) {
        if (str_eq(key, STR("metadata")))
            text = jread_member(&r, STR("resourceVersion"));
        else
            jread_skip(&r);
    }
    return jread_finish(&r, NULL) == OK && str_to_u64(text, UINT64_MAX, &version) ? version : 0;
}

enum errc pod_watch_read(struct str object, struct arena *a, struct pod_view *ret,
                         uint64_t *ret_version, struct err *reterr)
{
    struct jread r;
    jread_init(&r, object, a);
    kube_read_pod(&r, a, ret);
    enum errc code = jread_finish(&r, reterr);
    if (code == OK && arena_failed(a))
        code = err_set(reterr, arena_fault(a), "no room for it");
    if (code == OK && ret->uid.n == 0)
        code = err_set(reterr, ERR_SYNTAX, "it has no UID");
    *ret_version = code == OK ? pod_watch_version(object, a) : 0;
    return code;
}

static void pod_watch_on_change(void *ctx, enum reflector_change change, struct str object)
{
    struct pod_watch *p = ctx;
    struct pod_view view;
    struct err e = ERR_INIT;
    uint64_t version = 0;
    arena_reset(&p->arena);
    bool read = pod_watch_read(object, &p->arena, &view, &version, &e) == OK;
    if (!read) {
        arena_reset(&p->arena);
        kube_read_pod_anyway(object, &p->arena, str_of(e.text), &view);
        log_warn("a pod of this node can't be read", kv_str("namespace", view.namespace),
                 kv_str("pod", view.name), kv_cstr("error", e.text));
        p->unreadable++;
    }
    if (view.uid.n > 0 && (change == REFLECTOR_GONE || (!read && pod_view_terminal(&view)))) {
        p->ops.gone(p->ops.ctx, view.uid);
    } else if (read) {
        p->ops.set(p->ops.ctx, &view, version, object);
    } else {
        p->lost = true;
        timer_arm(p->loop, &p->again, AGAIN_MS);
    }
}

/* ---- lists ---- */

static void pod_watch_on_begin(void *ctx)
{
    struct pod_watch *p = ctx;
    p->lost = false;
    p->ops.begin(p->ops.ctx);
}

static void pod_watch_on_end(void *ctx)
{
    struct pod_watch *p = ctx;
    p->synced = !p->lost;
    if (p->synced)
        p->ops.end(p->ops.ctx);
}

static void pod_watch_on_again(struct timer *t)
{
    pod_watch_relist(CONTAINER_OF(t, struct pod_watch, again));
}

/* ---- life ---- */

static enum errc pod_watch_start(struct pod_watch *p, struct kube_api *api, struct str node,
                                 struct err *reterr)
{
    struct reflector_settings s = {.path = STR("/api/v1/pods"),
                                   .kind = STR("PodList"),
                                   .field = STR("spec.nodeName"),
                                   .equals = node,
                                   .page_size = PAGE_SIZE,
                                   .quiet_ms = QUIET_MS};
    struct reflector_sink sink = {.begin = pod_watch_on_begin,
                                  .change = pod_watch_on_change,
                                  .end = pod_watch_on_end,
                                  .of = "pods",
                                  .ctx = p};
    return reflector_new(p->loop, api, &s, &sink, &p->reflector, reterr);
}

enum errc pod_watch_new(struct loop *l, struct kube_api *api, struct str node,
                        const struct pod_watch_ops *ops, struct pod_watch **ret, struct err *reterr)
{
    struct pod_watch *p = mem_alloc(sizeof(*p));
    if (p == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the pods");
    *p = (struct pod_watch){.loop = l, .ops = *ops, .again = {.fire = pod_watch_on_again}};
    arena_init(&p->arena, LIMIT_OBJECT_ARENA);
    enum errc code = pod_watch_start(p, api, node, reterr);
    if (code != OK)
        (void)pod_watch_free(p);
    else
        *ret = p;
    return code;
}

struct pod_watch *pod_watch_free(struct pod_watch *p)
{
    if (p == NULL)
        return NULL;
    timer_cancel(&p->again);
    p->reflector = reflector_free(p->reflector);
    arena_done(&p->arena);
    mem_free(p);
    return NULL;
}

bool pod_watch_synced(const struct pod_watch *p)
{
    return p->synced;
}

void pod_watch_relist(struct pod_watch *p)
{
    reflector_relist(p->reflector);
}

uint64_t pod_watch_unreadable(const struct pod_watch *p)
{
    return p->unreadable;
}
