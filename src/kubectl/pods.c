/*
 * Reads each pod with the daemon's decoder and computes its cards from its own annotations, without
 * the nodes: a user who may list pods of one namespace only can use it, too. Only what they really
 * use is in kube-system.
 */
#include "kubectl/pods.h"

#include "base/limit.h"
#include "codec/kube.h"
#include "kube/ingest.h"
#include "kubectl/direct.h"
#include "kubectl/list.h"
#include "kubectl/order.h"
#include "kubectl/say.h"
#include "report/reason.h"

struct reading {
    struct pods *pods;
    struct arena *arena;  /* for the rows */
    struct arena scratch; /* for one pod */
};

/* Copies the pod's shares into the row, and sums them up. */
static void pods_take_shares(struct reading *x, const struct pod_view *v, const struct request *r,
                             struct pods_row *row)
{
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    placement_read(v, r, &there);
    uint32_t n = shares_of(r, there.grants, there.n, v->initialized, shares);
    row->memory = v->initialized ? r->lasting_mem : r->mem;
    if (n == 0)
        return;
    struct share *copy = arena_array(x->arena, n, sizeof(*copy));
    if (copy == NULL)
        return;
    memcpy(copy, shares, n * sizeof(*copy));
    row->shares = copy;
    row->n_shares = n;
    row->memory = 0;
    for (uint32_t i = 0; i < n; i++)
        row->memory += MIN_OF(shares[i].mem, REQUEST_MEM_MAX);
}

static struct str pods_reason_of(const struct pod_view *v, const struct request *r,
                                 const struct err *fault, const struct pods_row *row)
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

static void pods_take(struct reading *x, const struct pod_view *v)
{
    struct request r _uninitialized_;
    struct err fault = ERR_INIT;
    struct buf asks;
    struct pods_row row = {.created_s = v->created_s, .used_mib = -1};
    fault.code = request_read(v, &r, &fault);
    if (pod_view_terminal(v) || (fault.code == OK && !request_wants(&r)))
        return;
    if (pod_view_bound(v)) {
        pods_take_shares(x, v, &r, &row);
    } else {
        row.memory = r.mem;
        row.percent = request_by_container(&r) ? 0 : r.whole ? 100 : r.percent;
    }
    buf_init(&asks, LIMIT_FILE_BYTES);
    if (fault.code == OK)
        reason_request(&asks, &r);
    row.asks = arena_keep(x->arena, &asks);
    row.reason = arena_dup(x->arena, pods_reason_of(v, &r, &fault, &row));
    row.namespace = arena_dup(x->arena, v->namespace);
    row.name = arena_dup(x->arena, v->name);
    row.uid = arena_dup(x->arena, v->uid);
    row.node = pod_view_bound(v) ? arena_dup(x->arena, v->node) : STR_NULL;
    row.status = v->deleting ? STR("Terminating") : arena_dup(x->arena, v->phase);
    struct pods_row *rows =
        arena_grow(x->arena, x->pods->rows, x->pods->n, &x->pods->cap, sizeof(row));
    if (rows == NULL)
        return;
    x->pods->rows = rows;
    rows[x->pods->n++] = row;
}

static void pods_on_begin(void *ctx)
{
    struct reading *x = ctx;
    x->pods->n = 0;
}

static enum errc pods_on_object(void *ctx, struct str json, struct err *e)
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
    pods_take(x, &v);
    return arena_failed(x->arena) ? err_set(e, arena_fault(x->arena), "there are too many pods")
                                  : OK;
}

enum errc kubectl_pods_read(struct kubectl_client *c, struct str namespace, struct str selector,
                            struct arena *a, struct pods *ret, struct err *reterr)
{
    struct reading x = {.pods = ret, .arena = a};
    struct buf path;
    struct buf query;
    *ret = (struct pods){.n = 0};
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
                             .begin = pods_on_begin,
                             .take = pods_on_object,
                             .ctx = &x};
    arena_init(&x.scratch, LIMIT_OBJECT_BYTES);
    enum errc code = arena_failed(a) ? err_set(reterr, arena_fault(a), "the selector is too long")
                                     : kubectl_list_read(c, &l, reterr);
    arena_done(&x.scratch);
    return code;
}

/* The sum over the pod's cards; of each of them it must be known. */
static void pods_use(void *ctx, const struct measured *m)
{
    struct pods *p = ctx;
    for (size_t i = 0; i < p->n; i++) {
        struct pods_row *row = &p->rows[i];
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

enum errc kubectl_pods_measure(struct kubectl_client *c, struct pods *p, struct err *reterr)
{
    enum errc code = p->n == 0 ? OK : kubectl_read_measured(c, pods_use, p, reterr);
    if (code != ERR_DENIED)
        return code;
    kubectl_say_once("what pods really use is not known: %s", reterr->text);
    *reterr = (struct err)ERR_INIT;
    return OK;
}

enum errc kubectl_pods_sort(struct pods *p, enum kubectl_sort by, struct arena *a,
                            struct err *reterr)
{
    struct order_row *order = order_rows(a, p->n);
    struct pods_row *rows = arena_array(a, p->n + 1, sizeof(*rows));
    if (order == NULL || rows == NULL)
        return err_set(reterr, arena_fault(a), "there are too many pods");
    for (size_t i = 0; i < p->n; i++) {
        const struct pods_row *row = &p->rows[i];
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
