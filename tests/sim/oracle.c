/*
 * Who is to blame for a card that holds too much?
 *
 * A decision of ours is a reservation, and its Binding says how large the card was held to be. When
 * that Binding commits, the card's pods are counted: those that Bindings of ours put there, be they
 * any process', and those that were put there by other hands, or moved by an edit of their
 * annotations, if the deciding process had surely been told before it decided. If they are more
 * than the card had by what the process knew, it is our fault. A node that shrank since, or a pod
 * that somebody else bound meanwhile, is not; nor are init containers that run again since. The
 * same holds for the card's compute, its number of pods, for who has it whole, and for the two
 * kinds of plugin.
 *
 * One case is excepted. API servers before 1.27 ignore a Binding's UID: a pod that is deleted and
 * created again under its name while its Binding is under way may get its predecessor's, with its
 * annotations. The API server gives no means against it. Such a pod counts from then on as one that
 * another hand has bound; and who had been promised the predecessor hears of a success.
 */
#include "oracle.h"

#include "server.h"

#include <jansson.h>

#define DECISIONS 8192
#define SENDINGS  8192

static struct {
    struct decision decisions[DECISIONS];
    size_t n;

    /* The ASSUME_TIME that each was given. */
    struct sending {
        const struct decision *decision;
        uint64_t assume;
    } sendings[SENDINGS];

    size_t n_sendings;
    uint64_t looks[MAX_REPLICAS];

    struct {
        uint64_t look; /* the last one that has found it reserved */
        uint64_t assume;
    } held[MAX_REPLICAS][MAX_PODS];

    uint64_t ours_rv[MAX_PODS]; /* of the placement by a Binding of ours; 0: by other hands */
    const struct decision *by[MAX_PODS]; /* whose Binding that was */
    unsigned posts[MAX_PODS];
} oracle;

void oracle_reset(void)
{
    oracle.n = 0;
    oracle.n_sendings = 0;
    memset(oracle.looks, 0, sizeof(oracle.looks));
    memset(oracle.held, 0, sizeof(oracle.held));
    memset(oracle.ours_rv, 0, sizeof(oracle.ours_rv));
    memset((void *)oracle.by, 0, sizeof(oracle.by));
    memset(oracle.posts, 0, sizeof(oracle.posts));
}

void oracle_started(const struct proc *p)
{
    memset(oracle.held[p->id], 0, sizeof(oracle.held[p->id]));
}

static bool is_ours(unsigned slot)
{
    return oracle.ours_rv[slot] != 0 && oracle.ours_rv[slot] == store.placed_rv[slot];
}

/* ---- decisions ---- */

/* The node's versions that the process may have decided on: the last it was told, and all since. */
static void decision_check_node(struct decision *d, const struct proc *p)
{
    const struct pod_object *pod = &store.pods[d->slot];
    uint64_t told = p->told_before[CACHE_NODES][d->node];
    uint64_t legal = 0;
    d->aside = UINT64_MAX;
    for (size_t i = history_size(); i > 0; i--) {
        const struct change *c = history_at(i - 1);
        if (c->kind != CACHE_NODES || c->slot != d->node)
            continue;
        const struct node_object *n = &c->new.node;
        for (int64_t card = 0; card < MAX_CARDS; card++) {
            bool good = decision_has(d, card) && node_object_card_usable(n, card) &&
                        node_object_card_size(n, card) == d->total[card] &&
                        pod_object_allows(pod, n, card);
            legal |= good ? (uint64_t)1 << card : 0;
            if (!node_object_has_card(n, card) || !name_lists(&n->aside, card))
                d->aside &= ~((uint64_t)1 << card);
        }
        d->limit = MAX_OF(d->limit, node_object_limit(n));
        d->max_pods = MAX_OF(d->max_pods, node_object_max_pods(n));
        d->divided = d->divided || node_object_divided(n);
        if (c->rv <= told)
            break;
    }
    sim_check(legal == d->cards);
    const struct health_object *h = &store.healths[d->node];
    for (int64_t card = 0; card < MAX_CARDS; card++)
        sim_check(!decision_has(d, card) || p->told_before[CACHE_HEALTH][d->node] < h->rv ||
                  !health_object_ill(h, card));
}

static const struct decision *decision_note(const struct proc *p, const struct pod *pod,
                                            unsigned slot)
{
    sim_check(oracle.n < DECISIONS);
    struct decision *d = &oracle.decisions[oracle.n++];
    *d = (struct decision){
        .slot = slot, .proc = p->id, .node = store_find_node(pod->node->name), .rv = store.rv};
    d->shrink = p->service.cache.settings.shrink;
    sim_check(d->node != MAX_NODES);
    for (uint32_t i = 0; i < pod->holding->n_shares; i++) {
        uint32_t card = pod->holding->shares[i].card;
        sim_check(card < MAX_CARDS && card < pod->node->n_cards && !decision_has(d, card));
        d->cards |= (uint64_t)1 << card;
        d->total[card] = pod->node->cards[card].total;
    }
    sim_check((d->cards != 0) == pod_object_shares(&store.pods[slot]));
    decision_check_node(d, p);
    for (unsigned i = 0; i < store.n_pods; i++) {
        uint64_t told = p->told_before[CACHE_PODS][i];
        d->known[i] = pod_object_holds(&store.pods[i]) && told >= store.placed_rv[i];
        d->lasts[i] = store.pods[i].initialized || told < store.begun_rv[i];
    }
    trace("reserved", pod->uid, (int64_t)d->cards, pod->mem);
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

void oracle_decided(const struct proc *p)
{
    const struct cache *cache = &p->service.cache;
    size_t cursor = 0;
    uint64_t look = ++oracle.looks[p->id];
    for (const struct pod *pod = cache_next_pod(cache, &cursor); pod != NULL;
         pod = cache_next_pod(cache, &cursor)) {
        if (pod->state != POD_RESERVED)
            continue;
        unsigned slot = store_find_uid(pod->uid);
        sim_check(slot != MAX_PODS);
        bool fresh = oracle.held[p->id][slot].look + 1 != look;
        /* One that has slept may renew what is then held back. */
        if (fresh)
            decides_alone(p);
        /* Before its Binding is sent, and sent again, it is decided anew with what is known. */
        if (fresh || oracle.held[p->id][slot].assume != pod->assume_ns)
            sending_note(decision_note(p, pod, slot), pod->assume_ns);
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

void oracle_turned(const struct proc *p)
{
    cache_check(&p->service.cache);
    oracle_decided(p);
}

/* ---- Bindings ---- */

static const struct decision *decision_of(const struct order *o)
{
    for (size_t i = oracle.n_sendings; i > 0; i--) {
        const struct sending *s = &oracle.sendings[i - 1];
        /* Nothing is written for cards of another plugin: then it was the last one. */
        if (strcmp(store.pods[s->decision->slot].uid.z, o->uid.z) == 0 &&
            (o->bare || name_is(&o->assume, (int64_t)s->assume)))
            return s->decision;
    }
    return NULL;
}

void oracle_posted(struct order *o)
{
    unsigned slot = store_find_uid(name_str(&o->uid));
    sim_check(slot != MAX_PODS);
    const struct pod_object *p = &store.pods[slot];
    sim_check(strcmp(p->name.z, o->name.z) == 0 && strcmp(p->ns.z, o->ns.z) == 0);
    sim_check(o->bare == !pod_object_shares(p) && !pod_object_bad(p));
    oracle.posts[slot]++;
    if (world.set.faultless)
        sim_check(oracle.posts[slot] == 1);
    o->decision = NULL;
    if (!pod_object_wants(p))
        return;
    const struct decision *d = decision_of(o);
    sim_check(d != NULL);
    sim_check(d->proc == o->sender);
    sim_check(strcmp(store.nodes[d->node].name.z, o->node.z) == 0);
    if (!o->bare)
        order_check(o, d);
    o->decision = d;
}

/* What a pod has there, by what d may have known. */
static bool is_on(const struct decision *d, unsigned slot, unsigned node, int64_t card,
                  struct slice *ret)
{
    const struct pod_object *p = &store.pods[slot];
    struct slices all;
    if (!pod_object_holds(p) || strcmp(p->node.z, store.nodes[node].name.z) != 0)
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

/* What a decision was about: who asks for nothing of it may go where there is too much of it. */
enum about {
    ABOUT_ANY,
    ABOUT_MEM,
    ABOUT_CORES,
};

/*
 * Of the node, or of one of its cards: the last decision whose Binding has put a pod there. It was
 * to leave room for all before it, whether they had committed by then or not.
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
    return is_ours(slot) || (d->known[slot] && store.placed_rv[slot] <= d->rv);
}

/* No more compute than there is. */
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

/* No two of ours there that avoid each other. */
static void check_apart(unsigned node, int64_t card, unsigned slot)
{
    struct slice s;
    for (unsigned i = 0; i < slot; i++) {
        if (is_ours(slot) && is_ours(i) && avoid(&store.pods[slot], &store.pods[i]))
            sim_check(!is_on(NULL, i, node, card, &s));
    }
}

/* Neither too much of the card, nor too many, nor those that will not have each other. */
static void check_card(unsigned node, int64_t card)
{
    const struct decision *d = last_decision(node, card, ABOUT_MEM);
    struct usage u = {.pods = 0};
    struct slice s;
    sim_check(d != NULL && decision_has(d, card));
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!counts(d, i) || !is_on(d, i, node, card, &s))
            continue;
        u.mem += slice_charge(p, &s, d->total[card]);
        u.pods++;
        u.wholes += pod_object_named(p) && p->whole ? 1 : 0;
        check_apart(node, card, i);
    }
    trace("card holds", name_str(&store.nodes[node].name), u.mem, d->total[card]);
    sim_check(u.mem <= d->total[card]);
    sim_check((int64_t)u.pods <= d->max_pods);
    sim_check(u.wholes == 0 || u.pods == 1);
    check_cores(node, card);
}

/* What another plugin was given is not shared, though which of its cards that is nobody says. */
static void check_aside(unsigned node, const struct decision *d)
{
    struct slice s;
    if (pod_object_exclusive(&store.pods[d->slot]) == 0)
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
        counted += shares != NULL && counts(shares, i) ? pod_object_mem(p) : 0;
        exclusive += counts(any, i) && pod_object_exclusive(p) > 0 ? 1 : 0;
        sharing += counts(any, i) && pod_object_shares(p) ? 1 : 0;
    }
    sim_check(shares == NULL || counted <= shares->limit);
    sim_check(any->divided || exclusive == 0 || sharing == 0);
    check_aside(node, any);
}

/* Beside one of its group, if we had put one there before: that one, or one of somebody else. */
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

/* The device plugin takes pods of one size in the order of their ASSUME_TIME. */
static void check_order(unsigned slot)
{
    const struct pod_object *mine = &store.pods[slot];
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (i != slot && pod_object_holds(p) && is_ours(i) && p->phase == PHASE_PENDING &&
            pod_object_shares(p) && strcmp(p->assigned.z, "false") == 0 &&
            strcmp(p->node.z, mine->node.z) == 0)
            sim_check(strcmp(p->assume.z, mine->assume.z) < 0);
    }
}

/* What was on the pod before is merged with what the Binding says: that must count all the same. */
static void check_place(const struct pod_object *p, const struct decision *d)
{
    struct slices all;
    uint64_t cards = 0;
    pod_object_slices(p, false, &all);
    for (unsigned i = 0; i < all.n; i++)
        cards |= (uint64_t)1 << all.at[i].card;
    sim_check(cards == d->cards);
}

void oracle_committed(const struct order *o, unsigned slot)
{
    const struct pod_object *p = &store.pods[slot];
    world.binds++;
    trace("bound", name_str(&p->uid), pod_object_card(p), (int64_t)o->sender);
    if (strcmp(p->uid.z, o->uid.z) != 0) {
        sim_check(!world.set.uid_precondition);
        trace("bound for another", name_str(&o->uid), 0, 0);
        return;
    }
    const struct decision *d = o->decision;
    if (d == NULL)
        return;
    oracle.ours_rv[slot] = store.placed_rv[slot];
    oracle.by[slot] = d;
    check_place(p, d);
    if (world.set.faultless && !o->bare)
        check_order(slot);
    for (int64_t card = 0; card < MAX_CARDS; card++) {
        if (decision_has(d, card))
            check_card(d->node, card);
    }
    check_node(d->node);
    if (d->cards != 0)
        check_group(d);
}

/* ---- answers ---- */

static void bind_answered(const struct ask *a)
{
    if (!str_eq(text_str(&a->answer), STR("{\"Error\":\"\"}")))
        return;
    unsigned slot = store_find_uid(name_str(&a->uid));
    sim_check(slot != MAX_PODS);
    const struct pod_object *p = &store.pods[slot];
    bool excepted = !world.set.uid_precondition && !p->exists;
    sim_check(excepted || strcmp(p->node.z, a->node.z) == 0);
}

void oracle_answered(const struct ask *a)
{
    json_error_t error;
    sim_check(a->status == 200 || a->status == 503 || a->kind == ASK_NONSENSE);
    if (a->status == 503)
        return;
    json_t *root = json_loadb(a->answer.p, a->answer.n, 0, &error);
    sim_check(root != NULL);
    json_decref(root);
    trace("answered", text_str(&a->answer), a->kind, a->status);
    if (a->kind == ASK_BIND)
        bind_answered(a);
}
