/*
 * Slices and claims meet in pools: a pool has a list of its slices and a list of the uses of its
 * devices. Each use points to its device, and is in the list of the device's node. A change finds
 * the uses that it concerns by the pool, and needs no memory for that: all memory that a new object
 * takes is allocated before the first change.
 *
 * Rejected: a map of all devices, by driver, pool and name. It would hold every device of the
 * cluster, while only the held ones are looked up.
 */
#include "core/dra/dra.h"

#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "core/dra/dra_pack.h"

struct dra_pool {
    struct str key; /* driver, NUL, name; stored behind the struct */
    struct list slices;
    struct list uses; /* struct dra_use.in_pool */
};

struct dra_slice {
    struct str name;
    struct list_link in_pool;
    struct dra_pool *pool;
    int64_t generation;
    uint32_t epoch;
    uint32_t n_devices;
    bool retired; /* gone or replaced, and not in the map; kept for the uses of its devices */
    bool apart;   /* each device has its own of `nodes`; else all have the first */
    struct dra_shape *shape;  /* shared, in the store's `shapes` */
    struct dra_node *nodes[]; /* NULL: the device has none. Behind them are the UUIDs */
};

static uint32_t dra_slice_nodes(const struct dra_slice *s)
{
    return s->apart ? s->n_devices : 1;
}

static const unsigned char *dra_slice_uuids(const struct dra_slice *s)
{
    return (const unsigned char *)&s->nodes[dra_slice_nodes(s)];
}

/* ---- nodes ---- */

void dra_init(struct dra *d, struct map_seed seed)
{
    map_init(&d->slices, offsetof(struct dra_slice, name), seed);
    map_init(&d->pools, offsetof(struct dra_pool, key), seed);
    map_init(&d->claims, offsetof(struct dra_claim, uid), seed);
    map_init(&d->nodes, offsetof(struct dra_node, name), seed);
    map_init(&d->classes, offsetof(struct dra_class, name), seed);
    map_save_memory(&d->slices); /* read when objects change, not in decisions */
    map_save_memory(&d->pools);
    map_save_memory(&d->claims);
    map_save_memory(&d->nodes);
    intern_init(&d->shapes, seed);
    list_init(&d->dirty);
}

struct dra_node *dra_node(const struct dra *d, struct str name)
{
    return map_get(&d->nodes, name);
}

static void dra_mark(struct dra *d, struct dra_node *x)
{
    if (x != NULL && !list_is_linked(&x->dirty))
        list_push_back(&d->dirty, &x->dirty);
}

struct dra_node *dra_next_dirty(struct dra *d)
{
    struct dra_node *x = LIST_FIRST(&d->dirty, struct dra_node, dirty);
    if (x != NULL)
        list_remove(&x->dirty);
    return x;
}

void dra_release_node(struct dra *d, struct dra_node *x)
{
    if (x->refs > 0 || list_is_linked(&x->dirty))
        return;
    assert(list_is_empty(&x->uses));
    const struct dra_node *known = map_del(&d->nodes, x->name);
    assert(known == x);
    mem_free(x);
}

/* A node without refs is in the list `dirty` or is new. NULL: allocation failed. */
static struct dra_node *dra_node_get_or_add(struct dra *d, struct str name)
{
    struct dra_node *x = map_get(&d->nodes, name);
    if (x != NULL)
        return x;
    x = mem_alloc(sizeof(*x) + name.n);
    if (x == NULL)
        return NULL;
    char *at = (char *)(x + 1);
    x->name = str_store(&at, name);
    list_init(&x->uses);
    if (map_put(&d->nodes, x) != OK) {
        mem_free(x);
        return NULL;
    }
    return x;
}

/* ---- pools ---- */

static struct dra_pool *dra_pool_get_or_add(struct dra *d, struct str driver, struct str name)
{
    char bytes[2 * DRA_NAME_MAX + 1];
    char *at = bytes;
    assert(driver.n <= DRA_NAME_MAX && name.n <= DRA_NAME_MAX);
    (void)str_store(&at, driver);
    *at++ = '\0';
    (void)str_store(&at, name);
    struct str key = {bytes, (size_t)(at - bytes)};
    struct dra_pool *p = map_get(&d->pools, key);
    if (p != NULL)
        return p;
    p = mem_alloc(sizeof(*p) + key.n);
    if (p == NULL)
        return NULL;
    at = (char *)(p + 1);
    p->key = str_store(&at, key);
    list_init(&p->slices);
    list_init(&p->uses);
    if (map_put(&d->pools, p) != OK) {
        mem_free(p);
        return NULL;
    }
    return p;
}

static void dra_pool_release(struct dra *d, struct dra_pool *p)
{
    if (!list_is_empty(&p->slices) || !list_is_empty(&p->uses))
        return;
    const struct dra_pool *known = map_del(&d->pools, p->key);
    assert(known == p);
    mem_free(p);
}

/* *ret_node, unless NULL, is set if the device is found. */
static bool dra_slice_find(const struct dra_slice *s, struct str device, struct dra_node **ret_node)
{
    uint32_t i = 0;
    if (!dra_shape_find(s->shape, dra_slice_uuids(s), device, &i, NULL))
        return false;
    if (ret_node != NULL)
        *ret_node = s->nodes[s->apart ? i : 0];
    return true;
}

/* Present slices win over retired ones, then newer generations, then the first. */
static const struct dra_slice *dra_pool_find(const struct dra_pool *p, struct str device,
                                             struct dra_node **ret_node)
{
    const struct dra_slice *best = NULL;
    LIST_FOR_EACH (const struct dra_slice, s, &p->slices, in_pool) {
        bool better = best == NULL || (best->retired && !s->retired) ||
                      (best->retired == s->retired && s->generation > best->generation);
        if (better && dra_slice_find(s, device, ret_node))
            best = s;
    }
    return best;
}

static void dra_use_leave(struct dra *d, struct dra_use *u)
{
    if (u->node != NULL) {
        list_remove(&u->on_node);
        dra_mark(d, u->node);
    }
    u->slice = NULL;
    u->node = NULL;
    u->joined = DRA_UNKNOWN;
}

/* Looks for the device of the use again. */
static void dra_use_resolve(struct dra *d, struct dra_use *u)
{
    dra_use_leave(d, u);
    u->slice = dra_pool_find(u->pool, u->device, &u->node);
    if (u->slice == NULL)
        return;
    u->joined = DRA_NO_CARD;
    if (u->node == NULL)
        return;
    list_push_back(&u->node->uses, &u->on_node);
    dra_mark(d, u->node);
}

void dra_use_facts(const struct dra_use *u, struct dra_facts *ret)
{
    uint32_t i;
    bool found = dra_shape_find(u->slice->shape, dra_slice_uuids(u->slice), u->device, &i, ret);
    assert(found);
}

/* The uses whose device is in s, or could be from now on. */
static void dra_slice_resolve(struct dra *d, const struct dra_slice *s)
{
    LIST_FOR_EACH (struct dra_use, u, &s->pool->uses, in_pool) {
        if (u->slice == s || dra_slice_find(s, u->device, NULL))
            dra_use_resolve(d, u);
    }
}

static void dra_slice_free(struct dra *d, struct dra_slice *s)
{
    for (uint32_t i = 0; i < dra_slice_nodes(s); i++) {
        struct dra_node *x = s->nodes[i];
        if (x == NULL)
            continue;
        assert(x->refs > 0);
        x->refs--;
        dra_mark(d, x);
    }
    if (s->pool != NULL)
        list_remove(&s->in_pool);
    dra_shape_give(&d->shapes, s->shape);
    mem_free(s);
}

static bool dra_slice_is_used(const struct dra_slice *s)
{
    LIST_FOR_EACH (const struct dra_use, u, &s->pool->uses, in_pool) {
        if (u->slice == s)
            return true;
    }
    return false;
}

/* Frees the retired slices that no use needs any more, and the pool if it is empty then. */
static void dra_pool_tidy(struct dra *d, struct dra_pool *p)
{
    LIST_FOR_EACH (struct dra_slice, s, &p->slices, in_pool) {
        if (s->retired && !dra_slice_is_used(s))
            dra_slice_free(d, s);
    }
    dra_pool_release(d, p);
}

/* ---- slices ---- */

/* In no pool, no list and no map yet. NULL: allocation failed. */
static struct dra_slice *dra_slice_new(struct dra *d, const struct dra_slice_view *v)
{
    bool apart = v->node.n == 0;
    size_t nodes = apart ? v->n_devices : 1;
    struct dra_slice *s = mem_alloc(sizeof(*s) + nodes * sizeof(struct dra_node *) +
                                    dra_pack_uuids_size(v->devices, v->n_devices) + v->name.n);
    if (s == NULL)
        return NULL;
    s->generation = v->generation;
    s->apart = apart;
    s->n_devices = (uint32_t)v->n_devices;
    char *at = (char *)dra_pack_uuids((unsigned char *)&s->nodes[nodes], v->devices, v->n_devices);
    s->name = str_store(&at, v->name);
    s->shape = dra_shape_take(&d->shapes, v->devices, v->n_devices);
    if (s->shape == NULL) {
        dra_slice_free(d, s);
        return NULL;
    }
    for (size_t i = 0; i < nodes; i++) {
        struct str on = apart ? v->devices[i].node : v->node;
        struct dra_node *node = on.n == 0 ? NULL : dra_node_get_or_add(d, on);
        if (on.n > 0 && node == NULL) {
            dra_slice_free(d, s);
            return NULL;
        }
        if (node != NULL && node->refs++ == 0)
            dra_mark(d, node);
        s->nodes[i] = node;
    }
    return s;
}

static void dra_slice_retire(struct dra *d, struct dra_slice *s)
{
    const struct dra_slice *known = map_del(&d->slices, s->name);
    assert(known == s);
    s->retired = true;
    dra_slice_resolve(d, s);
}

enum errc dra_set_slice(struct dra *d, const struct dra_slice_view *view, uint32_t epoch)
{
    struct dra_slice *old = map_get(&d->slices, view->name);
    struct dra_pool *was = old == NULL ? NULL : old->pool;
    if (view->n_devices == 0) {
        dra_drop_slice(d, view->name);
        return OK;
    }
    struct dra_slice *s = dra_slice_new(d, view);
    if (s == NULL)
        return ERR_NOMEM;
    struct dra_pool *p = dra_pool_get_or_add(d, view->driver, view->pool);
    if (p == NULL) {
        dra_slice_free(d, s);
        return ERR_NOMEM;
    }
    s->epoch = epoch;
    s->pool = p;
    list_push_back(&p->slices, &s->in_pool);
    if (old != NULL)
        dra_slice_retire(d, old);
    if (map_put(&d->slices, s) != OK) {
        assert(old == NULL); /* a map has room for what takes the place of another */
        dra_slice_free(d, s);
        dra_pool_release(d, p);
        return ERR_NOMEM;
    }
    dra_slice_resolve(d, s);
    if (was != NULL)
        dra_pool_tidy(d, was);
    if (was != p)
        dra_pool_tidy(d, p);
    return OK;
}

void dra_drop_slice(struct dra *d, struct str name)
{
    struct dra_slice *s = map_get(&d->slices, name);
    if (s == NULL)
        return;
    struct dra_pool *p = s->pool;
    dra_slice_retire(d, s);
    dra_pool_tidy(d, p);
}

static unsigned dra_sweep_slices_but(struct dra *d, uint32_t epoch, bool all)
{
    size_t cursor = 0;
    unsigned n = 0;
    for (const struct dra_slice *s = map_next(&d->slices, &cursor); s != NULL;
         s = map_next(&d->slices, &cursor)) {
        if (s->epoch == epoch && !all)
            continue;
        dra_drop_slice(d, s->name);
        n++;
        cursor--;
    }
    return n;
}

unsigned dra_sweep_slices(struct dra *d, uint32_t epoch)
{
    return dra_sweep_slices_but(d, epoch, false);
}

/* ---- claims ---- */

static struct dra_claim *dra_claim_new(const struct dra_claim_view *v)
{
    size_t uses_n = v->n_results * sizeof(struct dra_use);
    size_t texts_n = v->uid.n;
    for (size_t i = 0; i < v->n_results; i++)
        texts_n += v->results[i].device.n;
    struct dra_claim *c = mem_alloc(sizeof(*c) + uses_n + texts_n);
    if (c == NULL)
        return NULL;
    char *at = (char *)c->uses + uses_n;
    c->uid = str_store(&at, v->uid);
    for (size_t i = 0; i < v->n_results; i++) {
        const struct dra_result_view *x = &v->results[i];
        c->uses[i] = (struct dra_use){
            .device = str_store(&at, x->device), .memory = x->memory, .shared = x->shared};
    }
    return c;
}

/* Ends the uses, and frees the claim. It may be in the map no more. */
static void dra_claim_free(struct dra *d, struct dra_claim *c)
{
    for (uint32_t i = 0; i < c->n_uses; i++) {
        struct dra_use *u = &c->uses[i];
        struct dra_pool *p = u->pool;
        dra_use_leave(d, u);
        list_remove(&u->in_pool);
        u->pool = NULL;
        dra_pool_tidy(d, p);
    }
    mem_free(c);
}

enum errc dra_set_claim(struct dra *d, const struct dra_claim_view *view, uint32_t epoch)
{
    if (view->n_results == 0) {
        dra_drop_claim(d, view->uid);
        return OK;
    }
    struct dra_claim *c = dra_claim_new(view);
    if (c == NULL)
        return ERR_NOMEM;
    c->epoch = epoch;
    for (size_t i = 0; i < view->n_results; i++) {
        const struct dra_result_view *x = &view->results[i];
        struct dra_pool *p = dra_pool_get_or_add(d, x->driver, x->pool);
        if (p == NULL) {
            dra_claim_free(d, c);
            return ERR_NOMEM;
        }
        c->uses[i].pool = p;
        list_push_back(&p->uses, &c->uses[i].in_pool);
        c->n_uses++;
    }
    struct dra_claim *old = map_del(&d->claims, view->uid);
    if (map_put(&d->claims, c) != OK) {
        assert(old == NULL);
        dra_claim_free(d, c);
        return ERR_NOMEM;
    }
    /* Before the old claim goes: a retired slice that both use must stay. */
    for (uint32_t i = 0; i < c->n_uses; i++)
        dra_use_resolve(d, &c->uses[i]);
    if (old != NULL)
        dra_claim_free(d, old);
    return OK;
}

void dra_drop_claim(struct dra *d, struct str uid)
{
    struct dra_claim *c = map_del(&d->claims, uid);
    if (c != NULL)
        dra_claim_free(d, c);
}

static unsigned dra_sweep_claims_but(struct dra *d, uint32_t epoch, bool all)
{
    size_t cursor = 0;
    unsigned n = 0;
    for (const struct dra_claim *c = map_next(&d->claims, &cursor); c != NULL;
         c = map_next(&d->claims, &cursor)) {
        if (c->epoch == epoch && !all)
            continue;
        dra_drop_claim(d, c->uid);
        n++;
        cursor--;
    }
    return n;
}

unsigned dra_sweep_claims(struct dra *d, uint32_t epoch)
{
    return dra_sweep_claims_but(d, epoch, false);
}

void dra_count(const struct dra *d, uint64_t ret[static DRA_JOINED_COUNT])
{
    size_t cursor = 0;
    memset(ret, 0, DRA_JOINED_COUNT * sizeof(*ret));
    for (const struct dra_claim *c = map_next(&d->claims, &cursor); c != NULL;
         c = map_next(&d->claims, &cursor)) {
        for (uint32_t i = 0; i < c->n_uses; i++)
            ret[c->uses[i].joined]++;
    }
}

/* ---- classes ---- */

enum errc dra_set_class(struct dra *d, const struct dra_class_view *view, uint32_t epoch)
{
    struct dra_class *c = map_get(&d->classes, view->name);
    if (!str_eq(view->resource, GPUSHARE_RESOURCE_EXCLUSIVE)) {
        dra_drop_class(d, view->name);
        return OK;
    }
    if (c == NULL) {
        c = mem_alloc(sizeof(*c) + view->name.n);
        if (c == NULL)
            return ERR_NOMEM;
        char *at = (char *)(c + 1);
        c->name = str_store(&at, view->name);
        if (map_put(&d->classes, c) != OK) {
            mem_free(c);
            return ERR_NOMEM;
        }
    }
    c->epoch = epoch;
    return OK;
}

void dra_drop_class(struct dra *d, struct str name)
{
    mem_free(map_del(&d->classes, name));
}

static unsigned dra_sweep_classes_but(struct dra *d, uint32_t epoch, bool all)
{
    size_t cursor = 0;
    unsigned n = 0;
    for (const struct dra_class *c = map_next(&d->classes, &cursor); c != NULL;
         c = map_next(&d->classes, &cursor)) {
        if (c->epoch == epoch && !all)
            continue;
        dra_drop_class(d, c->name);
        n++;
        cursor--;
    }
    return n;
}

unsigned dra_sweep_classes(struct dra *d, uint32_t epoch)
{
    return dra_sweep_classes_but(d, epoch, false);
}

/* ---- life ---- */

void dra_done(struct dra *d)
{
    struct dra_node *x = NULL;
    (void)dra_sweep_claims_but(d, 0, true);
    (void)dra_sweep_slices_but(d, 0, true);
    (void)dra_sweep_classes_but(d, 0, true);
    while ((x = dra_next_dirty(d)) != NULL)
        dra_release_node(d, x);
    assert(d->nodes.n == 0 && d->pools.n == 0);
    intern_done(&d->shapes);
    map_done(&d->slices);
    map_done(&d->pools);
    map_done(&d->claims);
    map_done(&d->nodes);
    map_done(&d->classes);
}

/* Adds to the numbers of slices and uses. */
static void dra_check_pool(const struct dra *d, const struct dra_pool *p, size_t *slices,
                           size_t *uses)
{
    assert(!list_is_empty(&p->slices) || !list_is_empty(&p->uses));
    LIST_FOR_EACH (const struct dra_slice, s, &p->slices, in_pool) {
        assert(s->pool == p && s->n_devices > 0);
        ++*slices;
        assert(s->retired ? dra_slice_is_used(s) : map_get(&d->slices, s->name) == s);
    }
    LIST_FOR_EACH (const struct dra_use, u, &p->uses, in_pool) {
        struct dra_node *node = NULL;
        const struct dra_slice *slice = dra_pool_find(p, u->device, &node);
        assert(u->pool == p && u->slice == slice && u->node == node);
        assert((u->slice == NULL) == (u->joined == DRA_UNKNOWN));
        assert(list_is_linked(&u->on_node) == (u->node != NULL));
        ++*uses;
    }
}

void dra_check(const struct dra *d)
{
    size_t cursor = 0;
    size_t slices = 0;
    size_t uses = 0;
    for (const struct dra_pool *p = map_next(&d->pools, &cursor); p != NULL;
         p = map_next(&d->pools, &cursor))
        dra_check_pool(d, p, &slices, &uses);
    intern_check(&d->shapes, slices);
    cursor = 0;
    for (const struct dra_claim *c = map_next(&d->claims, &cursor); c != NULL;
         c = map_next(&d->claims, &cursor)) {
        assert(c->n_uses > 0 && uses >= c->n_uses);
        uses -= c->n_uses;
    }
    assert(uses == 0 && list_is_empty(&d->dirty));
    cursor = 0;
    for (const struct dra_node *x = map_next(&d->nodes, &cursor); x != NULL;
         x = map_next(&d->nodes, &cursor)) {
        assert(x->refs > 0);
        LIST_FOR_EACH (const struct dra_use, u, &x->uses, on_node)
            assert(u->node == x);
    }
}
