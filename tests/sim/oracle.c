/*
 * Who is to blame for a card that holds too much?
 *
 * A decision of ours is a reservation, and its Binding says how large the card was held to be. When
 * that Binding commits, the card's pods are counted: those that Bindings of ours put there, be they
 * any process', and those that were put there by other hands, or moved by an edit of their
 * annotations, if the deciding process had surely been told before it decided. If they are more
 * than the card had by what the process knew, it is our fault. A node that shrank since, or a pod
 * that somebody else bound meanwhile, is not.
 *
 * One case is excepted. API servers before 1.27 ignore a Binding's UID: a pod that is deleted and
 * created again under its name while its Binding is under way may get its predecessor's, with its
 * annotations. The API server gives no means against it. Such a pod counts from then on as one that
 * another hand has bound; and who had been promised the predecessor hears of a success.
 */
#include "oracle.h"

#include "server.h"

#include <jansson.h>

#define DECISIONS    8192
#define SENDINGS     8192
#define SPARE_BLOCKS 96 /* of a process at rest, beyond its nodes and pods */

struct decision {
    unsigned slot;
    unsigned proc;
    unsigned node;
    int64_t card;
    int64_t mem;
    int64_t total; /* of the card, as it was believed to be */
    int64_t limit; /* of the node: the largest that it may have been believed to be */
    uint64_t rv;
    bool known[MAX_PODS]; /* foreign pods that it had been told of */
};

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
static void decision_check_size(struct decision *d, const struct proc *p)
{
    uint64_t told = p->told_before[CACHE_NODES][d->node];
    bool legal = false;
    for (size_t i = history_size(); i > 0; i--) {
        const struct change *c = history_at(i - 1);
        if (c->kind != CACHE_NODES || c->slot != d->node)
            continue;
        if (d->card < node_object_cards(&c->new.node)) {
            legal = legal || node_object_card_size(&c->new.node) == d->total;
            d->limit = MAX_OF(d->limit, node_object_limit(&c->new.node));
        }
        if (c->rv <= told)
            break;
    }
    sim_check(legal);
}

static const struct decision *decision_note(const struct proc *p, const struct pod *pod,
                                            unsigned slot)
{
    sim_check(oracle.n < DECISIONS);
    struct decision *d = &oracle.decisions[oracle.n++];
    *d = (struct decision){.slot = slot,
                           .proc = p->id,
                           .node = store_find_node(pod->node->name),
                           .card = pod->card,
                           .mem = pod->mem,
                           .rv = store.rv};
    sim_check(d->node != MAX_NODES);
    sim_check(d->card >= 0 && (uint32_t)d->card < pod->node->n_cards);
    d->total = pod->node->cards[d->card].total;
    decision_check_size(d, p);
    const struct health_object *h = &store.healths[d->node];
    sim_check(p->told_before[CACHE_HEALTH][d->node] < h->rv || !health_object_ill(h, d->card));
    for (unsigned i = 0; i < store.n_pods; i++)
        d->known[i] =
            pod_object_holds(&store.pods[i]) && p->told_before[CACHE_PODS][i] >= store.placed_rv[i];
    trace("reserved", pod->uid, d->card, pod->mem);
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

static bool is_number(const struct name *n, int64_t value)
{
    struct name wanted = name_of("", (uint64_t)value);
    return strcmp(n->z, wanted.z) == 0;
}

static const struct decision *decision_of(const struct order *o)
{
    for (size_t i = oracle.n_sendings; i > 0; i--) {
        const struct sending *s = &oracle.sendings[i - 1];
        if (strcmp(store.pods[s->decision->slot].uid.z, o->uid.z) == 0 &&
            is_number(&o->assume, (int64_t)s->assume))
            return s->decision;
    }
    return NULL;
}

void oracle_posted(const struct order *o)
{
    unsigned slot = store_find_uid(name_str(&o->uid));
    sim_check(slot != MAX_PODS);
    sim_check(strcmp(store.pods[slot].name.z, o->name.z) == 0);
    sim_check(strcmp(store.pods[slot].ns.z, o->ns.z) == 0);
    sim_check(o->bare == (pod_object_mem(&store.pods[slot]) == 0));
    oracle.posts[slot]++;
    if (world.set.faultless)
        sim_check(oracle.posts[slot] == 1);
    if (o->bare)
        return;
    const struct decision *d = decision_of(o);
    sim_check(d != NULL);
    sim_check(d->proc == o->sender);
    sim_check(strcmp(store.nodes[d->node].name.z, o->node.z) == 0);
    sim_check(is_number(&o->idx, d->card) && is_number(&o->dev, d->total));
    sim_check(is_number(&o->mem, d->mem) && d->mem == pod_object_mem(&store.pods[slot]));
    sim_check(strcmp(o->assigned.z, "false") == 0);
}

static bool is_on(unsigned slot, unsigned node, int64_t card)
{
    const struct pod_object *p = &store.pods[slot];
    return pod_object_holds(p) && strcmp(p->node.z, store.nodes[node].name.z) == 0 &&
           (card < 0 || pod_object_card(p) == card);
}

/*
 * Of the node, or of one of its cards: the last decision whose Binding has put a pod there. It was
 * to leave room for all before it, whether they had committed by then or not.
 */
static const struct decision *last_decision(unsigned node, int64_t card)
{
    const struct decision *last = NULL;
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (is_on(i, node, card) && is_ours(i) && (last == NULL || oracle.by[i] > last))
            last = oracle.by[i];
    }
    return last;
}

static int64_t blamed_sum(const struct decision *d, int64_t card)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        bool known = is_ours(i) || (d->known[i] && store.placed_rv[i] <= d->rv);
        if (known && is_on(i, d->node, card))
            sum += pod_object_mem(&store.pods[i]);
    }
    return sum;
}

/* The device plugin takes pods of one size in the order of their ASSUME_TIME. */
static void check_order(unsigned slot)
{
    const struct pod_object *mine = &store.pods[slot];
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (i != slot && pod_object_holds(p) && is_ours(i) && p->phase == PHASE_PENDING &&
            strcmp(p->assigned.z, "false") == 0 && strcmp(p->node.z, mine->node.z) == 0)
            sim_check(strcmp(p->assume.z, mine->assume.z) < 0);
    }
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
    if (o->bare)
        return;
    const struct decision *d = decision_of(o);
    sim_check(d != NULL);
    oracle.ours_rv[slot] = store.placed_rv[slot];
    oracle.by[slot] = d;
    if (world.set.faultless)
        check_order(slot);
    const struct decision *on_card = last_decision(d->node, d->card);
    const struct decision *on_node = last_decision(d->node, -1);
    sim_check(on_card != NULL && on_node != NULL);
    trace("card holds", name_str(&o->node), blamed_sum(on_card, d->card), on_card->total);
    sim_check(blamed_sum(on_card, d->card) <= on_card->total);
    sim_check(blamed_sum(on_node, -1) <= on_node->limit);
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

/* ---- at rest ---- */

static int64_t used_on(unsigned node, int64_t card)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (pod_object_holds(p) && strcmp(p->node.z, store.nodes[node].name.z) == 0 &&
            (card < 0 || pod_object_card(p) == card))
            sum += pod_object_mem(p);
    }
    return sum;
}

bool oracle_fits(unsigned node, int64_t mem)
{
    const struct node_object *n = &store.nodes[node];
    if (!n->exists || mem == 0)
        return n->exists;
    for (int64_t card = 0; card < node_object_cards(n); card++) {
        if (!health_object_ill(&store.healths[node], card) &&
            node_object_card_size(n) - used_on(node, card) >= mem)
            return node_object_limit(n) - used_on(node, -1) >= mem;
    }
    return false;
}

static size_t rest_pods(const struct cache *cache)
{
    size_t kept = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *o = &store.pods[i];
        const struct pod *p = cache_pod(cache, name_str(&o->uid));
        int64_t mem = pod_object_mem(o);
        bool keeps = o->exists && !pod_object_terminal(o) && mem > 0;
        sim_check((p != NULL) == keeps);
        if (p == NULL)
            continue;
        kept++;
        bool bound = o->node.z[0] != '\0';
        sim_check(p->state == (bound ? POD_BOUND : POD_PENDING));
        sim_check(p->mem == mem && p->card == (bound ? pod_object_card(o) : -1));
        sim_check(!bound || str_eq(p->node->name, name_str(&o->node)));
        sim_check(p->awaiting ==
                  (bound && strcmp(o->assigned.z, "false") == 0 && o->phase == PHASE_PENDING));
    }
    sim_check(cache->pods.n == kept);
    return kept;
}

static size_t rest_nodes(const struct cache *cache)
{
    size_t blocks = 0;
    for (unsigned i = 0; i < store.n_nodes; i++) {
        const struct node_object *o = &store.nodes[i];
        const struct node *n = cache_node(cache, name_str(&o->name));
        if (n == NULL) {
            sim_check(!o->exists);
            continue;
        }
        blocks += 3;
        sim_check((n->fault != NODE_ABSENT) == o->exists);
        sim_check(n->n_cards == node_object_cards(o) && n->limit == node_object_limit(o));
        sim_check(n->used == used_on(i, -1));
        for (uint32_t card = 0; card < n->n_cards; card++) {
            sim_check(n->cards[card].total == node_object_card_size(o));
            sim_check(n->cards[card].used == used_on(i, card));
            sim_check(n->cards[card].unhealthy == health_object_ill(&store.healths[i], card));
        }
    }
    return blocks;
}

void oracle_rest(void)
{
    for (unsigned i = 0; i < world.set.replicas; i++) {
        const struct proc *p = &procs[i];
        sim_check(p->asks == NULL);
        sim_check(binder_active(p->service.binder) == 0);
        size_t objects = rest_pods(&p->service.cache) + rest_nodes(&p->service.cache);
        sim_check(mem_blocks(p) <= objects + SPARE_BLOCKS);
    }
}
