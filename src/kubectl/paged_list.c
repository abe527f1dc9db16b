/*
 * Asks for pages of 500 objects with limit and continue, and cuts each page into its objects as it
 * arrives: the memory is that of one object, not of the list. If the continue token has expired
 * (410), the list is read again without pages.
 */
#include "kubectl/paged_list.h"

#include "kube/ingest.h"
#include "kube/limit.h"
#include "kubectl/limit.h"
#include "objects/watch.h"
#include "json/jcut.h"

#define LIST_PAGE_SIZE 500
#define ENVELOPE_BYTES (1 * KIB)
#define TOKEN_MAX      (64 * KIB)

const struct kubectl_source *kubectl_source_of(enum cache_kind kind)
{
    static const struct kubectl_source sources[CACHE_ALL_KINDS] = {
        [CACHE_NODES] = {STR("/api/v1/nodes"), STR_NULL, STR("NodeList"), STR("nodes")},
        [CACHE_PODS] = {STR("/api/v1/pods"), INGEST_POD_SELECTOR, STR("PodList"), STR("pods")},
        [CACHE_HEALTH] = {STR("/api/v1/namespaces/kube-system/configmaps"), STR_NULL,
                          STR("ConfigMapList"), STR("configmaps of kube-system")},
        [CACHE_SLICES] = {STR("/apis/resource.k8s.io/v1/resourceslices"), STR_NULL,
                          STR("ResourceSliceList"), STR("resourceslices")},
        [CACHE_CLAIMS] = {STR("/apis/resource.k8s.io/v1/resourceclaims"), STR_NULL,
                          STR("ResourceClaimList"), STR("resourceclaims")},
        [CACHE_CLASSES] = {STR("/apis/resource.k8s.io/v1/deviceclasses"), STR_NULL,
                           STR("DeviceClassList"), STR("deviceclasses")},
    };
    return sources[kind].path.p == NULL ? NULL : &sources[kind];
}

void kubectl_use_dialects(const struct kubectl_client *c, const struct cache *nodes)
{
    size_t cursor = 0;
    unsigned set = c->args->dialects != 0 ? c->args->dialects : DIALECTS_ALL;
    bool all = nodes == NULL || c->args->dialects != 0;
    for (const struct node *n = NULL; !all && (n = cache_next_node(nodes, &cursor)) != NULL;)
        all = n->sizes != NULL && dialect_has_nvidias(n->sizes->dialect);
    for (enum dialect d = 0; d < DIALECT_COUNT && !all; d++)
        set &= dialect_has_nvidias(d) ? ~DIALECT_BIT(d) : DIALECTS_ALL;
    dialects_use(set);
}

struct reading {
    struct kubectl_client *client;
    const struct kubectl_list *list;
    struct jcut cut;
    struct arena arena; /* for a page's metadata */
    struct buf token;   /* continue token of the next page; empty: no more pages */
    bool has_kind;      /* the page under way has shown its kind */
    size_t n_objects;   /* over all pages */
    size_t n_pages;
};

static enum errc paged_list_on_piece(void *ctx, enum jcut_piece kind, struct str piece,
                                     struct err *reterr)
{
    struct reading *r = ctx;
    struct list_meta meta;
    if (kind == JCUT_KIND) {
        r->has_kind = true;
        return list_kind_check(piece, r->list->kind, reterr);
    }
    if (kind == JCUT_ITEM) {
        r->n_objects++;
        return r->list->take(r->list->ctx, piece, reterr);
    }
    arena_reset(&r->arena);
    enum errc code = list_meta_read(piece, &r->arena, &meta, reterr);
    if (code == OK)
        buf_put(&r->token, meta.next);
    return code;
}

static enum errc paged_list_on_chunk(void *ctx, struct str chunk, struct err *reterr)
{
    struct reading *r = ctx;
    return jcut_push(&r->cut, chunk, reterr);
}

static void paged_list_put_query(const struct reading *r, bool paged, struct buf *out)
{
    struct str query = r->list->query;
    buf_put(out, r->list->path);
    buf_put(out, query.n > 0 ? STR("?") : STR(""));
    buf_put(out, query);
    if (paged)
        buf_printf(out, "%slimit=%d", query.n > 0 ? "&" : "?", LIST_PAGE_SIZE);
    if (paged && r->token.n > 0) {
        buf_put(out, STR("&continue="));
        kube_put_escaped(out, buf_str(&r->token));
    }
}

static enum errc paged_list_request(struct reading *r, bool paged, struct err *e)
{
    struct buf query;
    buf_init(&query, 4 * TOKEN_MAX);
    paged_list_put_query(r, paged, &query);
    buf_clear(&r->token, KIB);
    jcut_reset(&r->cut);
    r->has_kind = false;
    r->n_pages++;
    enum errc code = r->list->request == NULL ? OK : r->list->request(r->list->ctx, e);
    if (code == OK && buf_failed(&query))
        code = err_set(e, buf_fault(&query), "the address of a list is too long");
    if (code == OK)
        code = kubectl_client_stream(r->client, buf_str(&query), paged_list_on_chunk, r, e);
    buf_done(&query);
    return code == OK ? kubectl_client_result(r->client, e) : code;
}

static enum errc paged_list_read_page(struct reading *r, bool paged, struct err *e)
{
    enum errc code = paged_list_request(r, paged, e);
    if (code == OK)
        code = jcut_finish(&r->cut, e);
    if (code == OK && !r->has_kind)
        code = err_set(e, ERR_SYNTAX, "a list without a kind");
    if (code == OK && buf_failed(&r->token))
        code = err_set(e, buf_fault(&r->token), "a continue token is too large");
    /* A page has at least one object, with at most LIMIT_LIST_EMPTY_PAGES exceptions. */
    if (code == OK && r->token.n > 0 &&
        (r->n_objects > LIMIT_LIST_OBJECTS || r->n_pages > r->n_objects + LIMIT_LIST_EMPTY_PAGES))
        code = err_set(e, ERR_LIMIT, "a list that does not end");
    return code;
}

static void paged_list_begin(struct reading *r)
{
    buf_clear(&r->token, KIB);
    r->n_objects = r->n_pages = 0;
    if (r->list->begin != NULL)
        r->list->begin(r->list->ctx);
}

static enum errc paged_list_read_all(struct reading *r, struct err *e)
{
    bool paged = true;
    enum errc code = OK;
    paged_list_begin(r);
    do {
        bool continued = r->token.n > 0;
        code = paged_list_read_page(r, paged, e);
        if (code == ERR_NOTFOUND && continued && kubectl_client_status(r->client) == 410) {
            paged = false;
            paged_list_begin(r);
            code = paged_list_read_page(r, paged, e);
        }
    } while (code == OK && r->token.n > 0);
    return code;
}

enum errc kubectl_list_read(struct kubectl_client *c, const struct kubectl_list *l,
                            struct err *reterr)
{
    struct reading r = {.client = c, .list = l};
    jcut_init(&r.cut, JCUT_LIST, LIMIT_OBJECT_BYTES + ENVELOPE_BYTES, paged_list_on_piece, &r);
    arena_init(&r.arena, 4 * TOKEN_MAX);
    buf_init(&r.token, TOKEN_MAX);
    enum errc code = paged_list_read_all(&r, reterr);
    buf_done(&r.token);
    arena_done(&r.arena);
    jcut_done(&r.cut);
    return code;
}
