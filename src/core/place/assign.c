/*
 * A bounded depth-first search. Each level gives one card to one container: its first card, its
 * second, and so on, then those of the next container. Containers that have cards of their own come
 * in the order of the pod, so that the first result is what HAMi's scheduler finds by itself. Of
 * others the largest come first, and init containers are left out: they use what the lasting ones
 * have, and are checked at the end.
 */
#include "core/place/assign.h"

#include "core/state/quota_usage.h"

/* An exhaustive search for eight containers on eight cards, without symmetric solutions, takes
 * fewer. */
#define ASSIGN_STEPS 20000

/* A card, as the search has left it. Init containers on levels take nothing from those after them:
 * they have ended by then. Each has beside it what the demands before it leave, which are the
 * sidecars that run then. */
struct assign_card {
    int64_t mem;     /* free */
    uint32_t cores;  /* free */
    uint32_t takers; /* lasting containers that the search has placed there */
    uint32_t inits;  /* init containers that it has placed there */
    bool whole;      /* a lasting one wants it whole */
};

struct assign_level {
    uint32_t demand;
    bool first;    /* the container's first card */
    bool tried;    /* `card` is the last one that was tried */
    bool ended;    /* the search has found cards for all behind it, but not within the sums */
    uint32_t card; /* its place in `cards` */
    int64_t key;   /* its free memory when it was chosen */
};

struct assign {
    const struct card_choice *choice;
    const struct request *request; /* of `choice` */
    const struct card_set *fits;   /* of each demand if `own`, else of all */
    bool own;                      /* containers have cards of their own */
    uint32_t ids[LIMIT_CARDS];     /* cards that a container could have */
    struct assign_card cards[LIMIT_CARDS];
    uint32_t n_cards;
    struct assign_level levels[REQUEST_CARDS_MAX];
    uint32_t n;
    uint64_t looked; /* steps so far */
    uint64_t most;   /* steps that it may take */
};

static const struct demand *assign_demand(const struct assign *s, const struct assign_level *l)
{
    return &s->request->demands[l->demand];
}

static const struct card *assign_card_of(const struct assign *s, uint32_t at)
{
    return &s->choice->node->cards[s->ids[at]];
}

static const struct card_set *assign_fits(const struct assign *s, uint32_t demand)
{
    return &s->fits[s->own ? demand : 0];
}

static bool assign_is_wanted(const struct assign *s, uint32_t card)
{
    bool wanted = card_set_has(&s->fits[0], card);
    for (uint32_t i = 1; s->own && !wanted && i < s->request->n_demands; i++)
        wanted = card_set_has(&s->fits[i], card);
    return wanted;
}

static void assign_init_levels(struct assign *s)
{
    const struct request *r = s->request;
    s->n = 0;
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        uint32_t at = s->n;
        uint32_t cards = s->own ? d->cards : d->kind != CONTAINER_INIT;
        if (cards == 0)
            continue;
        assert(s->n + cards <= COUNT_OF(s->levels));
        for (; !s->own && at > 0 && assign_demand(s, &s->levels[at - 1])->mem < d->mem; at--)
            s->levels[at] = s->levels[at - 1];
        for (uint32_t k = 0; k < cards; k++)
            s->levels[at + k] = (struct assign_level){.demand = i, .first = k == 0};
        s->n += cards;
    }
}

static void assign_init(struct assign *s, const struct card_choice *p, const struct card_set *fits)
{
    const struct evaluation *e = p->evaluation;
    const struct request *r = e->request;
    s->choice = p;
    s->request = r;
    s->fits = fits;
    s->own = request_by_container(r);
    s->n_cards = 0;
    s->looked = 0;
    evaluation_count_steps(e, (uint64_t)p->node->n_cards * r->n_demands);
    for (uint32_t i = 0; i < p->node->n_cards; i++) {
        const struct card *c = &p->node->cards[i];
        if (!assign_is_wanted(s, i))
            continue;
        s->cards[s->n_cards] =
            (struct assign_card){.mem = card_free(c), .cores = card_free_cores(c)};
        s->ids[s->n_cards++] = i;
    }
    assign_init_levels(s);
    s->most = e->step_budget == NULL
                  ? UINT64_MAX
                  : step_budget_looks(e->step_budget, (uint64_t)s->n * (2 * s->n_cards + 1));
}

/* The part of one of the container's cards. */
static int64_t assign_mem_of(const struct assign *s, const struct demand *d, uint32_t at)
{
    return s->own ? demand_part_of(s->request, d, assign_card_of(s, at)->total) : d->mem;
}

static uint32_t assign_cores_of(const struct assign *s, const struct demand *d)
{
    return s->own ? d->cores / d->cards : d->cores;
}

/* What the container takes of the card; a whole card is taken with all of its memory. */
static int64_t assign_takes(const struct assign *s, const struct demand *d, uint32_t at)
{
    int64_t mem = assign_mem_of(s, d, at);
    return demand_is_whole(d) ? MAX_OF(assign_card_of(s, at)->total, mem) : mem;
}

/* Without cards of their own the containers count as one pod on a card, which `fits` allows. */
static bool assign_is_crowded(const struct assign *s, uint32_t at)
{
    uint32_t max_pods = node_card_max_pods(s->choice->node, s->ids[at]);
    return s->own && max_pods > 0 &&
           card_takers(assign_card_of(s, at)) + s->cards[at].takers >= max_pods;
}

static bool assign_allows(const struct assign *s, const struct assign_level *l, uint32_t at)
{
    const struct demand *d = assign_demand(s, l);
    const struct assign_card *c = &s->cards[at];
    if (c->whole || !card_set_has(assign_fits(s, l->demand), s->ids[at]))
        return false;
    if (demand_is_whole(d) && (c->takers > 0 || assign_card_of(s, at)->pods > 0))
        return false;
    return !assign_is_crowded(s, at) && assign_takes(s, d, at) <= c->mem &&
           !card_lacks_cores(assign_card_of(s, at), s->request, assign_cores_of(s, d), c->cores);
}

/* Whether the container has the card already. */
static bool assign_has(const struct assign *s, uint32_t level, uint32_t at)
{
    for (uint32_t i = level; !s->levels[i].first; i--) {
        if (s->levels[i - 1].card == at)
            return true;
    }
    return false;
}

/* Whether the card with this free memory comes before the other one. */
static bool assign_before(const struct assign *s, int64_t a_mem, uint32_t a, int64_t b_mem,
                          uint32_t b)
{
    if (a_mem == b_mem)
        return a < b;
    return s->choice->policy == POLICY_SPREAD ? a_mem > b_mem : a_mem < b_mem;
}

/* Whether the quota counts both cards alike. Cards of two models differ. A card that a container of
 * the pod already has differs from one that none has: a second container on it adds no card. */
static bool assign_is_same_kind(const struct assign *s, uint32_t a, uint32_t b)
{
    const struct node *n = s->choice->node;
    if (s->choice->evaluation->account.entry == NULL)
        return true;
    return (s->cards[a].takers > 0) == (s->cards[b].takers > 0) &&
           str_eq(node_card_model(n, s->ids[a]), node_card_model(n, s->ids[b]));
}

static bool assign_is_own_twin(const struct assign *s, uint32_t a, uint32_t b)
{
    const struct node *n = s->choice->node;
    const struct card *c = assign_card_of(s, a);
    const struct card *d = assign_card_of(s, b);
    if (c->total != d->total || card_takers(c) != card_takers(d) ||
        node_card_max_pods(n, s->ids[a]) != node_card_max_pods(n, s->ids[b]))
        return false;
    for (uint32_t i = 0; i < s->request->n_demands; i++) {
        if (card_set_has(&s->fits[i], s->ids[a]) != card_set_has(&s->fits[i], s->ids[b]))
            return false;
    }
    return true;
}

/* Whether both cards are equal for all that the search decides, so that trying the second one finds
 * nothing new. With init containers, equal room does not make two used cards equal: an init
 * container may use the part of containers that start later. */
static bool assign_is_twin(const struct assign *s, uint32_t a, uint32_t b)
{
    const struct assign_card *x = &s->cards[a];
    const struct assign_card *y = &s->cards[b];
    bool used = x->takers + x->inits + y->takers + y->inits > 0;
    if (x->mem != y->mem || x->cores != y->cores || !assign_is_same_kind(s, a, b))
        return false;
    if (s->own)
        return !used && assign_is_own_twin(s, a, b);
    return !used || s->n == s->request->n_demands;
}

/* The card to try next at this level: the first one, in the policy's order, after the card that was
 * tried here before. If none was tried, the first one after the card of the level before, where
 * that level is of the same container: so the same cards are not tried in another order. */
static bool assign_next(struct assign *s, uint32_t level)
{
    struct assign_level *l = &s->levels[level];
    const struct assign_level *after = l->tried ? l : l->first ? NULL : l - 1;
    uint32_t best = UINT32_MAX;
    s->looked += 1 + s->n_cards;
    for (uint32_t i = 0; i < s->n_cards; i++) {
        int64_t mem = s->cards[i].mem;
        if (after != NULL && !assign_before(s, after->key, after->card, mem, i))
            continue;
        if (best != UINT32_MAX && !assign_before(s, mem, i, s->cards[best].mem, best))
            continue;
        if (assign_allows(s, l, i) && !assign_has(s, level, i) &&
            !(l->tried && assign_is_twin(s, l->card, i)))
            best = i;
    }
    if (best == UINT32_MAX)
        return false;
    l->tried = true;
    l->card = best;
    l->key = s->cards[best].mem;
    return true;
}

static void assign_take(struct assign *s, const struct assign_level *l, int sign)
{
    const struct demand *d = assign_demand(s, l);
    struct assign_card *c = &s->cards[l->card];
    if (d->kind == CONTAINER_INIT) {
        c->inits += (uint32_t)sign;
        return;
    }
    c->mem -= sign * assign_takes(s, d, l->card);
    c->cores -= (uint32_t)sign * assign_cores_of(s, d);
    c->takers += (uint32_t)sign;
    c->whole = sign > 0 && demand_is_whole(d);
    assert(c->mem >= 0);
}

/* The levels have containers with cards of their own in the order of the pod, in which init
 * containers come first, whatever their index. */
static bool assign_comes_before(const struct assign *s, const struct grant *a,
                                const struct grant *b)
{
    if (s->own)
        return a->container == b->container && a->card < b->card;
    return a->container < b->container;
}

/* Writes the grants in the order of containers and their cards, and checks the peak of each card,
 * the node's sum and the quota. */
static bool assign_ends(const struct assign *s, struct placement *ret)
{
    struct share shares[REQUEST_CARDS_MAX];
    const struct node *n = s->choice->node;
    const struct request *r = s->request;
    int64_t sum = 0;
    ret->n = s->n;
    for (uint32_t level = 0; level < s->n; level++) {
        const struct assign_level *l = &s->levels[level];
        const struct demand *d = assign_demand(s, l);
        const struct grant g = {.mem = assign_mem_of(s, d, l->card),
                                .card = s->ids[l->card],
                                .container = d->index,
                                .cores = (uint16_t)assign_cores_of(s, d)};
        uint32_t at = level;
        for (; at > 0 && assign_comes_before(s, &g, &ret->grants[at - 1]); at--)
            ret->grants[at] = ret->grants[at - 1];
        ret->grants[at] = g;
    }
    uint32_t cards = shares_of(r, ret->grants, ret->n, false, shares);
    for (uint32_t i = 0; i < cards; i++) {
        const struct card *c = &n->cards[shares[i].card];
        int64_t charge = share_charge(r, &shares[i], c->total);
        if (charge > card_free(c) || shares[i].cores > card_free_cores(c))
            return false;
        sum += charge;
    }
    return sum <= n->total - n->used &&
           quota_usage_is_allowed(n, s->choice->evaluation, shares, cards);
}

/* Takes back the card that is to be changed next. Cards of an init container make no difference to
 * what those behind it can have: they are changed for the sums alone. False: there is none. */
static bool assign_back(struct assign *s, uint32_t *level)
{
    bool ended = s->levels[*level].ended;
    bool skips = s->levels[*level].first && !ended;
    do {
        if (*level == 0)
            return false;
        struct assign_level *l = &s->levels[--*level];
        l->ended = l->ended || ended;
        assign_take(s, l, -1);
    } while (skips && assign_demand(s, &s->levels[*level])->kind == CONTAINER_INIT);
    return true;
}

static bool assign_run(struct assign *s, struct placement *ret)
{
    uint32_t level = 0;
    assert(s->n > 0);
    for (unsigned steps = 0; steps < ASSIGN_STEPS && s->looked <= s->most; steps++) {
        struct assign_level *l = &s->levels[level];
        if (!assign_next(s, level)) {
            if (!assign_back(s, &level))
                return false;
            continue;
        }
        assign_take(s, l, 1);
        if (level + 1 < s->n) {
            l[1].tried = l[1].ended = false;
            level++;
            continue;
        }
        s->looked += s->n;
        if (assign_ends(s, ret))
            return true;
        l->ended = true;
        assign_take(s, l, -1);
    }
    return false;
}

bool assign_place(const struct card_choice *p, const struct card_set *fits, struct placement *ret)
{
    struct assign s _uninitialized_;
    assert(p->costs == NULL);
    assign_init(&s, p, fits);
    bool found = assign_run(&s, ret);
    if (p->evaluation->step_budget != NULL)
        step_budget_looked(p->evaluation->step_budget, s.looked, !found && s.looked > s.most);
    return found;
}
