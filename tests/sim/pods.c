/* Random pods: their containers, requests and allocations. */
#include "kinds.h"
#include "plugins.h"

static int64_t some_mem(void)
{
    static const int64_t usual[] = {1, 2, 2, 4, 4, 4, 8, 8, 12, 16};
    return world.set.alike && draw(4) > 0 ? 12 : usual[draw(COUNT_OF(usual))];
}

static int64_t some_cores(void)
{
    static const int64_t usual[] = {10, 20, 30, 50, 50, 70, 100};
    return usual[draw(COUNT_OF(usual))];
}

/* Draws whether this pod is of the kind. */
static bool is(enum kind k)
{
    return kind(k) && draw(3) == 0;
}

static void add(struct pod_object *p, enum container_kind of, bool asks)
{
    struct container_object *c = &p->containers[p->n_containers++];
    *c = (struct container_object){.kind = of, .named = asks};
    if (asks)
        c->mem = some_mem();
    p->n_mains += of == CONTAINER_MAIN ? 1 : 0;
}

static void add_containers(struct pod_object *p)
{
    bool several = is(KIND_CONTAINERS);
    bool inits = is(KIND_INITS);
    bool sidecar = draw(inits || several ? 3 : 10) == 0;
    bool sidecar_first = draw(2) == 0;
    if (sidecar && sidecar_first)
        add(p, CONTAINER_SIDECAR, true);
    if (inits || draw(8) == 0)
        add(p, CONTAINER_INIT, true);
    if (inits && draw(3) == 0)
        add(p, CONTAINER_INIT, draw(3) > 0);
    if (sidecar && !sidecar_first)
        add(p, CONTAINER_SIDECAR, true);
    /* Pods in which only init containers ask for memory are rare, but reveal special bugs. */
    add(p, CONTAINER_MAIN, !inits || draw(6) > 0);
    if (several || draw(8) == 0)
        add(p, CONTAINER_MAIN, true);
    if (several && draw(2) == 0)
        add(p, CONTAINER_MAIN, draw(3) > 0);
}

static void add_cores(struct pod_object *p)
{
    for (unsigned i = 0; i < p->n_containers; i++) {
        if (p->containers[i].named && draw(3) > 0)
            p->containers[i].cores = some_cores();
    }
}

/* Asks for several cards; mostly amounts that the number of cards divides. */
static void divide(struct pod_object *p)
{
    p->count = 1 + draw(3);
    for (unsigned i = 0; i < p->n_containers && draw(8) > 0; i++) {
        p->containers[i].mem *= p->count;
        p->containers[i].cores *= p->count;
    }
}

/* Asks for exclusive cards of another plugin, and mostly for no shared memory. */
static void exclude(struct pod_object *p)
{
    bool both = draw(6) == 0;
    for (unsigned i = 0; i < p->n_containers && !both; i++) {
        p->containers[i].named = false;
        p->containers[i].mem = p->containers[i].cores = 0;
    }
    p->containers[p->n_containers - 1].exclusive = 1 + draw(2);
    p->renamed = !kind(KIND_CLASSES) && draw(3) == 0; /* no class serves the other names */
}

static void select_cards(struct pod_object *p)
{
    if (draw(4) == 0)
        p->isolated = true;
    else if (draw(3) > 0)
        p->model = draw(6);
    else
        p->uuid = (int)draw(9) - 4;
}

static void join(struct pod_object *p)
{
    struct name group = name_of("g", draw(2));
    if (draw(2) == 0)
        p->affinity = group;
    else
        p->anti_affinity = group;
}

/* One pod in `seldom` has a policy. */
static struct name some_policy(unsigned seldom)
{
    static const char *const policies[] = {"spread", "binpack", "fgd", "bid-price"};
    uint32_t known = world.set.costs == POLICY_UNSET ? 2 : COUNT_OF(policies);
    return name_from(draw(seldom) == 0 ? str_of(policies[draw(known)]) : STR(""));
}

/* Requests CPU and memory that depend on the rest of the pod: draws nothing. */
static void request_host(struct pod_object *p)
{
    for (unsigned i = 0; i < p->n_containers; i++) {
        struct container_object *c = &p->containers[i];
        c->cpu = 100 * ((c->mem + i) % 4);
        c->memory = ((c->mem + p->n_containers + i) % 3) << 20;
    }
}

struct pod_object pod_some(const struct name *ns, const struct name *name)
{
    struct pod_object p = {.exists = true, .ns = *ns, .name = *name};
    add_containers(&p);
    if (is(KIND_CORES))
        add_cores(&p);
    if (is(KIND_COUNT))
        divide(&p);
    p.whole = is(KIND_WHOLE);
    if (is(KIND_PERCENT))
        p.percent = 10 * (1 + draw(10));
    for (unsigned i = 0; (p.whole || p.percent > 0) && i < p.n_containers; i++)
        p.containers[i].mem *= draw(2);
    if (is(KIND_EXCLUSIVE))
        exclude(&p);
    if (is(KIND_SELECTS))
        select_cards(&p);
    if (is(KIND_GROUPS))
        join(&p);
    if (is(KIND_NOMINATED) || kind(KIND_EVICTIONS))
        p.priority = (int)draw(3);
    p.policy = some_policy(20);
    p.node_policy = some_policy(12);
    p.card_policy = some_policy(6);
    if (draw(12) == 0) {
        for (unsigned i = 0; i < p.n_containers; i++) {
            p.containers[i].named = false;
            p.containers[i].mem = p.containers[i].cores = 0;
        }
    }
    plugins_make_pod(&p);
    request_host(&p);
    return p;
}

static void grant(struct pod_object *p, unsigned container, unsigned card, int64_t amount)
{
    struct grants_object *g = &p->allocation;
    if (g->n == MAX_GRANTS)
        return;
    g->at[g->n].container = (uint8_t)container_object_key(p, container);
    g->at[g->n].card = (uint8_t)card;
    g->at[g->n].amount = (int32_t)amount;
    g->n++;
}

void pod_allocate(struct pod_object *p)
{
    unsigned cards = MIN_OF(pod_object_cards(p), 3U);
    unsigned first = draw(3);
    p->allocation = (struct grants_object){.there = true, .garbled = draw(10) == 0};
    p->was_allocated = true;
    for (unsigned i = 0; i < p->n_containers; i++) {
        const struct container_object *c = &p->containers[i];
        if (!container_object_asks(p, i) || (c->kind == CONTAINER_INIT && draw(4) > 0))
            continue;
        first = draw(4) == 0 ? draw(4) : first;
        for (unsigned k = 0; k < cards; k++)
            grant(p, i, first + k, draw(20) == 0 ? some_mem() : c->mem / cards);
    }
}
