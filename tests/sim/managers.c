/* Agents of gpu-manager; see managers.h. */
#include "managers.h"

#include "api/plugins.h"

#define WHOLE  100 /* compute of one card */
#define NO_POD MAX_PODS

/* What an agent has given to a pod: a bit for each card, for each container. */
struct given {
    unsigned node; /* MAX_NODES: nothing */
    bool ended;    /* no container runs, although the pod is there */
    uint64_t cards[MAX_CONTAINERS];
};

static struct {
    struct given given[MAX_PODS];
    bool admitted[MAX_PODS];
    unsigned begun[MAX_NODES]; /* the pod that the agent has begun to serve; NO_POD: none */
    unsigned node[MAX_PODS];   /* where the pod is or was; MAX_NODES: nowhere */
    uint64_t rv[MAX_PODS];     /* when what an agent knows of it last changed */
    uint64_t created_ns[MAX_PODS];
} all;

void managers_reset(void)
{
    memset(&all, 0, sizeof(all));
    for (unsigned i = 0; i < MAX_PODS; i++)
        all.given[i].node = all.node[i] = MAX_NODES;
    for (unsigned i = 0; i < MAX_NODES; i++)
        all.begun[i] = NO_POD;
}

static bool has_agent(unsigned node)
{
    return node != MAX_NODES && node_object_cards(&store.nodes[node]) > 0 &&
           node_object_plugin(&store.nodes[node]) == PLUGIN_TENCENT;
}

/* ---- annotations ---- */

/* The cards that the annotation of a container names, a bit for each. */
static uint64_t said(const struct pod_object *p, unsigned container)
{
    uint64_t cards = 0;
    for (unsigned i = 0; i < p->allocation.n; i++) {
        if (p->allocation.at[i].container == container)
            cards |= (uint64_t)1 << p->allocation.at[i].card;
    }
    return cards;
}

static bool says_the_same(const struct pod_object *a, const struct pod_object *b)
{
    bool same = true;
    for (unsigned i = 0; i < MAX_CONTAINERS; i++)
        same = same && said(a, i) == said(b, i);
    return same;
}

void managers_changed(const struct change *c)
{
    const struct pod_object *old = &c->old.pod;
    const struct pod_object *new = &c->new.pod;
    if (c->kind != CACHE_PODS)
        return;
    if (!old->exists)
        all.created_ns[c->slot] = SIM_EPOCH_NS + c->at_ms * 1000000;
    if (new->node.z[0] != '\0')
        all.node[c->slot] = store_find_node(name_str(&new->node));
    if (pod_object_holds(old) != pod_object_holds(new) || old->deleting != new->deleting ||
        strcmp(old->node.z, new->node.z) != 0 || strcmp(old->assume.z, new->assume.z) != 0 ||
        !says_the_same(old, new))
        all.rv[c->slot] = c->rv;
}

/* Writes the cards that the agent has given; annotations of other containers stay. */
static void write_back(unsigned slot, const char *assigned)
{
    const struct pod_object old = store.pods[slot];
    struct pod_object p = old;
    struct grants_object *g = &p.allocation;
    *g = (struct grants_object){.there = true};
    for (unsigned i = 0; i < p.n_containers; i++) {
        uint64_t cards = all.given[slot].cards[i];
        cards = cards != 0 ? cards : said(&old, i);
        for (unsigned card = 0; card < 64 && g->n < MAX_GRANTS; card++) {
            if ((cards >> card & 1) == 0)
                continue;
            g->at[g->n].container = (uint8_t)i;
            g->at[g->n++].card = (uint8_t)card;
        }
    }
    p.assigned = name_from(str_of(assigned));
    store_put_pod(slot, &p);
}

/* ---- an agent's account ---- */

/* Whether a container of the pod may run, as the agent sees it: with some delay. */
static bool is_active(unsigned slot)
{
    const struct pod_object *p = &store.pods[slot];
    struct given *g = &all.given[slot];
    if (pod_object_holds(p) && !p->deleting)
        return true;
    bool runs = pod_object_holds(p) && p->phase == PHASE_RUNNING && draw(2) == 0;
    g->ended = g->ended || (!runs && draw(8) > 0);
    return !g->ended;
}

static void recycle(unsigned node)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (all.given[i].node != node || is_active(i))
            continue;
        all.given[i] = (struct given){.node = MAX_NODES};
        all.begun[node] = all.begun[node] == i ? NO_POD : all.begun[node];
    }
}

struct left {
    int64_t cores;
    int64_t mem;
    unsigned processes;
    bool used;
};

static struct left left_of(unsigned node, unsigned card)
{
    struct left l = {.cores = WHOLE, .mem = node_object_card_size(&store.nodes[node], card)};
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        for (unsigned k = 0; all.given[i].node == node && k < p->n_containers; k++) {
            const struct container_object *c = &p->containers[k];
            bool whole = c->cores >= WHOLE;
            if ((all.given[i].cards[k] >> card & 1) == 0)
                continue;
            l.cores = MAX_OF(whole ? 0 : l.cores - c->cores, (int64_t)0);
            l.mem = MAX_OF(whole ? 0 : l.mem - c->mem, (int64_t)0);
            l.processes += p->phase == PHASE_RUNNING ? 1 : 0;
            l.used = true;
        }
    }
    return l;
}

static bool comes_before(const struct left *a, const struct left *b, bool processes)
{
    if (a->cores != b->cores)
        return a->cores < b->cores;
    if (a->mem != b->mem)
        return a->mem < b->mem;
    return processes && a->processes < b->processes;
}

/* The card for a part of one, a bit; 0: none. */
static uint64_t choose_part(unsigned node, const struct container_object *c, bool processes)
{
    struct left best = {.cores = 0};
    uint64_t found = 0;
    for (unsigned card = 0; card < node_object_cards(&store.nodes[node]); card++) {
        struct left l = left_of(node, card);
        if (l.cores < c->cores || l.mem < c->mem ||
            (found != 0 && !comes_before(&l, &best, processes)))
            continue;
        best = l;
        found = (uint64_t)1 << card;
    }
    return found;
}

/* Any cards that are free: their order depends on how they are connected. */
static uint64_t choose_whole(unsigned node, int64_t wanted)
{
    unsigned n = (unsigned)node_object_cards(&store.nodes[node]);
    unsigned first = draw(n);
    uint64_t found = 0;
    for (unsigned i = 0; i < n && wanted > 0; i++) {
        unsigned card = (first + i) % n;
        if (left_of(node, card).used)
            continue;
        found |= (uint64_t)1 << card;
        wanted--;
    }
    return wanted > 0 ? 0 : found;
}

static uint64_t choose(unsigned node, const struct container_object *c)
{
    return c->cores >= WHOLE ? choose_whole(node, c->cores / WHOLE) : choose_part(node, c, true);
}

/* ---- the pod of a call ---- */

static uint64_t time_of(unsigned slot)
{
    uint64_t ns = 0;
    if (store.pods[slot].assume.z[0] == '\0')
        return all.created_ns[slot];
    return str_to_u64(name_str(&store.pods[slot].assume), UINT64_MAX, &ns) ? ns : 0;
}

/* The first container that asks and has no cards yet, of so much compute if that is not 0. */
static unsigned next_container(unsigned slot, int64_t cores)
{
    const struct pod_object *p = &store.pods[slot];
    for (unsigned i = 0; i < p->n_containers; i++) {
        if (container_object_asks(p, i) && all.given[slot].cards[i] == 0 &&
            (cores == 0 || p->containers[i].cores == cores))
            return i;
    }
    return MAX_CONTAINERS;
}

static bool is_candidate(unsigned slot, unsigned node, int64_t cores)
{
    const struct pod_object *p = &store.pods[slot];
    return p->plugin == PLUGIN_TENCENT && pod_object_holds_on(p, &store.nodes[node]) &&
           p->phase == PHASE_PENDING && plugin_waits(p) &&
           next_container(slot, cores) != MAX_CONTAINERS;
}

static unsigned candidate_for(unsigned node, int64_t cores)
{
    unsigned found = NO_POD;
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (is_candidate(i, node, cores) && (found == NO_POD || time_of(i) < time_of(found)))
            found = i;
    }
    return found;
}

/* Whether the agent does not compare its choice with the annotations, and writes it at once. */
static bool is_unpredicted(const struct pod_object *p)
{
    return (pod_object_mem(p) == 0 && !p->beside) || p->assume.z[0] == '\0' ||
           p->assigned.z[0] == '\0';
}

static bool give(unsigned node, unsigned slot, unsigned container)
{
    const struct pod_object *p = &store.pods[slot];
    const struct container_object *c = &p->containers[container];
    uint64_t cards = choose(node, c);
    bool unpredicted = is_unpredicted(p);
    trace("gpu-manager chooses", name_str(&p->uid), (int64_t)cards, container);
    if (cards == 0 || c->cores == 0 || (c->cores < WHOLE && c->mem == 0) ||
        (c->cores < WHOLE && !unpredicted && said(p, container) != cards))
        return false;
    all.given[slot].node = node;
    all.given[slot].cards[container] = cards;
    all.begun[node] = next_container(slot, 0) == MAX_CONTAINERS ? NO_POD : slot;
    if (unpredicted)
        write_back(slot, "false");
    return true;
}

/* A call of the kubelet for a container with so much compute. */
static bool allocate(unsigned node, int64_t cores)
{
    recycle(node);
    unsigned slot = all.begun[node];
    unsigned container = MAX_CONTAINERS;
    if (slot == NO_POD) {
        slot = candidate_for(node, cores);
        container = slot == NO_POD ? MAX_CONTAINERS : next_container(slot, cores);
    } else {
        container = next_container(slot, 0);
        if (container != MAX_CONTAINERS && store.pods[slot].containers[container].cores != cores)
            return false;
    }
    return container != MAX_CONTAINERS && give(node, slot, container);
}

/* ---- what must be true ---- */

static bool is_held_by_word(const struct proc *p, unsigned slot, unsigned node)
{
    const struct pod *pod = cache_pod(&p->daemon.service.cache, name_str(&store.pods[slot].uid));
    return pod != NULL && (pod->state == POD_RESERVED || pod->state == POD_CONFIRMED) &&
           store_find_node(pod->node->name) == node;
}

/* A process may learn that a pod has ended by not finding it in a list. */
static bool knows(const struct proc *p, unsigned slot)
{
    const struct pod_object *its = &store.pods[slot];
    const struct pod *pod = cache_pod(&p->daemon.service.cache, name_str(&its->uid));
    if (!pod_object_holds(its))
        return pod == NULL || !pod_holds(pod);
    return p->told_before[CACHE_PODS][slot] >= all.rv[slot];
}

void managers_note(struct decision *d, const struct proc *p)
{
    if (store.pods[d->slot].plugin != PLUGIN_TENCENT)
        return;
    d->informed = world.set.permille[FAULT_MEMORY] == 0 &&
                  p->told_before[CACHE_NODES][d->node] >= store.nodes[d->node].rv &&
                  p->told_before[CACHE_HEALTH][d->node] >= store.healths[d->node].rv;
    /* Whether the API server's objects say all that it knew. */
    bool alone = store.pods[d->slot].node.z[0] == '\0';
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (i == d->slot)
            continue;
        d->beside[i] = is_held_by_word(p, i, d->node);
        alone = alone && !d->beside[i];
        d->informed = d->informed && (all.node[i] != d->node || d->beside[i] || knows(p, i));
    }
    sim_check(!d->informed || !alone || oracle_foresees(d->node, &store.pods[d->slot], d->cards));
}

static bool has_given(unsigned slot)
{
    return all.given[slot].node != MAX_NODES;
}

/* Whether the agent has given the pod all that the annotations say. */
static bool is_served(unsigned slot)
{
    const struct pod_object *p = &store.pods[slot];
    bool served = has_given(slot);
    for (unsigned i = 0; i < p->n_containers; i++) {
        bool asks = container_object_asks(p, i);
        served = served && (!asks || (said(p, i) != 0 && said(p, i) == all.given[slot].cards[i]));
    }
    return served;
}

/* Whether the agent knows of another pod what the decision did. */
static bool agrees(const struct decision *d, unsigned i)
{
    const struct pod_object *p = &store.pods[i];
    const struct decision *its = oracle_by(i);
    if (!pod_object_holds_on(p, &store.nodes[d->node]))
        return !d->beside[i] && all.given[i].node != d->node &&
               (all.node[i] != d->node || all.rv[i] <= d->rv);
    if (p->plugin != PLUGIN_TENCENT)
        return all.rv[i] <= d->rv && d->known[i];
    if (!d->known[i] && !d->beside[i])
        return its > d && !has_given(i) && time_of(i) > time_of(d->slot);
    if ((all.rv[i] > d->rv || !d->known[i]) && (its == NULL || p->deleting))
        return false;
    bool waits = p->phase == PHASE_PENDING && plugin_waits(p);
    return is_served(i) || (p->deleting && !has_given(i) && !waits);
}

/* Whether the agent must serve the pod: as far as it is known here. */
static bool must_serve(unsigned slot, unsigned node)
{
    const struct decision *d = oracle_by(slot);
    const struct pod_object *p = &store.pods[slot];
    if (d == NULL || !d->informed || d->node != node || store.nodes[node].rv > d->rv ||
        store.healths[node].rv > d->rv || has_given(slot) || all.begun[node] != NO_POD ||
        p->assume.z[0] == '\0' || strcmp(p->assigned.z, "false") != 0)
        return false;
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (i != slot && !agrees(d, i))
            return false;
    }
    return true;
}

/* Whether a pod of another plugin has the card. */
static bool is_foreign(unsigned node, int64_t card)
{
    struct slices its;
    bool held = false;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!pod_object_holds_on(p, &store.nodes[node]) || p->plugin == PLUGIN_TENCENT)
            continue;
        pod_object_slices_on(p, &store.nodes[node], false, &its);
        held = held || slice_on(&its, card) != NULL;
    }
    return held;
}

/* The agent gave the container what cardpack wrote, or whole cards that the pod may have. */
static void check_given(unsigned node, unsigned slot, unsigned container)
{
    const struct pod_object *p = &store.pods[slot];
    uint64_t cards = all.given[slot].cards[container];
    sim_check(cards != 0);
    if (p->containers[container].cores < WHOLE)
        sim_check(cards == said(p, container));
    for (int64_t card = 0; card < MAX_CARDS; card++) {
        if ((cards >> card & 1) == 0)
            continue;
        sim_check(oracle_may_have(node, p, card));
        sim_check(p->containers[container].cores < WHOLE || !is_foreign(node, card));
    }
}

/* ---- the kubelet ---- */

static void fail(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    trace("gpu-manager refuses", name_str(&p.uid), 0, 0);
    p.phase = PHASE_FAILED;
    store_put_pod(slot, &p);
}

/* Of equal cards the agent prefers the one with fewer processes, of which cardpack does not know.
 */
static bool depends_on_processes(unsigned node, const struct container_object *c)
{
    return c->cores < WHOLE && choose_part(node, c, true) != choose_part(node, c, false);
}

/* Asks for the cards of each container. The agent may be restarted meanwhile. */
static void admit(unsigned slot, unsigned node)
{
    recycle(node);
    bool must = must_serve(slot, node);
    unsigned n = store.pods[slot].n_containers;
    trace("gpu-manager is called", name_str(&store.pods[slot].uid), must, node);
    for (unsigned i = 0; i < n; i++) {
        const struct container_object c = store.pods[slot].containers[i];
        if (!container_object_asks(&store.pods[slot], i))
            continue;
        if (draw(20) == 0)
            all.begun[node] = NO_POD;
        must = must && c.cores > 0 && !depends_on_processes(node, &c);
        bool given = c.cores > 0 && allocate(node, c.cores);
        sim_check(given || !must);
        if (must)
            check_given(node, slot, i);
        if (!given) {
            fail(slot);
            return;
        }
    }
    all.admitted[slot] = true;
}

/* The containers start. */
static void start(unsigned slot)
{
    const struct pod_object *p = &store.pods[slot];
    if (next_container(slot, 0) == MAX_CONTAINERS) {
        write_back(slot, "true");
        return;
    }
    all.given[slot] = (struct given){.node = MAX_NODES};
    for (unsigned i = 0; i < MAX_NODES; i++)
        all.begun[i] = all.begun[i] == slot ? NO_POD : all.begun[i];
    trace("taken for another's", name_str(&p->uid), 0, 0);
    fail(slot);
}

void managers_run(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    unsigned node = store_find_node(name_str(&p.node));
    if (!pod_object_holds(&p) || p.phase != PHASE_PENDING || (p.deleting && !all.admitted[slot]))
        return;
    if (!has_agent(node)) {
        fail(slot);
    } else if (!all.admitted[slot]) {
        admit(slot, node);
    } else if (plugin_waits(&p)) {
        start(slot);
    } else {
        p.phase = PHASE_RUNNING;
        store_put_pod(slot, &p);
    }
}

/* ---- now and then ---- */

/* Annotations of a running pod that are not as the agent wrote them. */
static bool is_edited(unsigned slot)
{
    const struct pod_object *p = &store.pods[slot];
    return has_given(slot) && pod_object_holds_on(p, &store.nodes[all.given[slot].node]) &&
           p->phase == PHASE_RUNNING && has_agent(all.given[slot].node) &&
           (plugin_waits(p) || !is_served(slot));
}

void managers_settle(void)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (is_edited(i))
            write_back(i, "true");
    }
}

void managers_act(void)
{
    if (draw(2) == 0)
        managers_settle();
    else
        all.begun[draw(store.n_nodes)] = NO_POD;
}

void managers_check(void)
{
    for (unsigned i = 0; i < store.n_pods; i++)
        sim_check(!is_edited(i));
}
