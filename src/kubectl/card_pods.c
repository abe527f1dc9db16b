/*
 * Reads each pod with the daemon's decoder and computes its cards from its own annotations. Only
 * for cards that are named by UUID it reads the nodes, too: a user who may list pods of one
 * namespace only can use it as well. What they really use is in kube-system.
 */
#include "kubectl/card_pods.h"

#include "base/limit.h"
#include "base/mem.h"
#include "kubectl/direct.h"
#include "kubectl/order.h"
#include "kubectl/paged_list.h"
#include "kubectl/say.h"
#include "objects/kube.h"
#include "report/reason.h"

struct reading {
    struct card_pods *pods;
    struct arena *arena;  /* for the rows */
    struct arena scratch; /* for one pod */
    struct cache cache;   /* the pods that name their cards by UUID, and the nodes */
    struct ingest ingest;
};

bool card_pods_may_be_nvidias(const struct pod_view *v, enum dialect d)
{
    if (!dialect_has_nvidias(d))
        return false;
    for (size_t i = 0; i < v->n_containers; i++) {
        const struct amounts_view *of = &v->containers[i].of[d];
        if (of->mem.p != NULL || of->cores.p != NULL || of->percent.p != NULL)
            return false;
    }
    return v->said[d].idx.p == NULL;
}

/* Copies the pod's shares into the row, and sums them up. */
static void card_pods_copy_shares(struct arena *a, const struct share *shares, uint32_t n,
                                  struct card_pods_row *row)
{
    struct share *copy = n == 0 ? NULL : arena_array(a, n, sizeof(*copy));
    if (copy == NULL)
        return;
    memcpy(copy, shares, n * sizeof(*copy));
    row->shares = copy;
    row->n_shares = n;
    row->memory = 0;
    for (uint32_t i = 0; i < n; i++)
        row->memory += MIN_OF(shares[i].mem, REQUEST_MEM_MAX);
}

static void card_pods_take_shares(struct reading *x, const struct pod_view *v,
                                  const struct request *r, struct card_pods_row *row)
{
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    placement_read(v, r, &there);
    row->memory = v->initialized ? r->lasting_mem : r->mem;
    card_pods_copy_shares(x->arena, shares,
                          shares_of(r, there.grants, there.n, v->initialized, shares), row);
}

static struct str card_pods_reason_of(const struct pod_view *v, const struct request *r,
                                      const struct err *fault, const struct card_pods_row *row)
{
    if (fault->code != OK)
        return str_of(fault->text);
    if (pod_view_bound(v))
        return row->n_shares == 0 && request_shares(r) ? STR("it is bound without a valid card")
                                                       : STR_NULL;
    if (v->scheduled.message.n > 0)
        return v->scheduled.message;
    return v->scheduled.reason.n > 0 ? v->scheduled.reason
                                     : STR("no scheduler has tried to place it");
}

static void card_pods_take(struct reading *x, const struct pod_view *v, struct str json)
{
    struct request r _uninitialized_;
    struct err fault = ERR_INIT;
    struct buf asks;
    struct card_pods_row row = {.created_s = v->created_s, .used_mib = -1};
    fault.code = request_read(v, &r, &fault);
    if (pod_view_terminal(v) || (fault.code == OK && !request_wants(&r)))
        return;
    if (dialect_has_uuids(r.dialect))
        ingest_pod(&x->ingest, json, false);
    if (pod_view_bound(v)) {
        card_pods_take_shares(x, v, &r, &row);
    } else {
        row.memory = r.mem;
        row.percent = request_by_container(&r) ? 0 : r.whole ? 100 : r.percent;
    }
    buf_init(&asks, LIMIT_FILE_BYTES);
    if (fault.code == OK)
        reason_request(&asks, &r, 0);
    row.nvidias = fault.code == OK && pod_view_bound(v) && card_pods_may_be_nvidias(v, r.dialect);
    row.asks = arena_keep(x->arena, &asks);
    row.reason = arena_dup(x->arena, card_pods_reason_of(v, &r, &fault, &row));
    row.namespace = arena_dup(x->arena, v->namespace);
    row.name = arena_dup(x->arena, v->name);
    row.uid = arena_dup(x->arena, v->uid);
    row.node = pod_view_bound(v) ? arena_dup(x->arena, v->node) : STR_NULL;
    row.status = v->deleting ? STR("Terminating") : arena_dup(x->arena, v->phase);
    struct card_pods_row *rows =
        arena_grow(x->arena, x->pods->rows, x->pods->n, &x->pods->cap, sizeof(row));
    if (rows == NULL)
        return;
    x->pods->rows = rows;
    rows[x->pods->n++] = row;
}

static void card_pods_on_begin(void *ctx)
{
    struct reading *x = ctx;
    x->pods->n = 0;
}

static enum errc card_pods_on_object(void *ctx, struct str json, struct err *e)
{
    struct reading *x = ctx;
    struct jread r;
    struct pod_view v;
    arena_reset(&x->scratch);
    jread_init(&r, json, &x->scratch);
    kube_read_pod(&r, &x->scratch, &v);
    enum errc code = jread_finish(&r, e);
    if (code != OK)
        return err_wrap(e, "a pod of the list");
    card_pods_take(x, &v, json);
    if (x->ingest.lost)
        return err_set(e, ERR_NOMEM, "out of memory");
    return arena_failed(x->arena) ? err_set(e, arena_fault(x->arena), "there are too many pods")
                                  : OK;
}

/* Finds the cards that are named by UUID. Without the right to list nodes they stay unknown. */
static enum errc card_pods_locate(struct reading *x, struct kubectl_client *c,
                                  const struct kubectl_list *l, struct err *e)
{
    bool asked = dialect_find_nvidias(NULL);
    enum errc code = kubectl_ingest_list(c, &x->ingest, CACHE_NODES, e);
    if (code == ERR_DENIED) {
        kubectl_say_once("which cards of its node a UUID means, and whether nvidia.com/gpu is "
                         "HAMi's, is not known: %s",
                         e->text);
        *e = (struct err)ERR_INIT;
        code = OK;
    }
    if (code == OK && asked != dialect_find_nvidias(NULL))
        code = kubectl_list_read(c, l, e);
    for (size_t i = 0; i < x->pods->n; i++) {
        struct card_pods_row *row = &x->pods->rows[i];
        const struct pod *p = cache_pod(&x->cache, row->uid);
        if (p != NULL && p->node != NULL && row->n_shares > 0)
            card_pods_copy_shares(x->arena, p->allocation->shares, p->allocation->n_shares, row);
        if (row->nvidias && p != NULL && p->node != NULL && p->node->fault == NODE_NOT_SHARED)
            row->reason = STR_NULL; /* its card is not in its annotations */
    }
    return code;
}

static enum errc card_pods_read(struct reading *x, struct kubectl_client *c,
                                const struct kubectl_list *l, struct err *e)
{
    struct map_seed seed = {loop_random(c->loop), loop_random(c->loop)};
    cache_init(&x->cache, seed);
    ingest_init(&x->ingest, c->loop, &x->cache);
    arena_init(&x->scratch, LIMIT_OBJECT_ARENA);
    kubectl_use_dialects(c, NULL);
    enum errc code = kubectl_list_read(c, l, e);
    if (code == OK && x->cache.pods.n > 0)
        code = card_pods_locate(x, c, l, e);
    arena_done(&x->scratch);
    ingest_done(&x->ingest);
    cache_done(&x->cache);
    return code;
}

enum errc kubectl_pods_read(struct kubectl_client *c, struct str namespace, struct str selector,
                            struct arena *a, struct card_pods *ret, struct err *reterr)
{
    struct reading *x = mem_alloc(sizeof(*x));
    struct buf path;
    struct buf query;
    *ret = (struct card_pods){.n = 0};
    buf_init(&path, LIMIT_FILE_BYTES);
    buf_init(&query, LIMIT_FILE_BYTES);
    buf_put(&path, STR("/api/v1"));
    if (namespace.p != NULL) {
        buf_put(&path, STR("/namespaces/"));
        kube_put_segment(&path, namespace);
    }
    buf_put(&path, STR("/pods"));
    buf_put(&query, INGEST_POD_SELECTOR);
    if (selector.n > 0) {
        buf_put(&query, STR("&labelSelector="));
        kube_put_escaped(&query, selector);
    }
    struct kubectl_list l = {.path = arena_keep(a, &path),
                             .query = arena_keep(a, &query),
                             .kind = STR("PodList"),
                             .begin = card_pods_on_begin,
                             .take = card_pods_on_object,
                             .ctx = x};
    if (x == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    x->pods = ret;
    x->arena = a;
    enum errc code = arena_failed(a) ? err_set(reterr, arena_fault(a), "the selector is too long")
                                     : card_pods_read(x, c, &l, reterr);
    mem_free(x);
    return code;
}

/* The sum over the pod's cards; of each of them it must be known. */
static void card_pods_use(void *ctx, const struct measured *m)
{
    struct card_pods *p = ctx;
    for (size_t i = 0; i < p->n; i++) {
        struct card_pods_row *row = &p->rows[i];
        const struct measured_node *node = measured_of(m, row->node);
        bool known = row->n_shares > 0;
        int64_t sum = 0;
        for (uint32_t k = 0; k < row->n_shares && known; k++) {
            uint32_t mib = 0;
            known = measured_pod_of(m, node, row->uid, row->shares[k].card, &mib);
            sum += mib;
        }
        row->used_mib = known ? sum : -1;
        p->measured = p->measured || known;
    }
}

enum errc kubectl_pods_measure(struct kubectl_client *c, struct card_pods *p, struct err *reterr)
{
    enum errc code = p->n == 0 ? OK : kubectl_read_measured(c, card_pods_use, p, reterr);
    if (code != ERR_DENIED)
        return code;
    kubectl_say_once("what pods really use is not known: %s", reterr->text);
    *reterr = (struct err)ERR_INIT;
    return OK;
}

enum errc kubectl_pods_sort(struct card_pods *p, enum kubectl_sort by, struct arena *a,
                            struct err *reterr)
{
    struct order_row *order = order_rows(a, p->n);
    struct card_pods_row *rows = arena_array(a, p->n + 1, sizeof(*rows));
    if (order == NULL || rows == NULL)
        return err_set(reterr, arena_fault(a), "there are too many pods");
    for (size_t i = 0; i < p->n; i++) {
        const struct card_pods_row *row = &p->rows[i];
        if (by == KUBECTL_SORT_MEMORY)
            order[i].key = row->memory;
        else if (by == KUBECTL_SORT_AGE)
            order[i].key = row->created_s == 0 ? INT64_MIN : -(int64_t)row->created_s;
        else if (by == KUBECTL_SORT_NODE)
            order[i].text = row->node;
        else if (by == KUBECTL_SORT_NAME)
            order[i].text = row->name;
    }
    order_sort(order, p->n);
    for (size_t i = 0; i < p->n; i++)
        rows[i] = p->rows[order[i].at];
    p->rows = rows;
    p->cap = p->n + 1;
    return OK;
}
