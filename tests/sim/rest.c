/* At rest: compares each process' cache with counts from the API server's objects. */
#include "api/plugins.h"
#include "oracle.h"
#include "slices.h"

#define SPARE_BLOCKS 96 /* allowed blocks of a process at rest, beyond those of nodes and pods */

bool oracle_lasts(const struct pod_object *p)
{
    return world.set.shrink && p->initialized;
}

bool node_object_offers_exclusive(const struct node_object *n)
{
    return !n->exists || (n->exclusive >= 0 && !plugin_has_devices(n->plugin));
}

bool node_object_offers(const struct node_object *n, enum plugin plugin)
{
    if (!n->exists || (n->left & 1U << plugin) != 0)
        return true;
    if (plugin == PLUGIN_HAMI && node_object_offers_exclusive(n))
        return true; /* its resource has the same name */
    return plugin == n->plugin && (plugin_has_devices(plugin) || n->mem >= 0 || n->count >= 0);
}

unsigned oracle_offers(const struct node_object *n)
{
    unsigned all = node_object_offers_exclusive(n) ? 1U << PLUGINS : 0;
    for (unsigned i = 0; i < PLUGINS; i++)
        all |= node_object_offers(n, (enum plugin)i) ? 1U << i : 0;
    return all;
}

bool oracle_shares(const struct decision *d, const struct pod_object *p)
{
    const struct pod_object *own = &store.pods[d->slot];
    bool same = pod_object_shares(own) && own->plugin == p->plugin;
    return pod_object_shares(p) && (same || (d->offers >> p->plugin & 1) != 0);
}

bool oracle_excludes(const struct decision *d, const struct pod_object *p)
{
    return pod_object_exclusive(p) > 0 && !p->claimed && (d->offers >> PLUGINS & 1) != 0;
}

/* The first pod of another plugin on a card fills it. */
static int64_t charge_foreign(struct usage *u, const struct node_object *n, int64_t card)
{
    bool first = (u->foreign >> card & 1) == 0;
    u->foreign |= (uint64_t)1 << card;
    return first ? node_object_card_size(n, card) : 0;
}

static void usage_add_foreign(struct usage *u, const struct pod_object *p,
                              const struct node_object *n, int64_t card)
{
    struct slices all;
    pod_object_slices_on(p, n, oracle_lasts(p), &all);
    for (unsigned i = 0; i < all.n; i++) {
        const struct slice *s = &all.at[i];
        bool there = node_object_has_card(n, s->card);
        if (card >= 0 && s->card != card)
            continue;
        u->mem += there ? charge_foreign(u, n, s->card) : n->mem;
        u->unplaced += there ? 0 : n->mem;
        u->cores += s->cores;
        u->pods += card >= 0 ? 1 : 0;
        u->takers += slice_takers(s);
        u->wholes++;
    }
    if (card >= 0)
        return;
    u->mem += all.n == 0 ? n->mem : 0;
    u->unplaced += all.n == 0 ? n->mem : 0;
    u->pods++;
    u->sharing++;
}

static void usage_add(struct usage *u, const struct pod_object *p, const struct node_object *n,
                      int64_t card)
{
    struct slices all;
    pod_object_slices_on(p, n, oracle_lasts(p), &all);
    for (unsigned i = 0; i < all.n; i++) {
        const struct slice *s = &all.at[i];
        bool there = node_object_has_card(n, s->card);
        if (card >= 0 && s->card != card)
            continue;
        u->mem += there ? slice_charge(p, s, node_object_card_size(n, s->card)) : s->mem;
        u->unplaced += there ? 0 : s->mem;
        u->cores += s->cores;
        if (card < 0)
            continue;
        u->pods++;
        u->takers += slice_takers(s);
        u->wholes += pod_object_shares(p) && p->whole ? 1 : 0;
    }
    if (card >= 0)
        return;
    u->mem += all.n == 0 ? pod_object_mem(p) : 0;
    u->unplaced += all.n == 0 ? pod_object_mem(p) : 0;
    u->counted += pod_object_mem(p);
    u->pods++;
    u->sharing += pod_object_shares(p) ? 1 : 0;
}

struct usage oracle_usage(unsigned node, int64_t card)
{
    struct usage u = {.pods = 0};
    const struct node_object *n = &store.nodes[node];
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        bool kept = pod_object_wants(p) || pod_object_bad(p);
        if (!pod_object_holds(p) || !kept || strcmp(p->node.z, n->name.z) != 0)
            continue;
        if (card < 0 && node_object_offers_exclusive(n))
            u.exclusive += p->claimed ? 0 : pod_object_exclusive(p);
        if (pod_object_shares(p) && !node_object_offers(n, p->plugin))
            u.pods += card < 0 ? 1 : 0; /* it has nothing of the node */
        else if (node_object_is_foreign(n, p))
            usage_add_foreign(&u, p, n, card);
        else
            usage_add(&u, p, n, card);
    }
    for (int64_t i = 0; i < node_object_cards(n); i++) {
        int64_t lent = card < 0 || card == i ? claims_lend(NULL, n, node, i) : 0;
        u.claimed = u.claimed || lent == LENT_WHOLE;
        u.mem += lent == LENT_WHOLE ? 0 : lent;
    }
    return u;
}

static enum policy policy_of(const struct pod_object *o, const struct name *own)
{
    enum policy policy = POLICY_UNSET;
    const struct name *n = own->z[0] == '\0' ? &o->policy : own;
    sim_check(n->z[0] == '\0' || policy_parse(name_str(n), &policy));
    return policy;
}

static void rest_pod(const struct pod_object *o, const struct pod *p)
{
    struct slices all = {.n = 0};
    bool bound = o->node.z[0] != '\0';
    sim_check(p->state == (bound ? POD_BOUND : POD_PENDING));
    bool lingers = o->plugin == PLUGIN_VGPU && strcmp(o->assigned.z, "allocating") == 0;
    sim_check(pod_awaits(p) ==
              (bound && plugin_waits(o) && (o->phase == PHASE_PENDING || lingers)));
    sim_check(p->deleting == o->deleting);
    sim_check(pod_object_bad(o) || (p->request->card_policy == policy_of(o, &o->card_policy) &&
                                    p->request->node_policy == policy_of(o, &o->node_policy)));
    if (!bound) {
        sim_check(p->request->mem == (pod_object_bad(o) ? 0 : pod_object_mem(o)) && p->card == -1);
        sim_check((p->keeper != NULL) == (o->nominated.z[0] != '\0' && !o->deleting));
        sim_check(p->keeper == NULL || str_eq(p->keeper->name, name_str(&o->nominated)));
        return;
    }
    unsigned node = store_find_node(name_str(&o->node));
    const struct node_object none = {.exists = false};
    pod_object_slices_on(o, node == MAX_NODES ? &none : &store.nodes[node], oracle_lasts(o), &all);
    sim_check(p->request->mem == pod_object_mem(o) && str_eq(p->node->name, name_str(&o->node)));
    sim_check(p->card == (all.n == 0 ? -1 : all.at[0].card));
    sim_check(p->allocation->n_shares == all.n);
    for (unsigned i = 0; i < all.n; i++) {
        const struct share *s = &p->allocation->shares[i];
        sim_check(s->card == all.at[i].card && s->mem == all.at[i].mem);
        sim_check(s->cores == all.at[i].cores);
    }
}

static size_t rest_pods(const struct cache *cache)
{
    size_t kept = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *o = &store.pods[i];
        const struct pod *p = cache_pod(cache, name_str(&o->uid));
        bool keeps =
            o->exists && !pod_object_terminal(o) && (pod_object_wants(o) || pod_object_bad(o));
        sim_check((p != NULL) == keeps);
        if (p == NULL)
            continue;
        kept++;
        rest_pod(o, p);
    }
    sim_check(cache->pods.n == kept);
    return 4 * kept;
}

static void rest_card(const struct node_object *o, unsigned node, const struct card *c,
                      int64_t card)
{
    struct usage u = oracle_usage(node, card);
    bool ill = health_object_ill(&store.healths[node], card);
    sim_check(c->total == node_object_card_size(o, card));
    sim_check(c->absent == !node_object_has_card(o, card));
    sim_check(c->claimed == u.claimed && c->given == (!c->absent && node_object_given(o, card)));
    sim_check(card_usable(c) == (node_object_card_usable(o, card) && !ill && !u.claimed));
    if (c->absent)
        return;
    sim_check(c->used == u.mem && c->cores == u.cores);
    sim_check(c->pods == u.pods && c->wholes == u.wholes && card_takers(c) == u.takers);
}

/* All pods of the node count, with a request for cards or without. */
static void rest_host(const struct node_object *o, const struct node *n)
{
    struct host used = {0};
    int64_t memory = o->exists && o->memory > 0 ? o->memory : HOST_UNKNOWN;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (pod_object_holds(p) && strcmp(p->node.z, o->name.z) == 0)
            used = host_add(used, pod_object_host(p));
    }
    sim_check(host_equal(n->host_used, used));
    sim_check(n->host_total.cpu == (o->exists ? 7500 : HOST_UNKNOWN));
    sim_check(n->host_total.memory == memory);
}

static size_t rest_nodes(const struct cache *cache)
{
    size_t blocks = 0;
    for (unsigned i = 0; i < store.n_nodes; i++) {
        const struct node_object *o = &store.nodes[i];
        const struct node *n = cache_node(cache, name_str(&o->name));
        struct usage u = oracle_usage(i, -1);
        if (n == NULL) {
            sim_check(!o->exists);
            continue;
        }
        blocks += 4;
        sim_check((n->fault != NODE_ABSENT) == o->exists);
        sim_check(n->n_cards == node_object_cards(o) && n->limit == node_object_limit(o));
        sim_check(n->used == u.mem && n->counted == u.counted && n->unplaced == u.unplaced);
        sim_check(n->n_pods == u.pods && n->n_sharing == u.sharing);
        sim_check(n->exclusive == u.exclusive && n->delegated == claims_serve(o));
        rest_host(o, n);
        for (uint32_t card = 0; card < n->n_cards; card++)
            rest_card(o, i, &n->cards[card], card);
    }
    return blocks;
}

/* What requests and the policies leave behind, which has upper limits: four blocks for each row of
 * the memo and one for all, the models of the shapes, tables of prices, and a lesson in progress.
 */
static size_t rest_learned(const struct service *s)
{
    return 4 * (size_t)s->evaluation_memo.n_rows + 1 + s->cache.learned.market.shapes.n + 16;
}

void oracle_rest(void)
{
    for (unsigned i = 0; i < world.set.replicas; i++) {
        const struct proc *p = &procs[i];
        sim_check(p->asks == NULL);
        sim_check(bind_active(p->daemon.service.binder) == 0);
        size_t objects = rest_pods(&p->daemon.service.cache) +
                         rest_nodes(&p->daemon.service.cache) + rest_learned(&p->daemon.service) +
                         (store.serves_dra ? CLAIMS_BLOCKS : 0);
        sim_check(mem_blocks(p) <= objects + SPARE_BLOCKS);
    }
}
