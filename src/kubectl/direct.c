/*
 * Answers from the API server alone: reads its lists of nodes, pods and kube-system's ConfigMaps
 * into a cache, page by page and object by object as the daemon does, and computes the answer with
 * the daemon's code. Bindings under way are unknown, and so is the daemon's configuration: its
 * defaults are used.
 */
#include "kubectl/direct.h"

#include "base/mem.h"
#include "codec/jcut.h"
#include "codec/jwrite.h"
#include "codec/watch.h"
#include "kube/ingest.h"
#include "kube/limit.h"
#include "kubectl/limit.h"
#include "kubectl/say.h"
#include "report/explain_write.h"
#include "report/inspect_write.h"
#include "report/pod_read.h"
#include "report/whatif.h"

#define LIST_PAGE_SIZE 500
#define ENVELOPE_BYTES (1 * KIB)
#define TOKEN_MAX      (64 * KIB)

struct reading {
    struct kubectl_client *client;
    struct cache cache;
    struct work work; /* counts the steps of the answer */
    struct ingest ingest;
    struct jcut cut;
    struct arena arena; /* for a page's metadata */
    struct buf token;   /* continue token of the next page; empty: no more pages */
    struct str kind;    /* of the list */
    bool kind_seen;     /* in the page under way */
    size_t n_objects;   /* of the list, over all pages */
    size_t n_pages;
    void (*take)(struct ingest *in, struct str json, bool gone);
};

static enum errc direct_on_piece(void *ctx, enum jcut_piece kind, struct str piece,
                                 struct err *reterr)
{
    struct reading *r = ctx;
    struct list_meta meta;
    if (kind == JCUT_KIND) {
        r->kind_seen = true;
        return list_kind_check(piece, r->kind, reterr);
    }
    if (kind == JCUT_ITEM) {
        r->n_objects++;
        r->take(&r->ingest, piece, false);
        return r->ingest.lost ? err_set(reterr, ERR_NOMEM, "out of memory") : OK;
    }
    arena_reset(&r->arena);
    enum errc code = list_meta_read(piece, &r->arena, &meta, reterr);
    if (code == OK)
        buf_put(&r->token, meta.next);
    return code;
}

static enum errc direct_on_chunk(void *ctx, struct str chunk, struct err *reterr)
{
    struct reading *r = ctx;
    return jcut_push(&r->cut, chunk, reterr);
}

static enum errc direct_read_page(struct reading *r, struct str path, struct str selector,
                                  bool paged, struct err *e)
{
    struct buf query;
    buf_init(&query, 4 * TOKEN_MAX);
    buf_put(&query, path);
    buf_put(&query, selector.n > 0 ? STR("?") : STR(""));
    buf_put(&query, selector);
    if (paged)
        buf_printf(&query, "%slimit=%d", selector.n > 0 ? "&" : "?", LIST_PAGE_SIZE);
    if (paged && r->token.n > 0) {
        buf_put(&query, STR("&continue="));
        kube_put_escaped(&query, buf_str(&r->token));
    }
    buf_clear(&r->token, KIB);
    jcut_reset(&r->cut);
    r->kind_seen = false;
    r->n_pages++;
    enum errc code = buf_failed(&query)
                         ? err_set(e, ERR_NOMEM, "out of memory")
                         : kubectl_client_stream(r->client, buf_str(&query), direct_on_chunk, r, e);
    buf_done(&query);
    if (code == OK)
        code = kube_call_result(&r->client->call, e);
    if (code == OK)
        code = jcut_finish(&r->cut, e);
    if (code == OK && !r->kind_seen)
        code = err_set(e, ERR_SYNTAX, "a list without a kind");
    /* A page has at least one object, with at most LIMIT_LIST_EMPTY_PAGES exceptions. */
    if (code == OK && r->token.n > 0 &&
        (r->n_objects > LIMIT_LIST_OBJECTS || r->n_pages > r->n_objects + LIMIT_LIST_EMPTY_PAGES))
        code = err_set(e, ERR_LIMIT, "a list that does not end");
    return code;
}

/* If the continue token has expired (410), the list is read again without pages. */
static enum errc direct_read_list(struct reading *r, enum cache_kind kind, struct str path,
                                  struct str selector, struct err *e)
{
    static const struct str kinds[CACHE_KINDS] = {[CACHE_NODES] = STR("NodeList"),
                                                  [CACHE_PODS] = STR("PodList"),
                                                  [CACHE_HEALTH] = STR("ConfigMapList")};
    bool paged = true;
    enum errc code = OK;
    r->kind = kinds[kind];
    r->n_objects = r->n_pages = 0;
    buf_clear(&r->token, KIB);
    ingest_list_begin(&r->ingest, kind);
    do {
        bool continued = r->token.n > 0;
        code = direct_read_page(r, path, selector, paged, e);
        if (code == ERR_NOTFOUND && continued && kubectl_client_status(r->client) == 410) {
            paged = false;
            buf_clear(&r->token, KIB);
            ingest_list_begin(&r->ingest, kind);
            code = direct_read_page(r, path, selector, paged, e);
        }
        if (code == OK && buf_failed(&r->token))
            code = err_set(e, ERR_LIMIT, "a continue token is too large");
    } while (code == OK && r->token.n > 0);
    if (code == OK)
        (void)ingest_list_end(&r->ingest, kind);
    return code;
}

/* Without the right to read the ConfigMaps the answer may be too optimistic: a line says so. */
static enum errc direct_read_configmaps(struct reading *r, struct err *e)
{
    r->take = ingest_configmap;
    enum errc code = direct_read_list(
        r, CACHE_HEALTH, STR("/api/v1/namespaces/kube-system/configmaps"), STR_NULL, e);
    if (code != ERR_DENIED)
        return code;
    kubectl_say("unhealthy cards and quotas are not known: %s", e->text);
    *e = (struct err)ERR_INIT;
    return OK;
}

static enum errc direct_read_all(struct reading *r, struct err *e)
{
    r->take = ingest_node;
    enum errc code = direct_read_list(r, CACHE_NODES, STR("/api/v1/nodes"), STR_NULL, e);
    r->take = ingest_pod;
    if (code == OK)
        code = direct_read_list(r, CACHE_PODS, STR("/api/v1/pods"), INGEST_POD_SELECTOR, e);
    return code == OK ? direct_read_configmaps(r, e) : code;
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
        code = kube_call_result(&c->call, e);
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

static enum errc direct_answer(struct reading *r, const struct kubectl_question *q, struct str pod,
                               struct arena *a, struct buf *out, struct err *e)
{
    struct whatif_question w;
    struct pod_view view;
    if (q->command == KUBECTL_FIT) {
        enum errc code = whatif_read(kubectl_fit_body(q, a), a, &w, e);
        return code == OK ? whatif_write(&r->cache, &r->work, &w, a, out) : code;
    }
    if (q->command == KUBECTL_EXPLAIN) {
        enum errc code = pod_read(pod, a, &view, e);
        return code == OK ? explain_write(&r->cache, &r->work, &view, a, out, e) : code;
    }
    return inspect_write(&r->cache, q->node.n > 0 ? q->node : STR_NULL, INSPECT_CARDS, a, out);
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

enum errc kubectl_ask_directly(struct kubectl_client *c, const struct kubectl_question *q,
                               struct arena *a, struct str *ret, struct err *reterr)
{
    struct reading *r = mem_alloc(sizeof(*r));
    if (r == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    r->client = c;
    cache_init(&r->cache, (struct map_seed){loop_random(c->loop), loop_random(c->loop)});
    ingest_init(&r->ingest, c->loop, &r->cache);
    jcut_init(&r->cut, JCUT_LIST, LIMIT_OBJECT_BYTES + ENVELOPE_BYTES, direct_on_piece, r);
    arena_init(&r->arena, 4 * TOKEN_MAX);
    buf_init(&r->token, TOKEN_MAX);
    enum errc code = direct_read_and_answer(r, q, a, ret, reterr);
    buf_done(&r->token);
    arena_done(&r->arena);
    jcut_done(&r->cut);
    ingest_done(&r->ingest);
    cache_done(&r->cache);
    mem_free(r);
    return code;
}
