/*
 * Whether a pod fits on a node, at rest. It tries all sets of cards, and all cards for each
 * container where containers may have different cards. The answer is FITS_PERHAPS where it depends
 * on the choice between several cards.
 */
#include "api/plugins.h"
#include "locks.h"
#include "oracle.h"
#include "quotas.h"
#include "swaps.h"

struct site {
    const struct pod_object *pod;
    const struct node_object *node;
    unsigned slot; /* the node's */
    struct usage all;
    bool held;            /* pods of its affinity group hold a card on some node */
    bool kind[MAX_CARDS]; /* the card would be feasible if no pod held it */
    bool open[MAX_CARDS]; /* the card is feasible apart from free memory and compute */
    int64_t free[MAX_CARDS];
    int64_t cores[MAX_CARDS];
    int64_t places[MAX_CARDS]; /* for pods */
    struct waiters wait;
    struct quota_room quota;
    struct grants_object *trial;
    bool found;  /* some choice of cards has room on the cards */
    bool passes; /* some such choice has room on the node, too */
    bool fails;  /* some such choice has no room on the node */
};

/* ---- the card itself ---- */

bool oracle_may_have(unsigned node, const struct pod_object *p, int64_t card)
{
    return node_object_card_usable(&store.nodes[node], card) &&
           !health_object_ill(&store.healths[node], card) &&
           pod_object_allows(p, &store.nodes[node], card);
}

static bool in_group(const struct pod_object *p, const struct pod_object *mine, bool anti)
{
    struct slices all;
    const struct name *its = anti ? &p->anti_affinity : &p->affinity;
    const struct name *my = anti ? &mine->anti_affinity : &mine->affinity;
    if (my->z[0] == '\0' || strcmp(its->z, my->z) != 0 || strcmp(p->ns.z, mine->ns.z) != 0 ||
        !pod_object_holds(p))
        return false;
    pod_object_slices(p, true, &all);
    return all.n > 0;
}

static bool group_allows(const struct site *s, int64_t card)
{
    bool beside = false;
    struct slices all;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!pod_object_holds_on(p, s->node))
            continue;
        pod_object_slices_on(p, s->node, true, &all);
        if (slice_on(&all, card) == NULL)
            continue;
        if (in_group(p, s->pod, true))
            return false;
        beside = beside || in_group(p, s->pod, false);
    }
    return beside || !s->held;
}

static void site_cards(struct site *s)
{
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        struct usage u = oracle_usage(s->slot, card);
        int64_t total = node_object_card_size(s->node, card);
        s->places[card] = node_object_max_pods(s->node, card) - u.takers;
        s->kind[card] = oracle_may_have(s->slot, s->pod, card) && group_allows(s, card) &&
                        quotas_allow_card(&s->quota, s->slot, card);
        s->open[card] = s->kind[card] && u.wholes == 0 && !u.claimed && s->places[card] > 0 &&
                        (!s->pod->whole || (u.pods == 0 && u.mem == 0));
        s->free[card] = MAX_OF(total - u.mem, 0);
        s->cores[card] = MAX_OF(100 - u.cores, 0);
    }
}

/* This choice has room on the cards: check the node's sum. */
static void try_node(struct site *s, int64_t charge)
{
    bool passes = pod_object_mem(s->pod) <= node_object_limit(s->node) - s->all.counted &&
                  charge <= s->node->mem - s->all.mem;
    s->found = true;
    s->passes = s->passes || passes;
    s->fails = s->fails || !passes;
}

static bool may_wait_on(const struct site *s, int64_t card)
{
    return s->wait.cards == 0 || (s->wait.cards >> card & 1) != 0;
}

/* HAMi's and Volcano's schedulers: no part without compute on a card whose compute is given out. */
static bool has_cores(const struct site *s, int64_t card, int64_t cores, int64_t before)
{
    int64_t left = s->cores[card] - before;
    return cores <= left && (cores > 0 || left > 0 || !plugin_has_devices(s->pod->plugin));
}

/* Tries every set of `wanted` cards with room, from card `from` on; each card has an equal part. */
static void try_together(struct site *s, unsigned wanted, int64_t from, int64_t charge)
{
    unsigned cards = pod_object_cards(s->pod);
    struct slice part = {.mem = part_of(pod_object_mem(s->pod), cards),
                         .cores = part_of(pod_object_cores(s->pod), cards)};
    if (wanted == 0) {
        try_node(s, charge);
        return;
    }
    for (int64_t card = from; card < node_object_cards(s->node); card++) {
        int64_t more = slice_charge(s->pod, &part, node_object_card_size(s->node, card));
        if (s->open[card] && may_wait_on(s, card) && more <= s->free[card] &&
            has_cores(s, card, part.cores, 0))
            try_together(s, wanted - 1, card + 1, charge + more);
    }
}

static void try_trial(struct site *s)
{
    struct pod_object p = *s->pod;
    struct slices all;
    int64_t charge = 0;
    p.allocation = *s->trial;
    p.idx = name_from(STR("")); /* a Binding writes its own index */
    for (unsigned k = 0; k < p.allocation.n && plugin_has_devices(p.plugin); k++) {
        int64_t before = 0;
        for (unsigned j = 0; j < k; j++)
            before +=
                p.allocation.at[j].card == p.allocation.at[k].card ? p.allocation.at[j].cores : 0;
        if (!has_cores(s, p.allocation.at[k].card, p.allocation.at[k].cores, before))
            return;
    }
    pod_object_slices(&p, false, &all);
    for (unsigned i = 0; i < all.n; i++) {
        const struct slice *at = &all.at[i];
        if (at->mem > s->free[at->card] || at->cores > s->cores[at->card] ||
            slice_takers(at) > s->places[at->card])
            return;
        charge += at->mem;
    }
    if (quotas_allow(&s->quota, s->slot, &all))
        try_node(s, charge);
}

/* Tries every card for each container. */
static void try_apart(struct site *s, unsigned container)
{
    struct grants_object *g = s->trial;
    const struct pod_object *p = s->pod;
    while (container < p->n_containers && (p->containers[container].kind == CONTAINER_INIT ||
                                           !container_object_asks(p, container)))
        container++;
    if (container == p->n_containers) {
        if (g->n > 0)
            try_trial(s);
        return;
    }
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        if (!s->open[card] || p->containers[container].mem > s->free[card])
            continue;
        g->at[g->n].container = (uint8_t)container_object_key(p, container);
        g->at[g->n].card = (uint8_t)card;
        g->at[g->n].amount = (int32_t)p->containers[container].mem;
        g->at[g->n].cores = (uint8_t)MIN_OF(p->containers[container].cores, 100);
        g->n++;
        try_apart(s, container + 1);
        g->n--;
    }
}

/* ---- gpu-manager chooses ---- */

/* What the agent counts on each card. */
struct account {
    int64_t mem[MAX_CARDS];
    int64_t cores[MAX_CARDS];
    bool used[MAX_CARDS];
    bool foreign[MAX_CARDS]; /* a pod of another plugin is there, of which it does not know */
    bool unsure;             /* the cards of a pod are not known */
};

/* deleted: with the pods that are being deleted. */
static void account_of(const struct site *s, bool deleted, struct account *ret)
{
    struct slices all;
    *ret = (struct account){.unsure = false};
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        ret->mem[card] = node_object_card_size(s->node, card);
        ret->cores[card] = 100;
    }
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!pod_object_holds_on(p, s->node) || !pod_object_shares(p))
            continue;
        pod_object_slices_on(p, s->node, false, &all);
        ret->unsure = ret->unsure || all.n == 0;
        for (unsigned k = 0; k < all.n; k++) {
            int64_t card = all.at[k].card;
            if (!node_object_has_card(s->node, card)) {
                ret->unsure = true;
                continue;
            }
            bool its = p->plugin == PLUGIN_TENCENT;
            ret->foreign[card] = ret->foreign[card] || !its;
            if (!its || (p->deleting && !deleted))
                continue;
            ret->used[card] = true;
            ret->mem[card] -= slice_charge(p, &all.at[k], node_object_card_size(s->node, card));
            ret->cores[card] -= all.at[k].cores;
        }
    }
}

/* The card with the least compute left, then the least memory, then the lowest index; -1: none. */
static int64_t account_take(struct account *a, int64_t cards, const struct container_object *c)
{
    int64_t best = -1;
    for (int64_t card = 0; card < cards; card++) {
        if (a->cores[card] < c->cores || a->mem[card] < c->mem)
            continue;
        if (best < 0 || a->cores[card] < a->cores[best] ||
            (a->cores[card] == a->cores[best] && a->mem[card] < a->mem[best]))
            best = card;
    }
    if (best >= 0) {
        a->cores[best] -= c->cores;
        a->mem[best] -= c->mem;
    }
    return best;
}

/* False: some container has no room, or none on a card that the pod may have. */
static bool choose_by_plugin(const struct site *s, bool deleted, struct grants_object *ret)
{
    struct account a;
    account_of(s, deleted, &a);
    *ret = (struct grants_object){.there = true};
    for (unsigned i = 0; i < s->pod->n_containers; i++) {
        if (!container_object_asks(s->pod, i))
            continue;
        int64_t card = account_take(&a, node_object_cards(s->node), &s->pod->containers[i]);
        if (card < 0 || !s->open[card])
            return false;
        ret->at[ret->n].container = (uint8_t)i;
        ret->at[ret->n++].card = (uint8_t)card;
    }
    return !a.unsure;
}

/* Whether the agent chooses the same, whether the deleted pods have ended for it or not. */
static bool choose_surely(const struct site *s, struct grants_object *ret)
{
    struct grants_object then;
    bool same = choose_by_plugin(s, true, ret) && choose_by_plugin(s, false, &then);
    for (unsigned i = 0; same && i < then.n; i++)
        same = then.at[i].card == ret->at[i].card;
    return same;
}

static void try_by_plugin(struct site *s)
{
    if (choose_surely(s, s->trial))
        try_trial(s);
}

/* For whole cards it takes any that it counts as free, so the pod must be allowed to have all. */
static bool may_have_whole(const struct site *s)
{
    struct account a;
    account_of(s, false, &a);
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        if (!a.used[card] && (!s->kind[card] || a.foreign[card]))
            return false;
    }
    return !a.unsure;
}

bool oracle_foresees(unsigned node, const struct pod_object *p, uint64_t cards)
{
    struct site s = {.pod = p, .node = &store.nodes[node], .slot = node};
    struct grants_object its;
    uint64_t chosen = 0;
    for (int64_t card = 0; card < MAX_CARDS; card++)
        s.open[card] = s.kind[card] = oracle_may_have(node, p, card);
    if (p->whole)
        return may_have_whole(&s);
    if (!choose_surely(&s, &its))
        return false;
    for (unsigned i = 0; i < its.n; i++)
        chosen |= (uint64_t)1 << its.at[i].card;
    return chosen == cards;
}

/* Pods share a card that was set aside after they were placed. */
static bool is_trespassed(const struct site *s)
{
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        if (node_object_has_card(s->node, card) && name_lists(&s->node->aside, card) &&
            oracle_usage(s->slot, card).pods > 0)
            return true;
    }
    return false;
}

/* A node's cards belong to one plugin at a time: shared or exclusive. Exceptions: DRA serves the
 * exclusive ones; or the node says which cards are set aside for the other plugin, and no sharing
 * pod is on those. */
static bool kinds_agree(const struct site *s)
{
    bool shares = pod_object_shares(s->pod);
    bool excludes = pod_object_exclusive(s->pod) > 0 && !claims_serve(s->node);
    if (node_object_divided(s->node))
        return !excludes || !is_trespassed(s);
    return !(excludes && (shares || s->all.sharing > 0)) && !(shares && s->all.exclusive > 0);
}

static enum fits unless(bool unsure)
{
    return unsure ? FITS_PERHAPS : FITS;
}

static bool wait_apart(const struct waiters *w)
{
    return w->unplaced || (w->cards & (w->cards - 1)) != 0;
}

static void site_open(struct site *s, unsigned node, const struct pod_object *p)
{
    *s = (struct site){.pod = p, .node = &store.nodes[node], .slot = node};
    s->all = oracle_usage(node, -1);
    quotas_room(p, &s->quota);
    for (unsigned i = 0; i < store.n_pods; i++)
        s->held = s->held || in_group(&store.pods[i], p, false);
    if (world.set.guard == SWAP_GUARD_REQUIRE)
        swaps_find(node, p, &s->wait);
    site_cards(s);
}

static enum fits fits_alone(unsigned node, const struct pod_object *p)
{
    struct grants_object trial = {.there = true};
    struct site s;
    site_open(&s, node, p);
    s.trial = &trial;
    if (!s.node->exists || pod_object_bad(p))
        return FITS_NOT;
    if (!pod_object_wants(p))
        return FITS;
    if (pod_object_shares(p) && p->plugin != node_object_plugin(s.node))
        return FITS_NOT;
    if (!kinds_agree(&s) || !node_object_isolates(s.node, p))
        return FITS_NOT;
    if (!pod_object_shares(p))
        return quotas_allow_card(&s.quota, node, 0) ? unless(s.quota.unsure) : FITS_NOT;
    if (wait_apart(&s.wait) || (s.wait.cards != 0 && pod_object_cards(p) > 1))
        return FITS_NOT;
    if (plugin_has_devices(p->plugin) && locks_wait(node, p->plugin))
        return FITS_NOT;
    bool chosen = p->plugin == PLUGIN_TENCENT;
    if (chosen && !p->whole)
        try_by_plugin(&s);
    else if (!pod_object_is_own(p) && (!chosen || may_have_whole(&s)))
        try_together(&s, pod_object_cards(p), 0, 0);
    bool apart = !s.found && !chosen && (pod_object_is_own(p) || pod_object_may_part(p));
    if (apart)
        try_apart(&s, 0);
    if (!s.passes)
        return FITS_NOT;
    return unless(s.fails || s.quota.unsure || s.wait.perhaps || (apart && s.wait.cards != 0));
}

/* ---- room that is kept for other pods ---- */

/* Whether room on the node is kept from p for the pending pod q. No room is kept from a pod for
 * itself, and none on a node of another plugin. */
static bool is_kept_from(const struct pod_object *q, const struct pod_object *p, unsigned node)
{
    if (strcmp(q->uid.z, p->uid.z) == 0 ||
        (pod_object_shares(q) && q->plugin != node_object_plugin(&store.nodes[node])))
        return false;
    return q->exists && !q->deleting && !pod_object_terminal(q) && q->node.z[0] == '\0' &&
           !pod_object_bad(q) && pod_object_wants(q) &&
           strcmp(q->nominated.z, store.nodes[node].name.z) == 0 && q->priority >= p->priority &&
           !quotas_deny(q, node, false);
}

static bool is_simple(const struct pod_object *p)
{
    return pod_object_plain(p) && !plugin_has_devices(p->plugin) &&
           pod_object_lasting_mem(p) == pod_object_mem(p) && pod_object_exclusive(p) == 0 &&
           p->model == 0 && p->uuid == 0 && !p->isolated && p->affinity.z[0] == '\0' &&
           p->anti_affinity.z[0] == '\0';
}

/* Memory of pods that are being deleted, on a node with one card: on the card, and in the node's
 * sum. */
static struct usage usage_going(const struct node_object *n)
{
    struct usage going = {.pods = 0};
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!pod_object_holds(p) || !p->deleting || strcmp(p->node.z, n->name.z) != 0)
            continue;
        going.mem += pod_object_names(p, 0) ? pod_object_mem(p) : 0;
        going.counted += pod_object_mem(p);
    }
    return going;
}

/* Whether all pods that hold or claim a part of the node ask for memory alone. *ret_kept: memory
 * that is kept. */
static bool all_simple(unsigned node, const struct pod_object *p, int64_t *ret_kept)
{
    const struct node_object *n = &store.nodes[node];
    *ret_kept = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *q = &store.pods[i];
        bool here = pod_object_holds(q) && strcmp(q->node.z, n->name.z) == 0;
        bool kept = is_kept_from(q, p, node);
        if (((here && pod_object_wants(q)) || kept) && (!is_simple(q) || q->plugin != p->plugin))
            return false;
        if (kept && quotas_deny(q, node, true))
            return false;
        *ret_kept += kept ? pod_object_mem(q) : 0;
    }
    return is_simple(p) && node_object_cards(n) == 1 && node_object_max_pods(n, 0) == INT64_MAX;
}

/*
 * With one card and pods that ask for memory alone, the room left beside kept room is certain. On
 * the card, the present pods and the claims both count. In the node's sum, the larger of the usage
 * now and the usage after the deletions and claims counts.
 */
static enum fits fits_beside(unsigned node, const struct pod_object *p)
{
    const struct node_object *n = &store.nodes[node];
    struct usage sum = oracle_usage(node, -1);
    struct usage card = oracle_usage(node, 0);
    struct usage going = usage_going(n);
    int64_t kept = 0;
    int64_t size = node_object_card_size(n, 0);
    int64_t limit = node_object_limit(n);
    /* An allocation may name more than its pod's spec: the node's sums then differ. */
    if (!all_simple(node, p, &kept) || sum.mem > sum.counted ||
        kept > size - (card.mem - going.mem) || kept > limit - (sum.counted - going.counted))
        return FITS_PERHAPS;
    int64_t most = MAX_OF(sum.counted, sum.counted - going.counted + kept);
    return pod_object_mem(p) <= MIN_OF(size - card.mem - kept, limit - most) ? FITS : FITS_NOT;
}

static bool keeps_room(unsigned node, const struct pod_object *p)
{
    bool keeps = false;
    for (unsigned i = 0; i < store.n_pods; i++)
        keeps = keeps || is_kept_from(&store.pods[i], p, node);
    return keeps;
}

enum fits oracle_answers(unsigned node, const struct pod_object *p)
{
    enum fits fits = oracle_fits(node, p);
    return fits == FITS && locks_may_refuse(node, p) ? FITS_PERHAPS : fits;
}

enum fits oracle_fits(unsigned node, const struct pod_object *p)
{
    enum fits alone = fits_alone(node, p);
    if (alone == FITS_NOT || !pod_object_wants(p) || !keeps_room(node, p))
        return alone;
    enum fits beside = fits_beside(node, p);
    return beside == FITS ? alone : beside;
}

/* ---- which card ---- */

/* POLICY_UNSET: the policy of the configuration for cards. */
static enum policy card_policy(const struct node_object *node, const struct pod_object *p)
{
    enum policy policy = POLICY_UNSET;
    const struct name *first = p->card_policy.z[0] != '\0' ? &p->card_policy
                               : p->policy.z[0] != '\0'    ? &p->policy
                                                           : &node->placement;
    if (first->z[0] == '\0' && p->node_policy.z[0] == '\0')
        return world.set.costs;
    /* A policy with costs for nodes chooses the cards, too. */
    if (first->z[0] == '\0' && policy_parse(name_str(&p->node_policy), &policy))
        return policy_has_costs(policy) ? policy : POLICY_UNSET;
    return policy_parse(name_str(first), &policy) ? policy : POLICY_BINPACK;
}

static bool packs(const struct site *s)
{
    enum policy policy = card_policy(s->node, s->pod);
    return policy == POLICY_UNSET ? !world.set.spread : policy != POLICY_SPREAD;
}

/* The cards with room for the pod's part of a card, a bit for each. */
static uint64_t cards_with_room(const struct site *s)
{
    uint64_t cards = 0;
    unsigned parts = pod_object_cards(s->pod);
    struct slice part = {.mem = part_of(pod_object_mem(s->pod), parts),
                         .cores = part_of(pod_object_cores(s->pod), parts)};
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        int64_t charge = slice_charge(s->pod, &part, node_object_card_size(s->node, card));
        bool room = s->open[card] && may_wait_on(s, card) && charge <= s->free[card] &&
                    has_cores(s, card, part.cores, 0);
        cards |= room ? (uint64_t)1 << card : 0;
    }
    return cards;
}

/* Of the first container. */
static int64_t card_by_agent(unsigned node, const struct pod_object *p)
{
    struct site s;
    struct grants_object there;
    if (fits_alone(node, p) != FITS || keeps_room(node, p))
        return -1;
    site_open(&s, node, p);
    bool one = choose_by_plugin(&s, true, &there) && there.n == 1;
    return one ? there.at[0].card : -1;
}

/* Costs depend on what the process has learned, so nothing is known of a policy with costs. A card
 * where a pod of the same size waits has precedence. Then the card with the least or the
 * most free memory, of equal cards the one with the lowest index. */
int64_t oracle_card(unsigned node, const struct pod_object *p)
{
    struct site s;
    struct waiters w;
    int64_t best = -1;
    bool by_card = pod_object_named(p) && (p->whole || p->percent > 0);
    swaps_find(node, p, &w);
    bool by_agent = p->plugin == PLUGIN_TENCENT && !p->whole;
    if ((policy_has_costs(card_policy(&store.nodes[node], p)) && !by_agent) || pod_object_is_own(p))
        return -1;
    if (by_agent)
        return card_by_agent(node, p);
    if (fits_alone(node, p) != FITS || !pod_object_shares(p) || pod_object_cards(p) > 1 ||
        keeps_room(node, p) || w.perhaps || w.several || (by_card && w.cards != 0))
        return -1;
    site_open(&s, node, p);
    uint64_t cards = cards_with_room(&s);
    cards = (cards & w.cards) != 0 ? cards & w.cards : cards;
    for (int64_t card = 0; card < MAX_CARDS; card++) {
        if ((cards >> card & 1) == 0)
            continue;
        if (best < 0 || (packs(&s) ? s.free[card] < s.free[best] : s.free[card] > s.free[best]))
            best = card;
    }
    return best;
}

bool oracle_one_numa(unsigned node, const struct pod_object *p)
{
    struct site s;
    unsigned cards = pod_object_cards(p);
    bool enough = false;
    if (cards < 2 || !pod_object_shares(p) || fits_alone(node, p) != FITS || keeps_room(node, p))
        return false;
    site_open(&s, node, p);
    uint64_t room = cards_with_room(&s);
    for (int numa = 0; numa < NUMA_NODES; numa++) {
        unsigned n = 0;
        for (int64_t card = 0; card < MAX_CARDS; card++)
            n += (room >> card & 1) != 0 && node_object_numa(s.node, card) == numa ? 1 : 0;
        enough = enough || n >= cards;
    }
    return enough;
}

enum fits oracle_swaps(unsigned node, const struct pod_object *p)
{
    struct waiters w;
    swaps_find(node, p, &w);
    if (w.perhaps)
        return FITS_PERHAPS;
    if (wait_apart(&w) || (w.cards != 0 && pod_object_cards(p) > 1))
        return FITS_NOT;
    int64_t card = w.cards == 0 ? -1 : oracle_card(node, p);
    if (w.cards != 0 && card < 0)
        return FITS_PERHAPS;
    return w.cards == 0 || (w.cards >> card & 1) != 0 ? FITS : FITS_NOT;
}
