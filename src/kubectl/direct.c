/*
 * Answers from the API server alone: reads its lists of nodes, pods and kube-system's ConfigMaps
 * into a cache, object by object as the daemon does, and computes the answer with the daemon's
 * code. Bindings under way are unknown, and so is the daemon's configuration: its defaults are
 * used.
 */
#include "kubectl/direct.h"

#include "base/mem.h"
#include "kubectl/limit.h"
#include "kubectl/paged_list.h"
#include "kubectl/say.h"
#include "report/explain_write.h"
#include "report/inspect_write.h"
#include "report/pod_read.h"
#include "report/whatif.h"
#include "json/jwrite.h"

struct reading {
    struct kubectl_client *client;
    struct cache cache;
    struct measured measured;
    struct step_budget step_budget; /* counts the steps of the answer */
    struct ingest ingest;
};

struct listing {
    struct ingest *ingest;
    enum cache_kind kind;
};

static void direct_on_begin(void *ctx)
{
    struct listing *l = ctx;
    ingest_list_begin(l->ingest, l->kind);
}

static enum errc direct_on_object(void *ctx, struct str json, struct err *e)
{
    static void (*const takes[CACHE_ALL_KINDS])(struct ingest *, struct str, bool) = {
        [CACHE_NODES] = ingest_node,       [CACHE_PODS] = ingest_pod,
        [CACHE_HEALTH] = ingest_configmap, [CACHE_SLICES] = ingest_slice,
        [CACHE_CLAIMS] = ingest_claim,     [CACHE_CLASSES] = ingest_class};
    struct listing *l = ctx;
    takes[l->kind](l->ingest, json, false);
    return l->ingest->lost ? err_set(e, ERR_NOMEM, "out of memory") : OK;
}

enum errc kubectl_ingest_list(struct kubectl_client *c, struct ingest *in, enum cache_kind kind,
                              struct err *reterr)
{
    struct listing of_kind = {in, kind};
    const struct kubectl_source *of = kubectl_source_of(kind);
    struct kubectl_list l = {.path = of->path,
                             .query = of->query,
                             .kind = of->kind,
                             .begin = direct_on_begin,
                             .take = direct_on_object,
                             .ctx = &of_kind};
    if (kind == CACHE_NODES)
        kubectl_use_dialects(c, NULL);
    enum errc code = kubectl_list_read(c, &l, reterr);
    if (code == OK)
        (void)ingest_list_end(in, kind);
    if (kind == CACHE_NODES)
        kubectl_use_dialects(c, in->cache);
    return code;
}

static enum errc direct_read_list(struct reading *r, enum cache_kind kind, struct err *e)
{
    return kubectl_ingest_list(r->client, &r->ingest, kind, e);
}

/* Without the right to read the ConfigMaps the answer may be too optimistic: a line says so. */
static enum errc direct_read_configmaps(struct reading *r, struct err *e)
{
    enum errc code = direct_read_list(r, CACHE_HEALTH, e);
    if (code != ERR_DENIED)
        return code;
    kubectl_say_once("unhealthy cards and quotas are not known: %s", e->text);
    *e = (struct err)ERR_INIT;
    return OK;
}

/* Without the rights the answer may be too optimistic, too. */
static enum errc direct_read_dra(struct reading *r, struct err *e)
{
    bool served = false;
    enum errc code = kubectl_client_has_dra(r->client, &served, e);
    for (enum cache_kind kind = CACHE_SLICES; code == OK && served && kind < CACHE_ALL_KINDS;
         kind++)
        code = direct_read_list(r, kind, e);
    if (code != ERR_DENIED)
        return code;
    kubectl_say_once("cards that ResourceClaims hold are not known: %s", e->text);
    *e = (struct err)ERR_INIT;
    return OK;
}

static enum errc direct_read_all(struct reading *r, struct err *e)
{
    enum errc code = direct_read_list(r, CACHE_NODES, e);
    if (code == OK)
        code = direct_read_list(r, CACHE_PODS, e);
    if (code == OK)
        code = direct_read_configmaps(r, e);
    return code == OK ? direct_read_dra(r, e) : code;
}

static enum errc direct_get_pod(struct kubectl_client *c, const struct kubectl_question *q,
                                struct arena *a, struct str *ret, struct err *e)
{
    struct buf path;
    buf_init(&path, LIMIT_FILE_BYTES);
    buf_put(&path, STR("/api/v1/namespaces/"));
    kube_put_segment(&path, q->namespace);
    buf_put(&path, STR("/pods/"));
    kube_put_segment(&path, q->name);
    enum errc code = buf_failed(&path) ? err_set(e, ERR_NOMEM, "out of memory")
                                       : kubectl_client_call(c, "GET", buf_str(&path), STR_NULL, e);
    buf_done(&path);
    if (code == OK)
        code = kubectl_client_result(c, e);
    if (code == ERR_NOTFOUND)
        return err_set(e, code, "pod %.*s/%.*s: there is no such pod", STR_ARG(q->namespace),
                       STR_ARG(q->name));
    if (code != OK)
        return code;
    *ret = arena_dup(a, kubectl_client_reply(c));
    return ret->p == NULL ? err_set(e, ERR_NOMEM, "out of memory") : OK;
}

struct str kubectl_fit_body(const struct kubectl_question *q, struct arena *a)
{
    struct buf body;
    struct jwrite w;
    assert(q->pod != NULL);
    buf_init(&body, 2 * LIMIT_OBJECT_BYTES);
    jwrite_init(&w, &body);
    jwrite_object_begin(&w);
    jwrite_u64_at(&w, STR("replicas"), q->replicas);
    jwrite_raw_at(&w, STR("pod"), q->pod->json);
    jwrite_object_end(&w);
    return arena_keep(a, &body);
}

static enum errc direct_answer(struct reading *r, const struct kubectl_question *q, struct str pod,
                               struct arena *a, struct buf *out, struct err *e)
{
    struct whatif_question w;
    struct pod_view view;
    if (q->command == KUBECTL_FIT) {
        enum errc code = whatif_read(kubectl_fit_body(q, a), a, &w, e);
        return code == OK ? whatif_write(&r->cache, &r->step_budget, &w, a, out) : code;
    }
    if (q->command == KUBECTL_EXPLAIN) {
        enum errc code = pod_read(pod, a, &view, e);
        return code == OK ? explain_write(&r->cache, &r->step_budget, &view, a, out, e) : code;
    }
    return inspect_write(&r->cache, &r->measured, q->node.n > 0 ? q->node : STR_NULL, INSPECT_CARDS,
                         a, out);
}

static enum errc direct_read_and_answer(struct reading *r, const struct kubectl_question *q,
                                        struct arena *a, struct str *ret, struct err *e)
{
    struct str pod = q->pod == NULL ? STR_NULL : q->pod->json;
    struct buf out;
    enum errc code = OK;
    if (q->command == KUBECTL_EXPLAIN && q->pod == NULL)
        code = direct_get_pod(r->client, q, a, &pod, e);
    if (code == OK)
        code = direct_read_all(r, e);
    if (code != OK)
        return code;
    buf_init(&out, LIMIT_KUBECTL_BYTES);
    code = direct_answer(r, q, pod, a, &out, e);
    *ret = code == OK ? arena_dup(a, buf_str(&out)) : STR_NULL;
    if (code != OK && e->code == OK)
        code = err_set(e, code, "the answer is too large");
    if (code == OK && ret->p == NULL)
        code = err_set(e, ERR_NOMEM, "out of memory");
    buf_done(&out);
    return code;
}

static struct reading *direct_open(struct kubectl_client *c, struct err *e)
{
    struct reading *r = mem_alloc(sizeof(*r));
    if (r == NULL) {
        (void)err_set(e, ERR_NOMEM, "out of memory");
        return NULL;
    }
    r->client = c;
    struct map_seed seed = {loop_random(c->loop), loop_random(c->loop)};
    cache_init(&r->cache, seed);
    measured_init(&r->measured, seed, INGEST_USAGE_MS);
    ingest_init(&r->ingest, c->loop, &r->cache);
    r->ingest.measured = &r->measured;
    return r;
}

static void direct_close(struct reading *r)
{
    ingest_done(&r->ingest);
    measured_done(&r->measured);
    cache_done(&r->cache);
    mem_free(r);
}

enum errc kubectl_ask_directly(struct kubectl_client *c, const struct kubectl_question *q,
                               struct arena *a, struct str *ret, struct err *reterr)
{
    struct reading *r = direct_open(c, reterr);
    if (r == NULL)
        return ERR_NOMEM;
    enum errc code = direct_read_and_answer(r, q, a, ret, reterr);
    direct_close(r);
    return code;
}

enum errc kubectl_read_measured(struct kubectl_client *c,
                                void (*use)(void *ctx, const struct measured *m), void *ctx,
                                struct err *reterr)
{
    struct reading *r = direct_open(c, reterr);
    if (r == NULL)
        return ERR_NOMEM;
    enum errc code = direct_read_list(r, CACHE_HEALTH, reterr);
    if (code == OK)
        use(ctx, &r->measured);
    direct_close(r);
    return code;
}
