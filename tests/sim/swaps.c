/* The oracle's rule for swap-guard; see swaps.h. */
#include "swaps.h"

#include "api/plugins.h"

const char *swap_guard_text(unsigned guard)
{
    static const char *const texts[SWAP_GUARDS] = {
        [SWAP_GUARD_OFF] = "off", [SWAP_GUARD_PREFER] = "prefer", [SWAP_GUARD_REQUIRE] = "require"};
    return texts[guard];
}

static int64_t total_of(const struct pod_object *p)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < p->n_containers; i++)
        sum += p->containers[i].kind == CONTAINER_MAIN ? p->containers[i].mem : 0;
    return sum;
}

static bool asks_for(const struct pod_object *p, int64_t total)
{
    bool asks = false;
    for (unsigned i = 0; i < p->n_containers; i++)
        asks = asks || p->containers[i].mem == total;
    return asks && total > 0;
}

/* elastic-gpu-agent finds a pod by its devices, and HAMi's family serves one pod at a time.
 * gpu-manager may refuse a pod because of any other one. Volcano's plugin compares single
 * containers; of its pods only one has memory, so the sum is the same. */
static bool is_alike(const struct pod_object *a, const struct pod_object *b)
{
    if (a->plugin == PLUGIN_TENCENT && b->plugin == PLUGIN_TENCENT)
        return true;
    if (a->plugin != b->plugin || a->plugin == PLUGIN_ELASTIC || plugin_has_devices(a->plugin))
        return false;
    return asks_for(a, total_of(b)) || asks_for(b, total_of(a));
}

static bool is_pending(const struct pod_object *p)
{
    return p->phase == PHASE_PENDING && !pod_object_bad(p);
}

static bool is_unacknowledged(const struct pod_object *p)
{
    return plugin_waits(p);
}

static uint64_t cards_of(const struct pod_object *p)
{
    struct slices all;
    uint64_t cards = 0;
    pod_object_slices(p, oracle_lasts(p), &all);
    for (unsigned i = 0; i < all.n; i++)
        cards |= (uint64_t)1 << all.at[i].card;
    return cards;
}

/* The cards that the process reserves for the pod on this node: its Binding is under way, or was a
 * moment ago. */
static uint64_t reserved_cards(const struct decision *d, const struct proc *p, unsigned slot)
{
    const struct name *uid = &store.pods[slot].uid;
    const struct pod *pod = cache_pod(&p->daemon.service.cache, name_str(uid));
    uint64_t cards = 0;
    if (pod == NULL || pod->state != POD_RESERVED || store_find_node(pod->node->name) != d->node)
        return 0;
    for (uint32_t i = 0; i < pod->allocation->n_shares; i++)
        cards |= (uint64_t)1 << pod->allocation->shares[i].card;
    return cards;
}

void swaps_check(const struct decision *d, const struct proc *p)
{
    const struct pod_object *mine = &store.pods[d->slot];
    uint64_t cards = 0;
    bool alone = mine->plugin == PLUGIN_TENCENT;
    bool others = false;
    if (p->config.swap_guard != SWAP_GUARD_REQUIRE || (d->least_cards < 2 && !alone))
        return;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *its = &store.pods[i];
        if (i == d->slot || pod_object_bad(its) || !is_alike(mine, its))
            continue;
        cards |= reserved_cards(d, p, i);
        bool waits = d->known[i] && p->told_before[CACHE_PODS][i] >= its->rv &&
                     pod_object_holds_on(its, &store.nodes[d->node]) && is_pending(its) &&
                     is_unacknowledged(its);
        cards |= waits ? cards_of(its) : 0;
        others = others || waits;
    }
    sim_check(!alone || (!others && cards == 0));
    trace("waiting beside it", name_str(&mine->uid), (int64_t)cards, (int64_t)d->cards);
    sim_check(cards == 0 || (cards == d->cards && (cards & (cards - 1)) == 0));
}

/* The device plugin's comparison is not defined for a pod in which only init containers ask. */
static bool is_odd(const struct pod_object *p)
{
    return pod_object_mem(p) > 0 && total_of(p) == 0;
}

void swaps_find(unsigned node, const struct pod_object *p, struct waiters *ret)
{
    *ret = (struct waiters){.cards = 0};
    if (node_object_cards(&store.nodes[node]) < 2 && p->plugin != PLUGIN_TENCENT)
        return;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *its = &store.pods[i];
        if (strcmp(its->uid.z, p->uid.z) == 0)
            continue;
        /* The requests of a pod that contradicts itself are not defined. */
        ret->perhaps =
            ret->perhaps || (pod_object_bad(its) && pod_object_holds_on(its, &store.nodes[node]));
        if (!pod_object_holds_on(its, &store.nodes[node]) || !is_pending(its))
            continue;
        bool alike = is_alike(p, its);
        if (p->plugin == PLUGIN_TENCENT) {
            ret->unplaced = ret->unplaced || (alike && is_unacknowledged(its));
            continue;
        }
        ret->perhaps =
            ret->perhaps || is_odd(its) || is_odd(p) || (alike && !is_unacknowledged(its));
        if (!alike || !is_unacknowledged(its))
            continue;
        uint64_t cards = cards_of(its);
        ret->cards |= cards;
        ret->unplaced = ret->unplaced || cards == 0;
        ret->several = ret->several || (cards & (cards - 1)) != 0;
    }
}
