/* Sorts the feasible cards by policy and takes the first ones. */
#include "core/place/choose_cards.h"

#include "base/sort.h"
#include "core/limit.h"
#include "core/policy/learned_costs.h"
#include "core/state/quota_usage.h"
#include "core/state/swap.h"

struct order {
    uint32_t cards[LIMIT_CARDS];
    uint32_t n;
};

/* Whether card a comes before card b. */
static bool choose_cards_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct card_choice *p = ctx;
    if (p->costs != NULL)
        return p->costs[a] != p->costs[b] ? p->costs[a] < p->costs[b] : a < b;
    int64_t x = card_free(&p->node->cards[a]);
    int64_t y = card_free(&p->node->cards[b]);
    if (x == y)
        return a < b;
    return p->policy == POLICY_SPREAD ? x > y : x < y;
}

static void choose_cards_sort(const struct card_choice *p, struct order *ret)
{
    ret->n = 0;
    evaluation_count_steps(p->evaluation, 4 * (uint64_t)p->node->n_cards);
    assert(p->node->n_cards <= LIMIT_CARDS);
    for (uint32_t i = 0; i < p->node->n_cards; i++) {
        if (card_set_has(&p->fits, i))
            ret->cards[ret->n++] = i;
    }
    sort_by(ret->cards, ret->n, choose_cards_before, p);
}

/* The first card in order with a pod that the device plugin may confuse with this one; -1: none. */
static int64_t choose_cards_beside_equal(const struct card_choice *p)
{
    int64_t best = -1;
    if (request_cards(p->evaluation->request) != 1 || p->node->n_starting == 0)
        return -1;
    evaluation_count_steps(p->evaluation, p->node->n_pods);
    for (const struct pod *q = p->node->pods; q != NULL; q = q->next) {
        if (!pod_awaits(q) || !swap_is_like(q, p->evaluation->request) ||
            q->allocation->n_shares != 1 || !node_has_card(p->node, q->card) ||
            !card_set_has(&p->fits, (uint32_t)q->card))
            continue;
        if (best < 0 || choose_cards_before(p, (uint32_t)q->card, (uint32_t)best))
            best = q->card;
    }
    return best;
}

/* Positions in the order of cards, sorted by NUMA node, then by position. */
struct numa_order {
    int32_t numa[LIMIT_CARDS]; /* by place */
    uint32_t places[LIMIT_CARDS];
};

static bool choose_cards_numa_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct numa_order *o = ctx;
    return o->numa[a] != o->numa[b] ? o->numa[a] < o->numa[b] : a < b;
}

/* The free memory of the cards at these n places together, or their costs. */
static int64_t choose_cards_sum_of(const struct card_choice *p, const struct order *all,
                                   const uint32_t *places, uint32_t n)
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
static bool choose_cards_numa(const struct card_choice *p, const struct order *all, uint32_t wanted,
                              uint32_t ret[static REQUEST_CARDS_MAX])
{
    struct numa_order o _uninitialized_;
    const uint32_t *best = NULL;
    assert(wanted > 0 && wanted <= REQUEST_CARDS_MAX);
    int64_t most = 0;
    evaluation_count_steps(p->evaluation, 4 * (uint64_t)all->n);
    for (uint32_t i = 0; i < all->n; i++) {
        o.numa[i] = node_card_numa(p->node, all->cards[i]);
        o.places[i] = i;
    }
    sort_by(o.places, all->n, choose_cards_numa_before, &o);
    for (uint32_t i = 0, next = 0; i < all->n; i = next) {
        int32_t numa = o.numa[o.places[i]];
        for (next = i + 1; next < all->n && o.numa[o.places[next]] == numa;)
            next++;
        if (numa < 0 || next - i < wanted)
            continue;
        int64_t sum = choose_cards_sum_of(p, all, &o.places[i], wanted);
        bool better = p->policy == POLICY_SPREAD ? sum > most : sum < most;
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
static void choose_cards_grant_devices(const struct card_choice *p, struct placement *ret)
{
    const struct request *r = p->evaluation->request;
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
static void choose_cards_grant_parts(const struct card_choice *p, const uint32_t *cards, uint32_t n,
                                     struct placement *ret)
{
    const struct request *r = p->evaluation->request;
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
    for (uint32_t c = 0; c < n && r->dialect == DIALECT_OWN; c++)
        ret->grants[c].mem += share_charge(r, &share, p->node->cards[cards[c]].total) - share.mem;
    if (dialect_has_uuids(r->dialect))
        choose_cards_grant_devices(p, ret);
}

/* Grants a plain request in the form that placement_read reads back: without a list of devices, the
 * annotations say what lasts. */
static void choose_cards_grant_plain(const struct request *r, uint32_t card, struct placement *ret)
{
    ret->n = 1;
    ret->grants[0] = (struct grant){.mem = r->lasting_mem,
                                    .card = card,
                                    .cores = (uint16_t)r->lasting_cores,
                                    .container = UINT16_MAX};
}

static void choose_cards_sort_indices(uint32_t *cards, uint32_t n)
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
static void choose_cards_weigh(struct card_choice *p, int64_t costs[static LIMIT_CARDS])
{
    p->costs = NULL;
    if (!policy_has_costs(p->policy))
        return;
    evaluation_count_steps(p->evaluation, 8 * (uint64_t)p->node->n_cards);
    p->costs = learned_costs_order(p->evaluation, p->policy, p->node, costs) ? costs : NULL;
}

void choose_cards_together(const struct card_choice *p, struct placement *ret)
{
    int64_t costs[LIMIT_CARDS] _uninitialized_;
    struct card_choice with_costs = *p;
    const struct request *r = p->evaluation->request;
    uint32_t cards[REQUEST_CARDS_MAX] = {0};
    struct order order _uninitialized_;
    uint32_t wanted = request_cards(r);
    choose_cards_weigh(&with_costs, costs);
    p = &with_costs;
    int64_t beside = choose_cards_beside_equal(p);
    choose_cards_sort(p, &order);
    assert(order.n >= wanted);
    assert(wanted <= COUNT_OF(cards));
    if (beside >= 0)
        cards[0] = (uint32_t)beside;
    else if (wanted == 1 || !choose_cards_numa(p, &order, wanted, cards))
        memcpy(cards, order.cards, wanted * sizeof(cards[0]));
    choose_cards_sort_indices(cards, wanted);
    bool devices = dialect_has_uuids(r->dialect);
    if ((request_plain(r) && !devices) || r->n_demands == 0)
        choose_cards_grant_plain(r, cards[0], ret);
    else
        choose_cards_grant_parts(p, cards, wanted, ret);
}

bool choose_cards_smaller(struct card_choice *p)
{
    const struct node *n = p->node;
    const struct request *r = p->evaluation->request;
    int64_t largest = 0;
    int64_t smallest = INT64_MAX;
    uint32_t count = 0;
    if (request_fixed(r))
        return false;
    evaluation_count_steps(p->evaluation, 2 * (uint64_t)n->n_cards);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (!card_set_has(&p->fits, i))
            continue;
        largest = MAX_OF(largest, n->cards[i].total);
        smallest = MIN_OF(smallest, n->cards[i].total);
        count++;
    }
    assert(count >= request_cards(r));
    if (smallest >= largest || count <= request_cards(r))
        return false;
    for (uint32_t i = n->n_cards; i-- > 0 && count > request_cards(r);) {
        if (card_set_has(&p->fits, i) && n->cards[i].total == largest) {
            card_set_remove(&p->fits, i);
            count--;
        }
    }
    return true;
}
