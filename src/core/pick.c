/* Sorts the feasible cards by policy and takes the first ones; containers on different cards are
 * placed by a bounded depth-first search. */
#include "core/pick.h"

#include "base/sort.h"
#include "core/limit.h"
#include "core/policies.h"
#include "core/swap.h"
#include "core/uses.h"

/* Steps of the search for containers on different cards. An exhaustive search for eight containers
 * on eight cards, without symmetric solutions, takes fewer. */
#define APART_STEPS 20000

struct order {
    uint32_t cards[LIMIT_CARDS];
    uint32_t n;
};

/* Whether card a comes before card b. */
static bool pick_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct pick *p = ctx;
    if (p->costs != NULL)
        return p->costs[a] != p->costs[b] ? p->costs[a] < p->costs[b] : a < b;
    int64_t x = card_free(&p->node->cards[a]);
    int64_t y = card_free(&p->node->cards[b]);
    if (x == y)
        return a < b;
    return p->pack == PACK_SPREAD ? x > y : x < y;
}

static void pick_sort_cards(const struct pick *p, struct order *ret)
{
    ret->n = 0;
    request_work(p->request, 4 * (uint64_t)p->node->n_cards);
    assert(p->node->n_cards <= LIMIT_CARDS);
    for (uint32_t i = 0; i < p->node->n_cards; i++) {
        if (card_set_has(&p->fits, i))
            ret->cards[ret->n++] = i;
    }
    sort_by(ret->cards, ret->n, pick_before, p);
}

/* The first card in order with a pod that the device plugin may confuse with this one; -1: none. */
static int64_t pick_beside_equal(const struct pick *p)
{
    int64_t best = -1;
    if (request_cards(p->request) != 1 || p->node->n_starting == 0)
        return -1;
    request_work(p->request, p->node->n_pods);
    for (const struct pod *q = p->node->pods; q != NULL; q = q->next) {
        if (!pod_awaits(q) || !swap_is_like(q, p->request) || q->holding->n_shares != 1 ||
            !node_has_card(p->node, q->card) || !card_set_has(&p->fits, (uint32_t)q->card))
            continue;
        if (best < 0 || pick_before(p, (uint32_t)q->card, (uint32_t)best))
            best = q->card;
    }
    return best;
}

/* Positions in the order of cards, sorted by NUMA node, then by position. */
struct numa_order {
    int32_t numa[LIMIT_CARDS]; /* by place */
    uint32_t places[LIMIT_CARDS];
};

static bool pick_numa_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct numa_order *o = ctx;
    return o->numa[a] != o->numa[b] ? o->numa[a] < o->numa[b] : a < b;
}

/* The free memory of the cards at these n places together, or their costs. */
static int64_t pick_sum_of(const struct pick *p, const struct order *all, const uint32_t *places,
                           uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t card = all->cards[places[i]];
        int64_t its = p->costs == NULL ? card_free(&p->node->cards[card]) : p->costs[card];
        if (__builtin_add_overflow(sum, its, &sum))
            return INT64_MAX;
    }
    return sum;
}

/* Takes the first cards in order of one NUMA node that has enough of them. Among several such NUMA
 * nodes the best by the policy; among equals the one that comes first in the order. */
static bool pick_numa(const struct pick *p, const struct order *all, uint32_t wanted,
                      uint32_t ret[static REQUEST_CARDS_MAX])
{
    struct numa_order o _uninitialized_;
    const uint32_t *best = NULL;
    assert(wanted > 0 && wanted <= REQUEST_CARDS_MAX);
    int64_t most = 0;
    request_work(p->request, 4 * (uint64_t)all->n);
    for (uint32_t i = 0; i < all->n; i++) {
        o.numa[i] = node_card_numa(p->node, all->cards[i]);
        o.places[i] = i;
    }
    sort_by(o.places, all->n, pick_numa_before, &o);
    for (uint32_t i = 0, next = 0; i < all->n; i = next) {
        int32_t numa = o.numa[o.places[i]];
        for (next = i + 1; next < all->n && o.numa[o.places[next]] == numa;)
            next++;
        if (numa < 0 || next - i < wanted)
            continue;
        int64_t sum = pick_sum_of(p, all, &o.places[i], wanted);
        bool better = p->pack == PACK_SPREAD ? sum > most : sum < most;
        if (best == NULL || better || (sum == most && o.places[i] < best[0])) {
            best = &o.places[i];
            most = sum;
        }
    }
    for (uint32_t i = 0; best != NULL && i < wanted; i++)
        ret[i] = all->cards[best[i]];
    return best != NULL;
}

/* The grants in the form that vgpu_read reads back. A whole card's is what the pod asks for: the
 * plugin lets it use no more. */
static void pick_grant_devices(const struct pick *p, struct placement *ret)
{
    const struct request *r = p->request;
    for (uint32_t i = 0; i < ret->n; i++) {
        struct grant *g = &ret->grants[i];
        g->container = UINT16_MAX;
        if (r->percent > 0)
            g->mem = MAX_OF(g->mem, request_part_of(r, p->node->cards[g->card].total));
    }
}

/* Gives each card an equal part of every lasting container; without lasting containers, of every
 * container. The grants are ordered by container, as the annotation is written and read. For a
 * whole card or a percentage the first container gets what exceeds the sum of the parts. */
static void pick_grant_parts(const struct pick *p, const uint32_t *cards, uint32_t n,
                             struct placement *ret)
{
    const struct request *r = p->request;
    bool some_last = request_lasting(r) > 0;
    struct share share = {.mem = 0};
    ret->n = 0;
    assert(n > 0 && n <= REQUEST_CARDS_MAX);
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        if (d->kind == CONTAINER_INIT && some_last)
            continue;
        assert(ret->n + n <= REQUEST_GRANTS_MAX);
        for (uint32_t c = 0; c < n; c++)
            ret->grants[ret->n++] = (struct grant){.mem = d->mem / n,
                                                   .card = cards[c],
                                                   .container = d->index,
                                                   .cores = (uint16_t)(d->cores / n)};
        share.mem += d->mem / n;
    }
    assert(ret->n >= n);
    /* The annotations of other dialects do not say how much. */
    for (uint32_t c = 0; c < n && r->dialect == DIALECT_GPUSHARE; c++)
        ret->grants[c].mem += share_charge(r, &share, p->node->cards[cards[c]].total) - share.mem;
    if (dialect_has_uuids(r->dialect))
        pick_grant_devices(p, ret);
}

/* Grants a plain request in the form that placement_read reads back: without a list of devices, the
 * annotations say what lasts. */
static void pick_grant_plain(const struct request *r, uint32_t card, struct placement *ret)
{
    ret->n = 1;
    ret->grants[0] = (struct grant){.mem = r->lasting_mem,
                                    .card = card,
                                    .cores = (uint16_t)r->lasting_cores,
                                    .container = UINT16_MAX};
}

static void pick_sort_indices(uint32_t *cards, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t card = cards[i];
        uint32_t at = i;
        for (; at > 0 && cards[at - 1] > card; at--)
            cards[at] = cards[at - 1];
        cards[at] = card;
    }
}

/* With a policy that has costs: computes them, for one search. */
static void pick_weigh(struct pick *p, int64_t costs[static LIMIT_CARDS])
{
    p->costs = NULL;
    if (!pack_has_costs(p->pack))
        return;
    request_work(p->request, 8 * (uint64_t)p->node->n_cards);
    p->costs = policies_order(p->request, p->pack, p->node, costs) ? costs : NULL;
}

void pick_together(const struct pick *p, struct placement *ret)
{
    int64_t costs[LIMIT_CARDS] _uninitialized_;
    struct pick with_costs = *p;
    uint32_t cards[REQUEST_CARDS_MAX] = {0};
    struct order order _uninitialized_;
    uint32_t wanted = request_cards(p->request);
    pick_weigh(&with_costs, costs);
    p = &with_costs;
    int64_t beside = pick_beside_equal(p);
    pick_sort_cards(p, &order);
    assert(order.n >= wanted);
    assert(wanted <= COUNT_OF(cards));
    if (beside >= 0)
        cards[0] = (uint32_t)beside;
    else if (wanted == 1 || !pick_numa(p, &order, wanted, cards))
        memcpy(cards, order.cards, wanted * sizeof(cards[0]));
    pick_sort_indices(cards, wanted);
    bool devices = dialect_has_uuids(p->request->dialect);
    if ((request_plain(p->request) && !devices) || p->request->n_demands == 0)
        pick_grant_plain(p->request, cards[0], ret);
    else
        pick_grant_parts(p, cards, wanted, ret);
}

bool pick_smaller(struct pick *p)
{
    const struct node *n = p->node;
    int64_t largest = 0;
    int64_t smallest = INT64_MAX;
    uint32_t count = 0;
    if (request_fixed(p->request))
        return false;
    request_work(p->request, 2 * (uint64_t)n->n_cards);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (!card_set_has(&p->fits, i))
            continue;
        largest = MAX_OF(largest, n->cards[i].total);
        smallest = MIN_OF(smallest, n->cards[i].total);
        count++;
    }
    assert(count >= request_cards(p->request));
    if (smallest >= largest || count <= request_cards(p->request))
        return false;
    for (uint32_t i = n->n_cards; i-- > 0 && count > request_cards(p->request);) {
        if (card_set_has(&p->fits, i) && n->cards[i].total == largest) {
            card_set_remove(&p->fits, i);
            count--;
        }
    }
    return true;
}

/* The search: level i places container demands[i], the largest first, at the place at[i] of
 * `order`. */
struct search {
    const struct pick *pick;
    struct order order;
    uint32_t demands[REQUEST_DEMANDS_MAX];
    uint32_t n;
    uint32_t at[REQUEST_DEMANDS_MAX];
    int64_t mem[LIMIT_CARDS]; /* free memory, by place in `order` */
    uint32_t cores[LIMIT_CARDS];
    uint8_t takers[LIMIT_CARDS]; /* containers that the search has placed there */
    uint64_t looked;             /* steps so far */
    uint64_t most;               /* steps that it may take */
};

static void pick_search_init(struct search *s, const struct pick *p)
{
    const struct request *r = p->request;
    assert(r->n_demands <= REQUEST_DEMANDS_MAX);
    s->pick = p;
    s->n = 0;
    s->looked = 0;
    pick_sort_cards(p, &s->order);
    for (uint32_t i = 0; i < s->order.n; i++) {
        s->mem[i] = card_free(&p->node->cards[s->order.cards[i]]);
        s->cores[i] = card_free_cores(&p->node->cards[s->order.cards[i]]);
        s->takers[i] = 0;
    }
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].kind == CONTAINER_INIT)
            continue;
        uint32_t at = s->n++;
        for (; at > 0 && r->demands[s->demands[at - 1]].mem < r->demands[i].mem; at--)
            s->demands[at] = s->demands[at - 1];
        s->demands[at] = i;
    }
}

static const struct demand *pick_search_demand(const struct search *s, uint32_t level)
{
    assert(level < s->n);
    return &s->pick->request->demands[s->demands[level]];
}

/* For a quota, cards of two models differ. So does a card that a container of the pod has already:
 * the pod uses no more cards if another container gets it, too. */
static bool pick_same_kind(const struct search *s, uint32_t x, uint32_t y)
{
    const struct node *n = s->pick->node;
    if (s->pick->request->account.entry == NULL)
        return true;
    return (s->takers[x] > 0) == (s->takers[y] > 0) &&
           str_eq(node_card_model(n, s->order.cards[x]), node_card_model(n, s->order.cards[y]));
}

/* Whether the place has room and is not equivalent to the place before it, which was tried already.
 * With init containers, equal room does not make two used places equivalent: an init container may
 * use the part of containers that start later. */
static bool pick_search_allows(const struct search *s, const struct demand *d, uint32_t place)
{
    if (s->mem[place] < d->mem || s->cores[place] < d->cores)
        return false;
    if (place == 0 || s->mem[place] != s->mem[place - 1] ||
        s->cores[place] != s->cores[place - 1] || !pick_same_kind(s, place, place - 1))
        return true;
    return s->n < s->pick->request->n_demands && (s->takers[place] > 0 || s->takers[place - 1] > 0);
}

static void pick_search_take(struct search *s, uint32_t level, int sign)
{
    const struct demand *d = pick_search_demand(s, level);
    assert(s->at[level] < s->order.n && (sign > 0 || s->takers[s->at[level]] > 0));
    s->mem[s->at[level]] -= sign * d->mem;
    s->cores[s->at[level]] -= (uint32_t)sign * d->cores;
    s->takers[s->at[level]] = (uint8_t)(s->takers[s->at[level]] + sign);
    assert(s->mem[s->at[level]] >= 0);
}

/* All containers have a place. Checks the init containers' peak on each card, the node's sum and
 * the quota. */
static bool pick_search_ends(const struct search *s, struct placement *ret)
{
    struct share shares[REQUEST_DEMANDS_MAX];
    const struct node *n = s->pick->node;
    ret->n = s->n;
    for (uint32_t level = 0; level < s->n; level++) {
        const struct demand *d = pick_search_demand(s, level);
        uint32_t at = level;
        for (; at > 0 && ret->grants[at - 1].container > d->index; at--)
            ret->grants[at] = ret->grants[at - 1];
        ret->grants[at] = (struct grant){.mem = d->mem,
                                         .card = s->order.cards[s->at[level]],
                                         .container = d->index,
                                         .cores = d->cores};
    }
    uint32_t cards = shares_of(s->pick->request, ret->grants, ret->n, false, shares);
    int64_t sum = 0;
    for (uint32_t i = 0; i < cards; i++) {
        const struct card *c = &n->cards[shares[i].card];
        if (shares[i].mem > card_free(c) || shares[i].cores > card_free_cores(c))
            return false;
        sum += shares[i].mem;
    }
    return sum <= n->total - n->used && uses_allow(n, s->pick->request, shares, cards);
}

/* At least enough steps for one pass without backtracking. */
static uint64_t pick_looks_for(const struct search *s)
{
    const struct work *w = s->pick->request->work;
    return w == NULL ? UINT64_MAX : work_looks(w, (uint64_t)s->n * (s->order.n + 1));
}

static bool pick_search_run(struct search *s, struct placement *ret)
{
    uint32_t level = 0;
    uint32_t place = 0;
    s->most = pick_looks_for(s);
    for (unsigned steps = 0; steps < APART_STEPS && s->looked <= s->most; steps++) {
        uint32_t from = place;
        while (place < s->order.n && !pick_search_allows(s, pick_search_demand(s, level), place))
            place++;
        s->looked += 1 + place - from;
        if (place < s->order.n) {
            s->at[level] = place;
            pick_search_take(s, level, 1);
            if (level + 1 < s->n) {
                level++;
                place = 0;
                continue;
            }
            s->looked += s->n;
            if (pick_search_ends(s, ret))
                return true;
        } else if (level == 0) {
            return false;
        } else {
            level--;
        }
        pick_search_take(s, level, -1);
        place = s->at[level] + 1;
    }
    return false;
}

/* A policy with costs counts as binpack here: no card has room for the whole pod, so none has a
 * cost. */
bool pick_apart(const struct pick *p, struct placement *ret)
{
    struct search s _uninitialized_;
    assert(p->costs == NULL);
    pick_search_init(&s, p);
    assert(s.n > 1);
    bool found = pick_search_run(&s, ret);
    if (p->request->work != NULL)
        work_looked(p->request->work, s.looked, !found && s.looked > s.most);
    return found;
}
