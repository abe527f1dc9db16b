/* The quota ConfigMap of the simulation, and the oracle's own count of what each namespace uses. */
#include "quotas.h"

#include "kinds.h"

#include <stdio.h>

#define NAMESPACES   2
#define ALL_OTHERS   NAMESPACES        /* index of the entry "*" */
#define QUOTA_OBJECT (MAX_HEALTHS - 1) /* index in store.healths */

/* Places in struct belief. */
#define NO_NODE MAX_NODES
#define NO_CARD MAX_CARDS
#define LABEL   (MAX_CARDS + 1)

static const char *const names[LIMITED_KINDS] = {"memory", "cards", "compute"};

/* The models that each pattern (quota_scope_text) matches, as bits: 1 for no model, 2 for A10, 4
 * for T4. */
static const uint8_t patterns[PATTERNS] = {2, 4, 2, 1, 7};

/* ---- the ConfigMap ---- */

static void draw_limit(struct limits_object *l, unsigned scope)
{
    static const unsigned most[LIMITED_KINDS] = {40, 6, 300};
    l->of[scope].there = true;
    for (unsigned k = 0; k < LIMITED_KINDS; k++)
        l->of[scope].most[k] = draw(k == 0 ? 4 : 2) > 0 ? (int64_t)draw(most[k]) : -1;
}

/* A limit of a pool that is not in `pools` makes the whole text invalid, so it is rare. */
static struct limits_object some_limits(void)
{
    struct limits_object l = {.there = draw(3) > 0};
    l.pools = draw(4) == 0 ? (uint8_t)draw(1U << POOLS) : 0;
    l.patterns = draw(4) == 0 ? (uint8_t)draw(1U << PATTERNS) : 0;
    if (draw(3) > 0)
        draw_limit(&l, SCOPE_TOTAL);
    for (unsigned i = 0; i < POOLS; i++) {
        bool fits = l.pools == 0 || (l.pools >> i & 1) != 0;
        if (draw(fits ? 3 : 60) == 0)
            draw_limit(&l, SCOPE_POOLS + i);
    }
    for (unsigned i = 0; i < PATTERNS; i++) {
        if (draw(5) == 0)
            draw_limit(&l, SCOPE_PATTERNS + i);
    }
    return l;
}

void quotas_change(void)
{
    struct health_object h = {.exists = draw(6) > 0, .name = name_from(STR("cardpack-quota"))};
    h.garbled = draw(12) == 0;
    for (unsigned i = 0; i < COUNT_OF(h.limits); i++)
        h.limits[i] = some_limits();
    store_put_health(QUOTA_OBJECT, &h);
    trace("quota", STR(""), h.limits[0].there, h.limits[1].there);
}

/* Whether the ConfigMap's text is not valid, because of one entry or as a whole. */
static bool is_invalid(const struct health_object *h)
{
    bool invalid = h->garbled;
    for (unsigned i = 0; i < COUNT_OF(h->limits); i++) {
        const struct limits_object *l = &h->limits[i];
        for (unsigned pool = 0; l->there && l->pools != 0 && pool < POOLS; pool++)
            invalid = invalid || (l->of[SCOPE_POOLS + pool].there && (l->pools >> pool & 1) == 0);
    }
    return h->exists && invalid;
}

/* The limits of a namespace by this ConfigMap, if it is valid. NULL: none. */
static const struct limits_object *limits_of(const struct health_object *h, const struct name *ns)
{
    const struct limits_object *l = &h->limits[strcmp(ns->z, "ns-0") == 0 ? 0 : 1];
    if (!l->there)
        l = &h->limits[ALL_OTHERS];
    return h->exists && l->there ? l : NULL;
}

/* ---- pools and models ---- */

/* n: NULL if the node does not exist. */
static void believe_node(struct belief *b, unsigned slot, const struct node_object *n)
{
    bool exists = n != NULL && n->exists;
    b->pools[slot] |= (uint8_t)(1U << (n != NULL && exists ? n->pool : 0));
    for (unsigned card = 0; card < MAX_CARDS; card++) {
        bool there = exists && node_object_has_card(n, card);
        b->models[slot][card] |= (uint8_t)(1U << (there ? node_object_model(n, card) : 0));
    }
    b->models[slot][NO_CARD] = 1;
    b->models[slot][LABEL] |= (uint8_t)(1U << (n != NULL && exists ? n->model : 0));
}

static void believe_now(struct belief *b)
{
    *b = (struct belief){.pools = {0}};
    for (unsigned i = 0; i < store.n_nodes; i++)
        believe_node(b, i, &store.nodes[i]);
    believe_node(b, NO_NODE, NULL);
}

/* Every version of a node that the process may have used: the last version it was told of, and all
 * later ones. */
static void believe(const struct proc *p, struct belief *b)
{
    believe_now(b);
    for (unsigned slot = 0; slot < store.n_nodes; slot++) {
        uint64_t told = p->told_before[CACHE_NODES][slot];
        if (told == 0)
            believe_node(b, slot, NULL);
        for (size_t i = history_size(); i > 0; i--) {
            const struct change *c = history_at(i - 1);
            if (c->kind != CACHE_NODES || c->slot != slot)
                continue;
            believe_node(b, slot, &c->new.node);
            if (c->rv <= told)
                break;
        }
    }
}

/* ---- uses ---- */

/* What a pod holds, or asks for, on cards of one model in one pool. */
struct use {
    unsigned node;
    unsigned card;
    int64_t amount[LIMITED_KINDS];
};

struct uses {
    unsigned n;
    struct use at[MAX_GRANTS + 1];
};

static void use_add(struct uses *u, unsigned node, int64_t card, int64_t mem, int64_t cards,
                    int64_t cores)
{
    struct use *at = &u->at[u->n++];
    bool known = card >= 0 && card < MAX_CARDS;
    *at = (struct use){.node = node, .card = known ? (unsigned)card : NO_CARD};
    at->amount[0] = mem;
    at->amount[1] = cards;
    at->amount[2] = cores;
}

static void use_exclusive(struct uses *u, unsigned node, const struct pod_object *p)
{
    int64_t cards = pod_object_exclusive(p);
    if (cards == 0)
        return;
    use_add(u, node, -1, 0, cards, 0);
    u->at[u->n - 1].card = LABEL;
}

/* With these parts of cards; without any, for all that the pod asks for. A card that the node does
 * not have has no size. */
static void quota_usage_of(const struct pod_object *p, unsigned node, const struct slices *all,
                           struct uses *ret)
{
    ret->n = 0;
    for (unsigned i = 0; i < all->n; i++) {
        const struct slice *s = &all->at[i];
        bool known = node != NO_NODE && node_object_has_card(&store.nodes[node], s->card);
        int64_t size = known ? node_object_card_size(&store.nodes[node], s->card) : 0;
        use_add(ret, node, s->card, known ? slice_charge(p, s, size) : s->mem, 1, s->cores);
    }
    if (all->n == 0 && pod_object_shares(p))
        use_add(ret, node, -1, pod_object_mem(p), pod_object_cards(p), pod_object_cores(p));
    use_exclusive(ret, node, p);
}

/* What a placed pod uses. */
static void uses_placed(const struct pod_object *p, bool lasting, struct uses *ret)
{
    struct slices all;
    pod_object_slices(p, lasting, &all);
    quota_usage_of(p, store_find_node(name_str(&p->node)), &all, ret);
}

/* What a pod without a place asks for, if all its cards were like this one. */
static void uses_asked(const struct pod_object *p, unsigned node, int64_t card, struct uses *ret)
{
    unsigned cards = pod_object_cards(p);
    struct slice part = {.mem = part_of(pod_object_mem(p), cards),
                         .cores = part_of(pod_object_cores(p), cards)};
    int64_t size = node_object_card_size(&store.nodes[node], card);
    ret->n = 0;
    if (pod_object_shares(p))
        use_add(ret, node, card, slice_charge(p, &part, size) * cards, cards, part.cores * cards);
    use_exclusive(ret, node, p);
}

/* Whether the limit surely counts the use. */
static bool counts(unsigned scope, const struct use *u, const struct belief *b)
{
    if (scope == SCOPE_TOTAL)
        return true;
    if (scope < SCOPE_PATTERNS)
        return b->pools[u->node] == 1U << (scope - SCOPE_POOLS);
    return (b->models[u->node][u->card] & ~patterns[scope - SCOPE_PATTERNS]) == 0;
}

static int64_t sum_of(const struct uses *u, unsigned scope, unsigned k, const struct belief *b)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < u->n; i++)
        sum += counts(scope, &u->at[i], b) ? u->at[i].amount[k] : 0;
    return sum;
}

/* The models that the entry allows. */
static unsigned models_of(const struct limits_object *l)
{
    unsigned models = 0;
    for (unsigned i = 0; i < PATTERNS; i++)
        models |= (l->patterns >> i & 1) != 0 ? patterns[i] : 0U;
    return l->patterns == 0 ? ~0U : models;
}

static bool allows_pool(const struct limits_object *l, const struct use *u, const struct belief *b)
{
    return l->pools == 0 || (b->pools[u->node] & l->pools) != 0;
}

/* Whether the entry may allow all these pools and models. */
static bool allows_places(const struct limits_object *l, const struct uses *u,
                          const struct belief *b)
{
    bool allows = true;
    for (unsigned i = 0; i < u->n; i++) {
        unsigned models = b->models[u->at[i].node][u->at[i].card];
        allows = allows && allows_pool(l, &u->at[i], b) && (models & models_of(l)) != 0;
    }
    return allows;
}

static bool in_namespace(unsigned slot, const struct name *ns)
{
    const struct pod_object *p = &store.pods[slot];
    return pod_object_holds(p) && !pod_object_bad(p) && strcmp(p->ns.z, ns->z) == 0;
}

/* ---- decisions ---- */

void quotas_note(const struct proc *p, struct decision *d)
{
    d->quota_told = p->told_before[CACHE_HEALTH][QUOTA_OBJECT];
    d->quota_rv = store.rv;
    if (store.healths[QUOTA_OBJECT].rv != 0)
        believe(p, &d->belief);
}

void quotas_keep(struct decision *first, const struct decision *later)
{
    first->quota_rv = later->quota_rv;
    for (unsigned i = 0; i <= MAX_NODES; i++) {
        first->belief.pools[i] |= later->belief.pools[i];
        for (unsigned card = 0; card < COUNT_OF(first->belief.models[i]); card++)
            first->belief.models[i][card] |= later->belief.models[i][card];
    }
}

/* The least that a process must have counted for a placed pod: in its cache the card's size may
 * differ, and the init containers may be done or not. */
static int64_t least_of(const struct pod_object *p, unsigned scope, unsigned k,
                        const struct belief *b)
{
    struct uses now;
    struct uses lasting;
    bool sized = pod_object_named(p) && (p->whole || p->percent > 0);
    uses_placed(p, false, &now);
    uses_placed(p, true, &lasting);
    if (sized && k == 0)
        return 0;
    return MIN_OF(sum_of(&now, scope, k, b), sum_of(&lasting, scope, k, b));
}

/* What all pods use for which d had to leave room. */
static int64_t sum_before(const struct decision *d, const struct name *ns, unsigned scope,
                          unsigned k)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct decision *by = in_namespace(i, ns) ? oracle_by(i) : NULL;
        bool earlier = by == NULL || by->first <= d;
        if (in_namespace(i, ns) && oracle_counts(d, i) && earlier)
            sum += least_of(&store.pods[i], scope, k, &d->belief);
    }
    return sum;
}

/* Whether d, which put the pod where it is, was within these limits. */
static bool is_within(const struct decision *d, const struct pod_object *p,
                      const struct limits_object *l)
{
    struct uses u;
    uses_placed(p, false, &u);
    if (!allows_places(l, &u, &d->belief))
        return false;
    for (unsigned scope = 0; scope < SCOPES; scope++) {
        for (unsigned k = 0; k < LIMITED_KINDS && l->of[scope].there; k++) {
            int64_t most = l->of[scope].most[k];
            if (most >= 0 && least_of(p, scope, k, &d->belief) > 0 &&
                sum_before(d, &p->ns, scope, k) > most)
                return false;
        }
    }
    return true;
}

/* Whether d was within some quotas that its process may have believed. */
static bool may_decide(const struct decision *d, const struct pod_object *p)
{
    for (size_t i = history_size(); i > 0; i--) {
        const struct change *c = history_at(i - 1);
        if (c->kind != CACHE_HEALTH || c->slot != QUOTA_OBJECT || c->rv > d->quota_rv)
            continue;
        const struct limits_object *l = limits_of(&c->new.health, &p->ns);
        if (l == NULL || is_invalid(&c->new.health) || is_within(d, p, l))
            return true;
        if (c->rv <= d->quota_told)
            return false;
    }
    return true;
}

void quotas_check(const struct name *ns)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct decision *by = in_namespace(i, ns) ? oracle_by(i) : NULL;
        if (by != NULL)
            sim_check(may_decide(by->first, &store.pods[i]));
    }
}

/* ---- at rest ---- */

void quotas_room(const struct pod_object *p, struct quota_room *ret)
{
    const struct health_object *h = &store.healths[QUOTA_OBJECT];
    struct uses u;
    *ret = (struct quota_room){.pod = p, .limits = limits_of(h, &p->ns)};
    ret->unsure = is_invalid(h);
    believe_now(&ret->now);
    for (unsigned i = 0; i < store.n_pods && ret->limits != NULL; i++) {
        const struct pod_object *its = &store.pods[i];
        /* The usage of a pod with contradictory requests is not defined. */
        if (pod_object_holds(its) && pod_object_bad(its) && strcmp(its->ns.z, p->ns.z) == 0)
            ret->unsure = true;
        if (!in_namespace(i, &p->ns) || strcmp(its->uid.z, p->uid.z) == 0)
            continue;
        uses_placed(its, oracle_lasts(its), &u);
        for (unsigned scope = 0; scope < SCOPES; scope++) {
            for (unsigned k = 0; k < LIMITED_KINDS; k++)
                ret->sums[scope][k] += sum_of(&u, scope, k, &ret->now);
        }
    }
    if (ret->unsure)
        ret->limits = NULL;
}

/* What is left for more uses by one limit. */
static bool exceeds(const struct quota_room *r, const struct uses *u, unsigned scope, unsigned k)
{
    int64_t more = sum_of(u, scope, k, &r->now);
    int64_t most = r->limits->of[scope].most[k];
    return r->limits->of[scope].there && most >= 0 && more > 0 && more > most - r->sums[scope][k];
}

static bool allows(const struct quota_room *r, const struct uses *u)
{
    bool allowed = r->limits == NULL || allows_places(r->limits, u, &r->now);
    for (unsigned scope = 0; r->limits != NULL && scope < SCOPES; scope++) {
        for (unsigned k = 0; k < LIMITED_KINDS; k++)
            allowed = allowed && !exceeds(r, u, scope, k);
    }
    return allowed;
}

bool quotas_allow_card(const struct quota_room *r, unsigned node, int64_t card)
{
    struct uses u;
    uses_asked(r->pod, node, card, &u);
    return allows(r, &u);
}

bool quotas_deny(const struct pod_object *p, unsigned node, bool perhaps)
{
    struct quota_room room;
    bool allows = false;
    quotas_room(p, &room);
    if (perhaps || room.limits == NULL)
        return perhaps && (room.unsure || room.limits != NULL);
    memset(room.sums, 0, sizeof(room.sums));
    for (int64_t card = 0; card < node_object_cards(&store.nodes[node]); card++)
        allows = allows || quotas_allow_card(&room, node, card);
    return !allows;
}

bool quotas_allow(const struct quota_room *r, unsigned node, const struct slices *all)
{
    struct uses u;
    quota_usage_of(r->pod, node, all, &u);
    return allows(r, &u);
}

/* ---- reasons ---- */

#define PREFIX "quota of namespace "

bool quotas_is_reason(const char *reason)
{
    return strncmp(reason, PREFIX, strlen(PREFIX)) == 0;
}

static bool is_amount(const struct quota_room *r, const struct uses *u, unsigned scope, unsigned k,
                      const char *reason)
{
    char text[200];
    const char *name = scope == SCOPE_TOTAL ? "" : quota_scope_text(scope);
    const char *of = scope == SCOPE_TOTAL      ? ""
                     : scope >= SCOPE_PATTERNS ? " of model "
                     : name[0] == '\0'         ? " on nodes without a pool"
                                               : " in pool ";
    (void)snprintf(text, sizeof(text), PREFIX "%s: %s%s%s: %lld of %lld used, %lld asked",
                   r->pod->ns.z, names[k], of, name, (long long)r->sums[scope][k],
                   (long long)r->limits->of[scope].most[k],
                   (long long)sum_of(u, scope, k, &r->now));
    return strcmp(text, reason) == 0;
}

/* Whether the reason is a pool or a model that is not allowed. */
static bool is_place(const struct quota_room *r, const struct use *u, const char *reason)
{
    char text[200];
    uint8_t pool = 0;
    int8_t model = 0;
    while (r->now.pools[u->node] >> pool != 1)
        pool++;
    while (r->now.models[u->node][u->card] >> model != 1)
        model++;
    (void)snprintf(text, sizeof(text), PREFIX "%s: pool \"%s\" is not allowed", r->pod->ns.z,
                   pool_text(pool));
    if (pool == 0)
        (void)snprintf(text, sizeof(text), PREFIX "%s: nodes without a pool are not allowed",
                       r->pod->ns.z);
    if (!allows_pool(r->limits, u, &r->now) && strcmp(text, reason) == 0)
        return true;
    (void)snprintf(text, sizeof(text), PREFIX "%s: card model \"%s\" is not allowed", r->pod->ns.z,
                   model_text(model));
    if (model == 0)
        (void)snprintf(text, sizeof(text), PREFIX "%s: cards of an unknown model are not allowed",
                       r->pod->ns.z);
    return (models_of(r->limits) >> model & 1) == 0 && strcmp(text, reason) == 0;
}

static bool explains(const struct quota_room *r, const struct uses *u, const char *reason)
{
    bool is = false;
    for (unsigned i = 0; i < u->n; i++)
        is = is || is_place(r, &u->at[i], reason);
    for (unsigned scope = 0; scope < SCOPES; scope++) {
        for (unsigned k = 0; k < LIMITED_KINDS; k++)
            is = is || (exceeds(r, u, scope, k) && is_amount(r, u, scope, k, reason));
    }
    return is;
}

bool quotas_explain(const struct quota_room *r, unsigned node, const char *reason)
{
    bool is = r->unsure;
    for (int64_t card = 0; card < MAX_CARDS && r->limits != NULL; card++) {
        struct uses u;
        uses_asked(r->pod, node, card, &u);
        bool there = !pod_object_shares(r->pod) || node_object_has_card(&store.nodes[node], card);
        is = is || (there && explains(r, &u, reason));
    }
    return is;
}
