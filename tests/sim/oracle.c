/*
 * When is cardpack at fault for a card that holds too much?
 *
 * A decision of cardpack is a reservation. Its Binding says how large cardpack believed the card to
 * be. When that Binding commits, the oracle counts the card's pods: those that Bindings of any
 * cardpack process put there; and those that others put there (or moved by an edit of their
 * annotations), if the deciding process had surely been told of them before it decided. If the sum
 * exceeds the size that cardpack believed, cardpack is at fault. It is not at fault if the node
 * shrank later, if another client bound a pod meanwhile, or if init containers run again. The same
 * holds for the card's compute, its number of pods, whole cards, and the two kinds of plugin; and
 * for what the process surely knew that ResourceClaims hold of the card (claims.h).
 *
 * There is one exception. API servers before 1.27 ignore a Binding's UID. If a pod is deleted and
 * created again under its name while its Binding is under way, the new pod may get the old pod's
 * Binding and its annotations. The API server gives no means against it. From then on the oracle
 * counts such a pod as bound by another client; the scheduler that asked for the old pod hears of a
 * success.
 */
#include "oracle.h"

#include "api/plugins.h"
#include "locks.h"
#include "managers.h"
#include "quotas.h"
#include "server.h"
#include "swaps.h"
#include "unit/node_digest.h"

#define DECISIONS 8192
#define SENDINGS  8192

static struct {
    struct decision decisions[DECISIONS];
    size_t n;

    /* The ASSUME_TIME that each decision was sent with. */
    struct sending {
        const struct decision *decision;
        uint64_t assume;
    } sendings[SENDINGS];

    size_t n_sendings;
    uint64_t looks[MAX_REPLICAS];

    struct {
        uint64_t look; /* the last call of oracle_decided that found it reserved */
        uint64_t assume;
        const struct decision *first;
    } held[MAX_REPLICAS][MAX_PODS];

    uint64_t placed_rv[MAX_PODS]; /* last change of the node, the cards or whether it holds */
    uint64_t begun_rv[MAX_PODS];  /* when the init containers last started again */
    uint64_t ours_rv[MAX_PODS];   /* version of a placement by cardpack's Binding; 0: by others */
    const struct decision *by[MAX_PODS]; /* the decision of that Binding */
    unsigned posts[MAX_PODS];
    struct node_digest digests[MAX_REPLICAS][MAX_NODES];
} oracle;

void oracle_reset(void)
{
    claims_reset();
    managers_reset();
    oracle.n = 0;
    oracle.n_sendings = 0;
    memset(oracle.looks, 0, sizeof(oracle.looks));
    memset(oracle.held, 0, sizeof(oracle.held));
    memset(oracle.placed_rv, 0, sizeof(oracle.placed_rv));
    memset(oracle.begun_rv, 0, sizeof(oracle.begun_rv));
    memset(oracle.ours_rv, 0, sizeof(oracle.ours_rv));
    memset((void *)oracle.by, 0, sizeof(oracle.by));
    memset(oracle.posts, 0, sizeof(oracle.posts));
    memset(oracle.digests, 0, sizeof(oracle.digests));
}

void oracle_started(const struct proc *p)
{
    memset(oracle.held[p->id], 0, sizeof(oracle.held[p->id]));
    memset(oracle.digests[p->id], 0, sizeof(oracle.digests[p->id]));
    claims_forget(p->id);
}

static bool grants_equal(const struct grants_object *a, const struct grants_object *b)
{
    if (a->there != b->there || a->garbled != b->garbled || a->n != b->n)
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        if (a->at[i].container != b->at[i].container || a->at[i].card != b->at[i].card ||
            a->at[i].amount != b->at[i].amount)
            return false;
    }
    return true;
}

void oracle_changed(const struct change *c)
{
    const struct pod_object *old = &c->old.pod;
    const struct pod_object *new = &c->new.pod;
    claims_changed(c);
    locks_changed(c);
    managers_changed(c);
    if (c->kind != CACHE_PODS)
        return;
    if (pod_object_holds(old) != pod_object_holds(new) ||
        !str_eq(name_str(&old->node), name_str(&new->node)) ||
        !str_eq(name_str(&old->idx), name_str(&new->idx)) ||
        !grants_equal(&old->allocation, &new->allocation))
        oracle.placed_rv[c->slot] = c->rv;
    if (old->initialized && !new->initialized)
        oracle.begun_rv[c->slot] = c->rv;
}

static bool is_ours(unsigned slot)
{
    return oracle.ours_rv[slot] != 0 && oracle.ours_rv[slot] == oracle.placed_rv[slot];
}

/* ---- decisions ---- */

/* Checks against every version of the node that the process may have used: the last version it was
 * told of, and all later ones. */
static void decision_check_node(struct decision *d, const struct proc *p)
{
    const struct pod_object *pod = &store.pods[d->slot];
    uint64_t told = p->told_before[CACHE_NODES][d->node];
    uint64_t legal = 0;
    d->aside = UINT64_MAX;
    d->offers = ~0U;
    d->least_cards = MAX_CARDS;
    for (int64_t card = 0; card < MAX_CARDS; card++)
        d->lent[card] = LENT_WHOLE;
    for (size_t i = history_size(); i > 0; i--) {
        const struct change *c = history_at(i - 1);
        if (c->kind != CACHE_NODES || c->slot != d->node)
            continue;
        const struct node_object *n = &c->new.node;
        for (int64_t card = 0; card < MAX_CARDS; card++) {
            bool good = decision_has(d, card) && node_object_plugin(n) == pod->plugin &&
                        node_object_card_usable(n, card) &&
                        node_object_card_size(n, card) == d->total[card] &&
                        pod_object_allows(pod, n, card);
            legal |= good ? (uint64_t)1 << card : 0;
            d->max_pods[card] = MAX_OF(d->max_pods[card], node_object_max_pods(n, card));
            d->lent[card] = MIN_OF(d->lent[card], claims_lend(p, n, d->node, card));
            if (!node_object_has_card(n, card) || !name_lists(&n->aside, card))
                d->aside &= ~((uint64_t)1 << card);
        }
        d->limit = MAX_OF(d->limit, node_object_limit(n));
        d->least_cards = MIN_OF(d->least_cards, node_object_cards(n));
        d->offers &= oracle_offers(n);
        d->divided = d->divided || node_object_divided(n);
        d->served = d->served || claims_may_serve(p, n);
        if (c->rv <= told)
            break;
    }
    sim_check(legal == d->cards);
    for (int64_t card = 0; card < MAX_CARDS; card++)
        sim_check(!decision_has(d, card) || d->lent[card] != LENT_WHOLE);
    const struct health_object *h = &store.healths[d->node];
    for (int64_t card = 0; card < MAX_CARDS; card++)
        sim_check(!decision_has(d, card) || p->told_before[CACHE_HEALTH][d->node] < h->rv ||
                  !health_object_ill(h, card));
}

static struct decision *decision_note(const struct proc *p, const struct pod *pod, unsigned slot)
{
    sim_check(oracle.n < DECISIONS);
    struct decision *d = &oracle.decisions[oracle.n++];
    *d = (struct decision){
        .slot = slot, .proc = p->id, .node = store_find_node(pod->node->name), .rv = store.rv};
    d->shrink = p->daemon.service.cache.settings.shrink;
    sim_check(d->node != MAX_NODES);
    for (uint32_t i = 0; i < pod->allocation->n_shares; i++) {
        uint32_t card = pod->allocation->shares[i].card;
        sim_check(card < MAX_CARDS && card < pod->node->n_cards && !decision_has(d, card));
        d->cards |= (uint64_t)1 << card;
        d->total[card] = pod->node->cards[card].total;
    }
    sim_check((d->cards != 0) == pod_object_shares(&store.pods[slot]));
    decision_check_node(d, p);
    for (unsigned i = 0; i < store.n_pods; i++) {
        uint64_t told = p->told_before[CACHE_PODS][i];
        d->known[i] = pod_object_holds(&store.pods[i]) && told >= oracle.placed_rv[i];
        d->lasts[i] = store.pods[i].initialized || told < oracle.begun_rv[i];
    }
    trace("reserved", pod->uid, (int64_t)d->cards, pod->request->mem);
    quotas_note(p, d);
    swaps_check(d, p);
    managers_note(d, p);
    d->first = d;
    return d;
}

static void decides_alone(const struct proc *p)
{
    for (unsigned i = 0; i < world.set.replicas; i++)
        sim_check(i == p->id || !proc_ready(&procs[i]));
}

static void sending_note(const struct decision *d, uint64_t assume)
{
    sim_check(oracle.n_sendings < SENDINGS);
    oracle.sendings[oracle.n_sendings++] = (struct sending){.decision = d, .assume = assume};
}

/* A lower limit that comes later does not end a reservation, so all quotas since the first decision
 * count. */
static void keep_first(struct decision *d, const struct decision *first)
{
    if (first == NULL)
        return;
    struct decision *kept = &oracle.decisions[first - oracle.decisions];
    quotas_keep(kept, d);
    d->first = kept;
}

void oracle_decided(const struct proc *p)
{
    const struct cache *cache = &p->daemon.service.cache;
    size_t cursor = 0;
    uint64_t look = ++oracle.looks[p->id];
    for (const struct pod *pod = cache_next_pod(cache, &cursor); pod != NULL;
         pod = cache_next_pod(cache, &cursor)) {
        if (pod->state != POD_RESERVED)
            continue;
        unsigned slot = store_find_uid(pod->uid);
        sim_check(slot != MAX_PODS);
        bool fresh = oracle.held[p->id][slot].look + 1 != look;
        /* A process that has stalled may renew a reservation that the check would forbid. */
        if (fresh && sim_turn_ahead_ms() == 0) {
            decides_alone(p);
            sim_check(!server_may_bind_for_others(p));
        }
        /* cardpack decides again with what it knows each time before it sends the Binding. */
        if (fresh || oracle.held[p->id][slot].assume != pod->assume_ns) {
            struct decision *d = decision_note(p, pod, slot);
            sending_note(d, pod->assume_ns);
            keep_first(d, fresh ? NULL : oracle.held[p->id][slot].first);
            oracle.held[p->id][slot].first = d->first;
        }
        oracle.held[p->id][slot].assume = pod->assume_ns;
        oracle.held[p->id][slot].look = look;
    }
}

void oracle_stepped(void)
{
    unsigned deciding = 0;
    for (unsigned i = 0; world.set.replicas > 1 && i < world.set.replicas; i++)
        deciding += proc_ready(&procs[i]) ? 1 : 0;
    sim_check(deciding <= 1);
}

/* A node whose version is the same as after the last turn has not changed. */
static void check_versions(const struct proc *p)
{
    for (unsigned i = 0; i < store.n_nodes; i++) {
        const struct node *n = cache_node(&p->daemon.service.cache, name_str(&store.nodes[i].name));
        sim_check(n == NULL || node_digest_holds(&oracle.digests[p->id][i], n));
    }
}

void oracle_turned(const struct proc *p)
{
    cache_check(&p->daemon.service.cache);
    check_versions(p);
    oracle_decided(p);
    claims_learn(p);
}

/* ---- Bindings ---- */

/* Whether the plugin orders pods by the time in nanoseconds at which the card was reserved. */
static bool is_timed(enum plugin plugin)
{
    return plugin != PLUGIN_ELASTIC && !plugin_has_devices(plugin);
}

/* A Binding for cards of another plugin has no annotations. */
static bool says(const struct order *o, const struct sending *s)
{
    uint64_t cards = 0;
    if (o->is.bare || is_timed(o->is.plugin))
        return o->is.bare || name_is(&o->is.assume, (int64_t)s->assume);
    for (unsigned i = 0; i < o->is.allocation.n; i++)
        cards |= (uint64_t)1 << o->is.allocation.at[i].card;
    return cards == s->decision->cards &&
           strcmp(store.nodes[s->decision->node].name.z, o->is.node.z) == 0;
}

/* The last that may have led to it. */
static const struct decision *decision_of(const struct order *o)
{
    for (size_t i = oracle.n_sendings; i > 0; i--) {
        const struct sending *s = &oracle.sendings[i - 1];
        if (strcmp(store.pods[s->decision->slot].uid.z, o->is.uid.z) == 0 && says(o, s))
            return s->decision;
    }
    return NULL;
}

/* Its ASSUME_TIME is later than that of all pods that the process knew to wait for the device
 * plugin. Not checked if wall clocks jump: cardpack ignores a time far in the future. */
static void check_age(const struct order *o, const struct decision *d)
{
    uint64_t mine = 0;
    uint64_t its = 0;
    if (world.set.permille[FAULT_TIME_JUMP] > 0 || !is_timed(o->is.plugin))
        return;
    sim_check(str_to_u64(name_str(&o->is.assume), UINT64_MAX, &mine));
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (i != d->slot && d->known[i] && is_ours(i) && pod_object_holds(p) &&
            strcmp(p->node.z, o->is.node.z) == 0 && strcmp(p->assigned.z, "false") == 0 &&
            p->phase == PHASE_PENDING && oracle.placed_rv[i] <= d->rv &&
            p->plugin == o->is.plugin && str_to_u64(name_str(&p->assume), UINT64_MAX, &its))
            sim_check(its < mine);
    }
}

void oracle_posted(struct order *o)
{
    unsigned slot = store_find_uid(name_str(&o->is.uid));
    sim_check(slot != MAX_PODS);
    const struct pod_object *p = &store.pods[slot];
    sim_check(strcmp(p->name.z, o->is.name.z) == 0 && strcmp(p->ns.z, o->is.ns.z) == 0);
    o->decision = NULL;
    if (binding_is_outdated(&o->is, p))
        return; /* it is about an older object, and will be refused */
    sim_check(o->is.bare == !pod_object_shares(p) && !pod_object_bad(p));
    oracle.posts[slot]++;
    if (world.set.faultless)
        sim_check(oracle.posts[slot] == 1);
    if (!pod_object_wants(p))
        return;
    const struct decision *d = decision_of(o);
    sim_check(d != NULL);
    sim_check(d->proc == o->sender);
    sim_check(strcmp(store.nodes[d->node].name.z, o->is.node.z) == 0);
    if (!o->is.bare) {
        order_check(o, d);
        check_age(o, d);
    }
    o->decision = d;
}

/* Whether the pod holds a part of this card, by what d may have known; *ret: that part. */
static bool is_on(const struct decision *d, unsigned slot, unsigned node, int64_t card,
                  struct slice *ret)
{
    const struct pod_object *p = &store.pods[slot];
    struct slices all;
    if (!pod_object_holds_on(p, &store.nodes[node]))
        return false;
    if (card < 0)
        return pod_object_wants(p);
    bool shrink = d == NULL ? world.set.shrink : d->shrink;
    bool lasts = shrink && (p->initialized || (d != NULL && d->lasts[slot]));
    pod_object_slices(p, lasts, &all);
    const struct slice *s = slice_on(&all, card);
    if (s != NULL)
        *ret = *s;
    return s != NULL;
}

/* The kind of decision. A pod that asks for no memory (or compute) may join an over-committed
 * node. */
enum about {
    ABOUT_ANY,
    ABOUT_MEM,
    ABOUT_CORES,
};

/*
 * The last decision whose Binding put a pod on this node, or on this card of it. That decision had
 * to leave room for all decisions before it, committed or not.
 */
static const struct decision *last_decision(unsigned node, int64_t card, enum about what)
{
    const struct decision *last = NULL;
    struct slice there = {.card = card};
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (is_ours(i) && (last == NULL || oracle.by[i] > last) &&
            (what != ABOUT_MEM || pod_object_shares(&store.pods[i])) &&
            is_on(NULL, i, node, card, &there) && (what != ABOUT_CORES || there.cores > 0))
            last = oracle.by[i];
    }
    return last;
}

static bool counts(const struct decision *d, unsigned slot)
{
    return is_ours(slot) || (d->known[slot] && oracle.placed_rv[slot] <= d->rv);
}

const struct decision *oracle_by(unsigned slot)
{
    return is_ours(slot) ? oracle.by[slot] : NULL;
}

bool oracle_counts(const struct decision *d, unsigned slot)
{
    return counts(d, slot);
}

/* The card's compute must not exceed 100 %. */
static void check_cores(unsigned node, int64_t card)
{
    const struct decision *d = last_decision(node, card, ABOUT_CORES);
    struct slice s;
    int64_t cores = 0;
    for (unsigned i = 0; d != NULL && i < store.n_pods; i++) {
        if (counts(d, i) && is_on(d, i, node, card, &s))
            cores += s.cores;
    }
    sim_check(cores <= 100);
}

static bool avoid(const struct pod_object *a, const struct pod_object *b)
{
    return a->anti_affinity.z[0] != '\0' && strcmp(a->ns.z, b->ns.z) == 0 &&
           strcmp(a->anti_affinity.z, b->anti_affinity.z) == 0;
}

/* No two pods that cardpack put on this card may exclude each other by anti-affinity. */
static void check_apart(unsigned node, int64_t card, unsigned slot)
{
    struct slice s;
    for (unsigned i = 0; i < slot; i++) {
        if (is_ours(slot) && is_ours(i) && avoid(&store.pods[slot], &store.pods[i]))
            sim_check(!is_on(NULL, i, node, card, &s));
    }
}

/* Checks the card's memory, its number of pods, whole-card pods and anti-affinity. */
static void check_card(unsigned node, int64_t card)
{
    const struct decision *d = last_decision(node, card, ABOUT_MEM);
    struct usage u = {.pods = 0};
    struct slice s;
    sim_check(d != NULL && decision_has(d, card));
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!counts(d, i) || !is_on(d, i, node, card, &s) || !oracle_shares(d, p))
            continue;
        bool foreign = p->plugin != store.pods[d->slot].plugin;
        u.mem += foreign ? d->total[card] : slice_charge(p, &s, d->total[card]);
        u.pods++;
        u.takers += slice_takers(&s);
        u.wholes += foreign || p->whole ? 1 : 0;
        check_apart(node, card, i);
    }
    trace("card holds", name_str(&store.nodes[node].name), u.mem, d->total[card]);
    sim_check(u.mem + d->lent[card] <= d->total[card]);
    sim_check((int64_t)u.takers <= d->max_pods[card]);
    sim_check(u.wholes == 0 || u.pods == 1);
    check_cores(node, card);
}

/* A card that is set aside for another plugin must hold no sharing pods once that plugin serves a
 * pod here: the oracle does not know which card that pod has. */
static void check_aside(unsigned node, const struct decision *d)
{
    struct slice s;
    if (pod_object_exclusive(&store.pods[d->slot]) == 0 || d->served)
        return;
    for (int64_t card = 0; card < MAX_CARDS; card++) {
        for (unsigned i = 0; (d->aside >> card & 1) != 0 && i < store.n_pods; i++)
            sim_check(!counts(d, i) || !is_on(d, i, node, card, &s));
    }
}

static void check_node(unsigned node)
{
    const struct decision *shares = last_decision(node, -1, ABOUT_MEM);
    const struct decision *any = last_decision(node, -1, ABOUT_ANY);
    struct slice s;
    int64_t counted = 0;
    unsigned exclusive = 0;
    unsigned sharing = 0;
    sim_check(any != NULL);
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!is_on(any, i, node, -1, &s))
            continue;
        if (shares != NULL && counts(shares, i) && p->plugin == store.pods[shares->slot].plugin)
            counted += pod_object_mem(p);
        exclusive += counts(any, i) && oracle_excludes(any, p) ? 1 : 0;
        sharing += counts(any, i) && oracle_shares(any, p) ? 1 : 0;
    }
    sim_check(shares == NULL || counted <= shares->limit);
    sim_check(any->divided || any->served || exclusive == 0 || sharing == 0);
    check_aside(node, any);
}

/* If cardpack placed a pod of its affinity group before, the pod must be on a card with a pod of
 * the group: that pod, or one that another client placed. */
static void check_group(const struct decision *d)
{
    const struct pod_object *mine = &store.pods[d->slot];
    struct slice s;
    bool others = false;
    bool beside = false;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (i == d->slot || !pod_object_holds(p) || strcmp(p->ns.z, mine->ns.z) != 0 ||
            mine->affinity.z[0] == '\0' || strcmp(mine->affinity.z, p->affinity.z) != 0 ||
            !pod_object_shares(p))
            continue;
        others = others || is_ours(i);
        for (int64_t card = 0; card < MAX_CARDS; card++)
            beside = beside || (decision_has(d, card) && is_on(d, i, d->node, card, &s));
    }
    sim_check(!others || beside);
}

/* The device plugin serves pods of one size in the order of their ASSUME_TIME. */
static void check_order(unsigned slot)
{
    const struct pod_object *mine = &store.pods[slot];
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (i != slot && pod_object_holds(p) && is_ours(i) && p->phase == PHASE_PENDING &&
            pod_object_shares(p) && strcmp(p->assigned.z, "false") == 0 &&
            p->plugin == mine->plugin && strcmp(p->node.z, mine->node.z) == 0)
            sim_check(strcmp(p->assume.z, mine->assume.z) < 0);
    }
}

/* After the merge with annotations that the pod had, the pod must still count on the decided
 * cards. */
static void check_place(const struct pod_object *p, const struct decision *d)
{
    struct slices all;
    uint64_t cards = 0;
    pod_object_slices(p, false, &all);
    for (unsigned i = 0; i < all.n; i++)
        cards |= (uint64_t)1 << all.at[i].card;
    sim_check(cards == d->cards);
}

/* Whether a card of d holds too much. */
static bool over_commits(const struct decision *d)
{
    struct slice s;
    for (int64_t card = 0; card < MAX_CARDS; card++) {
        if (!decision_has(d, card) || !is_on(NULL, d->slot, d->node, card, &s))
            continue;
        struct usage u = oracle_usage(d->node, card);
        if (u.mem > d->total[card] || u.cores > 100)
            return true;
    }
    return false;
}

/* Counts a commit that breaks the rules. The oracle treats the pod as bound by another client. */
static void note_rogue(const struct order *o)
{
    struct rogue_count *c = &world.rogues[o->rogue];
    c->commits++;
    if (!over_commits(o->decision))
        return;
    c->over_commits++;
    c->least_ms = c->least_ms == 0 ? o->late_ms : MIN_OF(c->least_ms, o->late_ms);
    trace("over-commit", name_str(&o->is.uid), o->rogue, (int64_t)o->late_ms);
}

void oracle_committed(const struct order *o, unsigned slot)
{
    const struct pod_object *p = &store.pods[slot];
    world.binds++;
    trace("bound", name_str(&p->uid), pod_object_card(p), (int64_t)o->sender);
    if (strcmp(p->uid.z, o->is.uid.z) != 0) {
        sim_check(!world.set.preconditions);
        trace("bound for another", name_str(&o->is.uid), 0, 0);
        return;
    }
    const struct decision *d = o->decision;
    if (d == NULL)
        return;
    if (o->rogue != ROGUE_NOT) {
        note_rogue(o);
        return;
    }
    order_check_request(o, p);
    oracle.ours_rv[slot] = oracle.placed_rv[slot];
    oracle.by[slot] = d;
    check_place(p, d);
    locks_bound(o, slot);
    if (world.set.faultless && !o->is.bare)
        check_order(slot);
    for (int64_t card = 0; card < MAX_CARDS; card++) {
        if (decision_has(d, card))
            check_card(d->node, card);
    }
    check_node(d->node);
    quotas_check(&p->ns);
    claims_check_partition();
    if (d->cards != 0)
        check_group(d);
}
