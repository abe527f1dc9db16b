/*
 * Joins the devices that ResourceClaims hold to the cards of the cache's nodes: by UUID; else, for
 * a MIG device, by the UUID of its GPU, which is then taken whole; else by PCI address, which all
 * MIG slices of a GPU share. Where a node has no table of its cards, no card can be distinguished
 * from another: then a device with a UUID takes all of them. It is safer to use no card than one
 * that may be in use.
 *
 * Everything here is computed anew for each node that a change concerns: a node has a few cards,
 * and claims hold a few devices of it.
 */
#include "cache_dra.h"

#include "core/quantity.h"
#include "core/request/tally.h"

/* What the use takes of a card with this total, if the device has `of` bytes: rounded up. The
 * node's unit is not known here, so the proportion counts. -1: the card as a whole. */
static int64_t cache_dra_part(const struct dra_use *u, int64_t of, int64_t total)
{
    int64_t consumed = u->memory;
    if (!u->shared || consumed < 0 || of <= 0 || total > UINT32_MAX)
        return -1;
    /* Fewer bits, so that the product fits: the part may become larger, never smaller. */
    while (of > INT64_MAX / (total + 1)) {
        of /= 2;
        consumed = consumed / 2 + consumed % 2;
    }
    return consumed >= of ? total : (consumed * total + of - 1) / of;
}

/* of: capacity of the device, if the use may be of a part of the card; else 0. */
static void cache_dra_take(const struct node *n, struct dra_use *u, uint32_t card, int64_t of,
                           struct node_claimed *to)
{
    int64_t lent = cache_dra_part(u, of, n->cards[card].total);
    u->card = u->joined == DRA_CARD ? u->card : card;
    u->joined = DRA_CARD;
    if (lent < 0)
        card_set_add(&to->whole, card);
    else
        to->lent[card] += (uint32_t)MIN_OF(lent, (int64_t)(UINT32_MAX - to->lent[card]));
}

static void cache_dra_join(const struct node *n, struct dra_use *u, struct node_claimed *to)
{
    struct dra_facts x _uninitialized_;
    const struct card_info *infos = n->sizes->infos;
    u->joined = DRA_NO_CARD;
    dra_use_facts(u, &x);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (infos == NULL ? x.uuid.n > 0 : node_card_is_named(n, i, x.uuid))
            cache_dra_take(n, u, i, infos != NULL ? x.memory : 0, to);
    }
    for (uint32_t i = 0; infos != NULL && u->joined != DRA_CARD && i < n->n_cards; i++) {
        if (node_card_is_named(n, i, x.parent))
            cache_dra_take(n, u, i, 0, to);
    }
    if (infos == NULL || u->joined == DRA_CARD || x.pci == 0)
        return;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (infos[i].pci == x.pci)
            cache_dra_take(n, u, i, x.parent.n == 0 ? x.memory : 0, to);
    }
}

static void cache_dra_collect(const struct cache *c, const struct node *n, struct node_claimed *to)
{
    const struct dra_node *x = dra_node(&c->dra, n->name);
    *to = (struct node_claimed){.delegated = dra_serves_cards(&c->dra) && n->sizes != NULL &&
                                             n->sizes->exclusive == 0,
                                .sliced = n->sizes != NULL && x != NULL && x->refs > 0};
    if (x == NULL)
        return;
    LIST_FOR_EACH (struct dra_use, u, &x->uses, on_node) {
        u->joined = DRA_NO_CARD;
        if (n->sizes != NULL)
            cache_dra_join(n, u, to);
    }
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (card_set_has(&to->whole, i))
            to->lent[i] = 0;
    }
}

static bool cache_dra_update(struct cache *c, struct node *n)
{
    struct node_claimed to _uninitialized_;
    cache_dra_collect(c, n, &to);
    return node_set_claimed(n, &to);
}

void cache_dra_look(struct cache *c, struct node *n)
{
    if (n->delegated || c->dra.nodes.n > 0 || dra_serves_cards(&c->dra))
        (void)cache_dra_update(c, n);
}

/* Updates each node that the change of the store may concern. */
static void cache_dra_spread(struct cache *c, struct effect *ret)
{
    struct dra_node *x;
    while ((x = dra_next_dirty(&c->dra)) != NULL) {
        struct node *n = map_get(&c->nodes, x->name);
        if (n != NULL && cache_dra_update(c, n))
            ret->changed = true;
        dra_release_node(&c->dra, x);
    }
}

/* Whether DRA gives out whole cards may have changed: for all nodes. */
static void cache_dra_spread_classes(struct cache *c, bool served, struct effect *ret)
{
    size_t cursor = 0;
    if (served == dra_serves_cards(&c->dra))
        return;
    for (struct node *n = map_next(&c->nodes, &cursor); n != NULL; n = map_next(&c->nodes, &cursor))
        ret->changed = cache_dra_update(c, n) || ret->changed;
}

static enum errc cache_dra_change(struct cache *c, const struct cache_event *e)
{
    struct dra *d = &c->dra;
    if (e->type == CACHE_SLICE_SET)
        return dra_set_slice(d, &e->slice, c->lists[CACHE_SLICES].epoch);
    if (e->type == CACHE_CLAIM_SET)
        return dra_set_claim(d, &e->claim, c->lists[CACHE_CLAIMS].epoch);
    if (e->type == CACHE_CLASS_SET)
        return dra_set_class(d, &e->class, c->lists[CACHE_CLASSES].epoch);
    if (e->type == CACHE_SLICE_GONE)
        dra_drop_slice(d, e->slice.name);
    else if (e->type == CACHE_CLAIM_GONE)
        dra_drop_claim(d, e->claim.uid);
    else
        dra_drop_class(d, e->class.name);
    return OK;
}

enum errc cache_dra_apply(struct cache *c, const struct cache_event *e, struct effect *ret)
{
    bool served = dra_serves_cards(&c->dra);
    enum errc code = cache_dra_change(c, e);
    cache_dra_spread(c, ret);
    cache_dra_spread_classes(c, served, ret);
    return code;
}

enum cache_kind cache_dra_kind(enum cache_event_type type)
{
    if (type == CACHE_SLICE_SET || type == CACHE_SLICE_GONE)
        return CACHE_SLICES;
    return type == CACHE_CLAIM_SET || type == CACHE_CLAIM_GONE ? CACHE_CLAIMS : CACHE_CLASSES;
}

void cache_dra_sweep(struct cache *c, enum cache_kind kind, struct effect *ret)
{
    struct dra *d = &c->dra;
    bool served = dra_serves_cards(d);
    uint32_t epoch = c->lists[kind].epoch;
    ret->swept += kind == CACHE_SLICES   ? dra_sweep_slices(d, epoch)
                  : kind == CACHE_CLAIMS ? dra_sweep_claims(d, epoch)
                                         : dra_sweep_classes(d, epoch);
    cache_dra_spread(c, ret);
    cache_dra_spread_classes(c, served, ret);
}

/* How many devices the pod requests of the class of item `first`, in all items; 0 if an earlier
 * item has the same class, and so was asked already. A fraction does not count: the scheduler makes
 * no request of it. */
static int64_t cache_dra_asked_of(const struct request *r, uint32_t first)
{
    struct tally t = {0};
    for (uint32_t i = 0; i < r->n_classes; i++) {
        struct quantity q = {.value = 0};
        const struct class_request_view *v = &r->classes[i];
        if (!str_eq(v->class, r->classes[first].class))
            continue;
        if (i < first)
            return 0;
        if (quantity_parse(str_trim(v->amount), &q) == OK && q.whole && q.value > 0)
            tally_add(&t, MIN_OF(q.value, (int64_t)UINT16_MAX), v->kind, UINT16_MAX);
    }
    return tally_peak(&t);
}

uint32_t cache_dra_asked(const struct cache *c, const struct request *r)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < r->n_classes; i++) {
        if (map_get(&c->dra.classes, r->classes[i].class) != NULL)
            sum = tally_sum(sum, cache_dra_asked_of(r, i), UINT16_MAX);
    }
    return (uint32_t)sum;
}

void cache_dra_check(const struct cache *c)
{
    size_t cursor = 0;
    struct node_claimed to = {.delegated = false};
    dra_check(&c->dra);
    for (const struct node *n = map_next(&c->nodes, &cursor); n != NULL;
         n = map_next(&c->nodes, &cursor)) {
        if (c->dra.nodes.n > 0 || dra_serves_cards(&c->dra))
            cache_dra_collect(c, n, &to);
        assert(n->delegated == to.delegated && n->sliced == to.sliced);
        for (uint32_t i = 0; i < n->n_cards; i++)
            assert(n->cards[i].claimed == card_set_has(&to.whole, i) &&
                   n->cards[i].lent == to.lent[i]);
    }
}
