/*
 * The API server alone: its lists of nodes, pods and kube-system's ConfigMaps into a cache, page by
 * page and object by object as in the daemon, and the daemon's own answers from that cache. What
 * only the daemon knows is missing: Bindings under way, and its configuration, of which the
 * defaults are taken.
 */
#include "explain_write.h"
#include "ingest.h"
#include "inspect_write.h"
#include "jcut.h"
#include "kube_backend.h"
#include "kubectl_ask.h"
#include "limit.h"
#include "mem.h"
#include "pod_read.h"
#include "watch.h"
#include "whatif.h"

#define PAGE_SIZE      500
#define ENVELOPE_BYTES (1 * KIB)
#define TOKEN_MAX      (64 * KIB)

struct reading {
    struct kubectl_client *client;
    struct service service; /* its cache is all that the answers look at */
    struct ingest ingest;
    struct jcut cut;
    struct arena arena; /* of a page's metadata */
    struct buf token;   /* of the page to come; empty: the last one is in */
    void (*take)(struct ingest *in, struct str json, bool gone);
};

static enum errc on_piece(void *ctx, enum jcut_piece kind, struct str piece, struct err *reterr)
{
    struct reading *r = ctx;
    struct list_meta meta;
    if (kind == JCUT_ITEM) {
        r->take(&r->ingest, piece, false);
        return r->ingest.lost ? err_set(reterr, ERR_NOMEM, "out of memory") : OK;
    }
    arena_reset(&r->arena);
    enum errc code = list_meta_read(piece, &r->arena, &meta, reterr);
    if (code == OK)
        buf_put(&r->token, meta.next);
    return code;
}

static enum errc on_chunk(void *ctx, struct str chunk, struct err *reterr)
{
    struct reading *r = ctx;
    return jcut_push(&r->cut, chunk, reterr);
}

static enum errc read_page(struct reading *r, struct str path, struct str selector, bool paged,
                           struct err *e)
{
    struct buf query;
    buf_init(&query, 4 * TOKEN_MAX);
    buf_put(&query, path);
    buf_put(&query, selector.n > 0 ? STR("?") : STR(""));
    buf_put(&query, selector);
    if (paged)
        buf_printf(&query, "%slimit=%d", selector.n > 0 ? "&" : "?", PAGE_SIZE);
    if (paged && r->token.n > 0) {
        buf_put(&query, STR("&continue="));
        kube_put_escaped(&query, buf_str(&r->token));
    }
    buf_clear(&r->token, KIB);
    jcut_reset(&r->cut);
    enum errc code = buf_failed(&query)
                         ? err_set(e, ERR_NOMEM, "out of memory")
                         : kubectl_client_stream(r->client, buf_str(&query), on_chunk, r, e);
    buf_done(&query);
    if (code == OK)
        code = kube_call_result(&r->client->call, e);
    return code == OK ? jcut_finish(&r->cut, e) : code;
}

/* A list whose version is gone by its next page is read again, whole. */
static enum errc read_list(struct reading *r, enum cache_kind kind, struct str path,
                           struct str selector, struct err *e)
{
    bool paged = true;
    enum errc code = OK;
    buf_clear(&r->token, KIB);
    ingest_list_begin(&r->ingest, kind);
    do {
        bool continued = r->token.n > 0;
        code = read_page(r, path, selector, paged, e);
        if (code == ERR_NOTFOUND && continued && kubectl_client_status(r->client) == 410) {
            paged = false;
            buf_clear(&r->token, KIB);
            ingest_list_begin(&r->ingest, kind);
            code = read_page(r, path, selector, paged, e);
        }
        if (code == OK && buf_failed(&r->token))
            code = err_set(e, ERR_LIMIT, "a continue token is too large");
    } while (code == OK && r->token.n > 0);
    if (code == OK)
        (void)ingest_list_end(&r->ingest, kind);
    return code;
}

/* Without the ConfigMaps what is said may be too good, and that is said, too. */
static enum errc read_configmaps(struct reading *r, struct err *e)
{
    r->take = ingest_configmap;
    enum errc code =
        read_list(r, CACHE_HEALTH, STR("/api/v1/namespaces/kube-system/configmaps"), STR_NULL, e);
    if (code != ERR_DENIED)
        return code;
    kubectl_say("unhealthy cards and quotas are not known: %s", e->text);
    *e = (struct err)ERR_INIT;
    return OK;
}

static enum errc read_all(struct reading *r, struct err *e)
{
    r->take = ingest_node;
    enum errc code = read_list(r, CACHE_NODES, STR("/api/v1/nodes"), STR_NULL, e);
    r->take = ingest_pod;
    if (code == OK)
        code = read_list(r, CACHE_PODS, STR("/api/v1/pods"), KUBE_BACKEND_POD_SELECTOR, e);
    return code == OK ? read_configmaps(r, e) : code;
}

static enum errc get_pod(struct kubectl_client *c, const struct kubectl_question *q,
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
        code = kube_call_result(&c->call, e);
    if (code == ERR_NOTFOUND)
        return err_set(e, code, "pod %.*s/%.*s: there is no such pod", STR_ARG(q->namespace),
                       STR_ARG(q->name));
    if (code != OK)
        return code;
    *ret = arena_dup(a, kubectl_client_reply(c));
    return ret->p == NULL ? err_set(e, ERR_NOMEM, "out of memory") : OK;
}

static enum errc answer(struct reading *r, const struct kubectl_question *q, struct str pod,
                        struct arena *a, struct buf *out, struct err *e)
{
    struct whatif_question w;
    struct pod_view view;
    if (q->command == KUBECTL_FIT) {
        enum errc code = whatif_read(kubectl_fit_body(q, a), a, &w, e);
        return code == OK ? whatif_write(&r->service, &w, a, out) : code;
    }
    if (q->command == KUBECTL_EXPLAIN) {
        enum errc code = pod_read(pod, a, &view, e);
        return code == OK ? explain_write(&r->service, &view, a, out) : code;
    }
    return inspect_write(&r->service.cache, q->node.n > 0 ? q->node : STR_NULL, INSPECT_CARDS, a,
                         out);
}

static enum errc read_and_answer(struct reading *r, const struct kubectl_question *q,
                                 struct arena *a, struct str *ret, struct err *e)
{
    struct str pod = q->pod == NULL ? STR_NULL : q->pod->json;
    struct buf out;
    enum errc code = OK;
    if (q->command == KUBECTL_EXPLAIN && q->pod == NULL)
        code = get_pod(r->client, q, a, &pod, e);
    if (code == OK)
        code = read_all(r, e);
    if (code != OK)
        return code;
    buf_init(&out, LIMIT_KUBECTL_BYTES);
    code = answer(r, q, pod, a, &out, e);
    *ret = code == OK ? arena_dup(a, buf_str(&out)) : STR_NULL;
    if (code != OK && e->code == OK)
        code = err_set(e, code, "the answer is too large");
    if (code == OK && ret->p == NULL)
        code = err_set(e, ERR_NOMEM, "out of memory");
    buf_done(&out);
    return code;
}

enum errc kubectl_ask_directly(struct kubectl_client *c, const struct kubectl_question *q,
                               struct arena *a, struct str *ret, struct err *reterr)
{
    struct reading *r = mem_alloc(sizeof(*r));
    if (r == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    r->client = c;
    cache_init(&r->service.cache, (struct map_seed){loop_random(c->loop), loop_random(c->loop)});
    ingest_init(&r->ingest, c->loop, &r->service.cache);
    jcut_init(&r->cut, JCUT_LIST, LIMIT_OBJECT_BYTES + ENVELOPE_BYTES, on_piece, r);
    arena_init(&r->arena, 4 * TOKEN_MAX);
    buf_init(&r->token, TOKEN_MAX);
    enum errc code = read_and_answer(r, q, a, ret, reterr);
    buf_done(&r->token);
    arena_done(&r->arena);
    jcut_done(&r->cut);
    ingest_done(&r->ingest);
    cache_done(&r->service.cache);
    mem_free(r);
    return code;
}
