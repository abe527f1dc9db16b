/* Reads the objects of a cluster, one at a time. */
#include "sim/dump.h"

#include "base/sort.h"
#include "objects/kube.h"
#include "sim/limit.h"
#include "json/jcut.h"
#include "json/yaml.h"

/* A pod that asks for cards, until the pods are in order. */
struct seen_pod {
    struct str name; /* "namespace/name" */
    uint32_t shape;
    uint32_t created_s;
    bool pending;
};

struct reading {
    struct str path;
    struct arena *arena;
    struct arena object; /* of one object */
    struct sim_shapes shapes;
    struct sim_workload *workload;
    struct sim_node *nodes;
    size_t nodes_cap;
    struct sim_held *held;
    size_t held_cap;
    struct seen_pod *seen;
    size_t n_seen;
    size_t seen_cap;
    uint64_t n; /* objects so far */
};

static enum errc dump_full(const struct reading *r, struct err *e)
{
    bool failed = arena_failed(r->arena);
    return err_set(e, failed ? arena_fault(r->arena) : ERR_LIMIT,
                   "%.*s: too much for the memory of a simulation", STR_ARG(r->path));
}

/* ---- nodes ---- */

static enum errc dump_take_node(struct reading *r, const struct node_view *view, struct err *e)
{
    struct sim_workload *w = r->workload;
    if (w->n_nodes == LIMIT_SIM_NODES)
        return dump_full(r, e);
    r->nodes = arena_grow(r->arena, r->nodes, w->n_nodes, &r->nodes_cap, sizeof(*r->nodes));
    if (r->nodes == NULL)
        return dump_full(r, e);
    r->nodes[w->n_nodes++] = (struct sim_node){.view = sim_node_keep(view, r->arena)};
    w->nodes = r->nodes;
    return arena_failed(r->arena) ? dump_full(r, e) : OK;
}

/* ---- pods ---- */

static struct str dump_name(struct reading *r, const struct pod_view *v)
{
    struct buf b;
    buf_init(&b, 4 * KIB);
    buf_printf(&b, "%.*s/%.*s", STR_ARG(v->namespace), STR_ARG(v->name));
    return arena_keep(r->arena, &b);
}

static struct pod_view dump_place(struct reading *r, const struct pod_view *v)
{
    struct grant_view *grants =
        v->n_grants == 0 ? NULL : arena_array(r->arena, v->n_grants, sizeof(*grants));
    for (size_t i = 0; grants != NULL && i < v->n_grants; i++)
        grants[i] = v->grants[i];
    return (struct pod_view){.node = arena_dup(r->arena, v->node),
                             .idx = v->idx.p == NULL ? STR_NULL : arena_dup(r->arena, v->idx),
                             .initialized = v->initialized,
                             .has_allocation = v->has_allocation,
                             .grants = grants,
                             .n_grants = v->n_grants};
}

static enum errc dump_take_held(struct reading *r, const struct pod_view *v, uint32_t shape,
                                struct err *e)
{
    struct sim_workload *w = r->workload;
    r->held = arena_grow(r->arena, r->held, w->n_held, &r->held_cap, sizeof(*r->held));
    if (r->held == NULL)
        return dump_full(r, e);
    r->held[w->n_held++] = (struct sim_held){.shape = shape, .place = dump_place(r, v)};
    w->held = r->held;
    return OK;
}

/* A pod whose request can't be read never gets a card: it is left out, and the output says so. A
 * bound one keeps what can be read of it. */
static void dump_leave_out(struct reading *r, const struct pod_view *v, const struct err *why)
{
    if (r->workload->n_unread++ == 0)
        (void)err_set(&r->workload->unread, why->code, "%.*s/%.*s: %s%s", STR_ARG(v->namespace),
                      STR_ARG(v->name), why->text,
                      pod_view_bound(v) ? "; it keeps what can be read of its node" : "");
}

static enum errc dump_take_pod(struct reading *r, const struct pod_view *v, struct err *e)
{
    struct err why = ERR_INIT;
    uint32_t shape = 0;
    if (pod_view_terminal(v))
        return OK;
    if (r->n_seen == LIMIT_SIM_PODS || r->workload->n_held == LIMIT_SIM_PODS)
        return dump_full(r, e);
    enum errc code = sim_shapes_add(&r->shapes, v, &shape, &why);
    if (code == ERR_NOMEM || code == ERR_LIMIT)
        return dump_full(r, e);
    bool readable = why.code == OK;
    if (!readable)
        dump_leave_out(r, v, &why);
    code = pod_view_bound(v) ? dump_take_held(r, v, shape, e) : OK;
    if (code != OK || !readable || !request_wants(&r->shapes.all[shape].request))
        return code;
    r->seen = arena_grow(r->arena, r->seen, r->n_seen, &r->seen_cap, sizeof(*r->seen));
    if (r->seen == NULL)
        return dump_full(r, e);
    r->seen[r->n_seen++] = (struct seen_pod){.name = dump_name(r, v),
                                             .shape = shape,
                                             .created_s = v->created_s,
                                             .pending = !pod_view_bound(v)};
    return arena_failed(r->arena) ? dump_full(r, e) : OK;
}

/* ---- the list ---- */

static struct str dump_kind(struct reading *r, struct str json, struct err *e)
{
    struct jread reader;
    jread_init(&reader, json, &r->object);
    struct str kind = jread_member(&reader, STR("kind"));
    return jread_finish(&reader, e) == OK ? kind : STR_NULL;
}

static enum errc dump_take_object(struct reading *r, struct str json, struct err *e)
{
    struct jread reader;
    struct node_view node;
    struct pod_view pod;
    struct str kind = dump_kind(r, json, e);
    if (e->code != OK)
        return e->code;
    bool is_node = str_eq(kind, STR("Node"));
    if (!is_node && !str_eq(kind, STR("Pod")))
        return OK;
    jread_init(&reader, json, &r->object);
    if (is_node)
        kube_read_node(&reader, &r->object, &node);
    else
        kube_read_pod(&reader, &r->object, &pod);
    enum errc code = jread_finish(&reader, e);
    if (code == OK && (is_node ? node.name : pod.name).n == 0)
        code = err_set(e, ERR_SYNTAX, "it has no metadata.name");
    if (code != OK)
        return code;
    return is_node ? dump_take_node(r, &node, e) : dump_take_pod(r, &pod, e);
}

static enum errc dump_on_piece(void *ctx, enum jcut_piece kind, struct str piece, struct err *e)
{
    struct reading *r = ctx;
    if (kind != JCUT_ITEM)
        return OK;
    r->n++;
    arena_reset(&r->object);
    if (dump_take_object(r, piece, e) != OK)
        return err_wrap(e, "object %llu", (unsigned long long)r->n);
    return OK;
}

static bool dump_comes_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct seen_pod *x = (const struct seen_pod *)ctx + a;
    const struct seen_pod *y = (const struct seen_pod *)ctx + b;
    if (x->created_s != y->created_s)
        return x->created_s < y->created_s;
    int order = str_cmp(x->name, y->name);
    return order != 0 ? order < 0 : a < b;
}

static enum errc dump_sort(struct reading *r, struct err *e)
{
    struct sim_workload *w = r->workload;
    uint32_t n = (uint32_t)r->n_seen;
    uint32_t *order = arena_array(r->arena, n, sizeof(*order));
    uint32_t *pending = arena_array(r->arena, n, sizeof(*pending));
    if (order == NULL || pending == NULL)
        return dump_full(r, e);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    sort_by(order, n, dump_comes_before, r->seen);
    for (uint32_t i = 0; i < n; i++) {
        const struct seen_pod *p = &r->seen[order[i]];
        order[i] = p->shape;
        if (p->pending)
            pending[w->n_pending++] = p->shape;
    }
    w->pods = order;
    w->n_pods = n;
    w->pending = pending;
    return OK;
}

/* Finds the nodes of the pods that have one. */
static enum errc dump_find_nodes(struct reading *r, struct err *e)
{
    struct sim_workload *w = r->workload;
    struct map index;
    enum errc code = sim_nodes_index(&index, r->nodes, w->n_nodes, e);
    if (code != OK)
        code = err_wrap(e, "%.*s", STR_ARG(r->path));
    for (uint32_t i = 0; i < w->n_held && code == OK; i++) {
        const struct sim_node *n = map_get(&index, r->held[i].place.node);
        r->held[i].node = n == NULL ? UINT32_MAX : (uint32_t)(n - r->nodes);
    }
    map_done(&index);
    return code;
}

static enum errc dump_cut(struct reading *r, struct str text, struct err *e)
{
    struct jcut cut;
    struct buf json;
    buf_init(&json, LIMIT_SIM_FILE_BYTES);
    jcut_init(&cut, JCUT_LIST, LIMIT_OBJECT_BYTES, dump_on_piece, r);
    bool is_json = str_starts(str_trim(text), STR("{"));
    enum errc code = is_json ? OK : yaml_to_json(text, &json, e);
    if (code == OK)
        code = jcut_push(&cut, is_json ? text : buf_str(&json), e);
    if (code == OK)
        code = jcut_finish(&cut, e);
    jcut_done(&cut);
    buf_done(&json);
    return code == OK ? OK : err_wrap(e, "%.*s", STR_ARG(r->path));
}

enum errc dump_read(struct str path, struct str text, struct arena *a, struct sim_workload *ret,
                    struct err *reterr)
{
    struct reading r = {.path = path, .arena = a, .shapes = {.arena = a}, .workload = ret};
    *ret = (struct sim_workload){.name = STR("cluster")};
    arena_init(&r.object, LIMIT_OBJECT_ARENA);
    enum errc code = dump_cut(&r, text, reterr);
    if (code == OK && ret->n_nodes == 0)
        code = err_set(reterr, ERR_SYNTAX, "%.*s: it has no nodes", STR_ARG(path));
    if (code == OK)
        code = dump_find_nodes(&r, reterr);
    if (code == OK)
        code = dump_sort(&r, reterr);
    arena_done(&r.object);
    ret->shapes = r.shapes.all;
    ret->n_shapes = (uint32_t)r.shapes.n;
    return code;
}
