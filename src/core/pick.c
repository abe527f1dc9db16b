#include "pick.h"

#include "uses.h"

/* Steps of the search for containers on different cards: eight containers on eight cards, tried
 * exhaustively but for symmetry, take fewer. */
#define APART_STEPS 20000

struct order {
    uint32_t cards[LIMIT_CARDS];
    uint32_t n;
};

/* Whether card a comes before b. */
static bool before(const struct pick *p, uint32_t a, uint32_t b)
{
    int64_t x = card_free(&p->node->cards[a]);
    int64_t y = card_free(&p->node->cards[b]);
    if (x == y)
        return a < b;
    return p->pack == PACK_SPREAD ? x > y : x < y;
}

/* Inserted one by one: nodes have eight cards, and seldom more than a hundred. */
static void sort_cards(const struct pick *p, struct order *ret)
{
    ret->n = 0;
    for (uint32_t i = 0; i < p->node->n_cards; i++) {
        if (!card_set_has(&p->fits, i))
            continue;
        uint32_t at = ret->n++;
        for (; at > 0 && before(p, i, ret->cards[at - 1]); at--)
            ret->cards[at] = ret->cards[at - 1];
        ret->cards[at] = i;
    }
}

/* The first card in order that an unassigned pod of the same size is on, or -1. */
static int64_t beside_equal(const struct pick *p)
{
    int64_t best = -1;
    if (!request_plain(p->request))
        return -1;
    for (const struct pod *q = p->node->pods; q != NULL; q = q->next) {
        if (!q->awaiting || q->mem != p->request->mem || !node_has_card(p->node, q->card) ||
            !card_set_has(&p->fits, (uint32_t)q->card))
            continue;
        if (best < 0 || before(p, (uint32_t)q->card, (uint32_t)best))
            best = q->card;
    }
    return best;
}

/* How many of the first cards in order that are of this NUMA node. */
static uint32_t take_numa(const struct pick *p, const struct order *all, int32_t numa,
                          uint32_t wanted, uint32_t *ret)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n && n < wanted; i++) {
        if (node_card_numa(p->node, all->cards[i]) == numa)
            ret[n++] = all->cards[i];
    }
    return n;
}

static int64_t free_of(const struct pick *p, const uint32_t *cards, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += card_free(&p->node->cards[cards[i]]);
    return sum;
}

/* The cards of one NUMA node, if one has enough; the best by the policy, if several have. */
static bool pick_numa(const struct pick *p, const struct order *all, uint32_t wanted,
                      uint32_t best[static REQUEST_CARDS_MAX])
{
    uint32_t some[REQUEST_CARDS_MAX];
    bool found = false;
    for (uint32_t i = 0; i < all->n; i++) {
        int32_t numa = node_card_numa(p->node, all->cards[i]);
        if (numa < 0 || take_numa(p, all, numa, wanted, some) < wanted)
            continue;
        int64_t x = free_of(p, some, wanted);
        int64_t y = found ? free_of(p, best, wanted) : 0;
        if (!found || (p->pack == PACK_SPREAD ? x > y : x < y))
            memcpy(best, some, wanted * sizeof(some[0]));
        found = true;
    }
    return found;
}

/*
 * An equal part of every container that lasts, or else of all, on each card: container by
 * container, as they are written down and read. What a whole card or a percentage is more than that
 * is the first one's.
 */
static void grant_parts(const struct pick *p, const uint32_t *cards, uint32_t n,
                        struct placement *ret)
{
    const struct request *r = p->request;
    bool some_last = request_lasting(r) > 0;
    struct share share = {.mem = 0};
    ret->n = 0;
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
    for (uint32_t c = 0; c < n; c++)
        ret->grants[c].mem += share_charge(r, &share, p->node->cards[cards[c]].total) - share.mem;
}

/* As the annotations of such a pod are read back. */
static void grant_plain(const struct request *r, uint32_t card, struct placement *ret)
{
    ret->n = 1;
    ret->grants[0] = (struct grant){.mem = r->lasting_mem,
                                    .card = card,
                                    .cores = (uint16_t)r->lasting_cores,
                                    .container = UINT16_MAX};
}

static void sort_indices(uint32_t *cards, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t card = cards[i];
        uint32_t at = i;
        for (; at > 0 && cards[at - 1] > card; at--)
            cards[at] = cards[at - 1];
        cards[at] = card;
    }
}

void pick_together(const struct pick *p, struct placement *ret)
{
    uint32_t cards[REQUEST_CARDS_MAX] = {0};
    struct order order _uninitialized_;
    uint32_t wanted = request_cards(p->request);
    int64_t beside = beside_equal(p);
    sort_cards(p, &order);
    assert(order.n >= wanted);
    if (beside >= 0)
        cards[0] = (uint32_t)beside;
    else if (wanted == 1 || !pick_numa(p, &order, wanted, cards))
        memcpy(cards, order.cards, wanted * sizeof(cards[0]));
    sort_indices(cards, wanted);
    if (request_plain(p->request) || p->request->n_demands == 0)
        grant_plain(p->request, cards[0], ret);
    else
        grant_parts(p, cards, wanted, ret);
}

/* A container for each level, the largest first, and the card in `order` that it has. */
struct search {
    const struct pick *pick;
    struct order order;
    uint32_t demands[REQUEST_DEMANDS_MAX];
    uint32_t n;
    uint32_t at[REQUEST_DEMANDS_MAX];
    int64_t mem[LIMIT_CARDS]; /* left, by place in order */
    uint32_t cores[LIMIT_CARDS];
    uint8_t takers[LIMIT_CARDS]; /* containers that the search has put there */
};

static void search_init(struct search *s, const struct pick *p)
{
    const struct request *r = p->request;
    s->pick = p;
    s->n = 0;
    sort_cards(p, &s->order);
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

static const struct demand *search_demand(const struct search *s, uint32_t level)
{
    assert(level < s->n);
    return &s->pick->request->demands[s->demands[level]];
}

/* To a quota, cards of two models are two things. */
static bool same_kind(const struct search *s, uint32_t x, uint32_t y)
{
    const struct node *n = s->pick->node;
    return s->pick->request->account.entry == NULL ||
           str_eq(node_card_model(n, s->order.cards[x]), node_card_model(n, s->order.cards[y]));
}

/*
 * Whether the place has room, and is not the like of one that was tried before it. With init
 * containers as much room is not enough for that: before the others start, they have more of it.
 */
static bool search_allows(const struct search *s, const struct demand *d, uint32_t place)
{
    if (s->mem[place] < d->mem || s->cores[place] < d->cores)
        return false;
    if (place == 0 || s->mem[place] != s->mem[place - 1] ||
        s->cores[place] != s->cores[place - 1] || !same_kind(s, place, place - 1))
        return true;
    return s->n < s->pick->request->n_demands && (s->takers[place] > 0 || s->takers[place - 1] > 0);
}

static void search_take(struct search *s, uint32_t level, int sign)
{
    const struct demand *d = search_demand(s, level);
    s->mem[s->at[level]] -= sign * d->mem;
    s->cores[s->at[level]] -= (uint32_t)sign * d->cores;
    s->takers[s->at[level]] = (uint8_t)(s->takers[s->at[level]] + sign);
}

/* All containers have a place; the init containers fit where they run, and in the node's sum; and
 * no quota forbids it. */
static bool search_ends(const struct search *s, struct placement *ret)
{
    struct share shares[REQUEST_DEMANDS_MAX];
    const struct node *n = s->pick->node;
    ret->n = s->n;
    for (uint32_t level = 0; level < s->n; level++) {
        const struct demand *d = search_demand(s, level);
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

bool pick_apart(const struct pick *p, struct placement *ret)
{
    struct search s _uninitialized_;
    uint32_t level = 0;
    uint32_t place = 0;
    search_init(&s, p);
    for (unsigned steps = 0; steps < APART_STEPS; steps++) {
        while (place < s.order.n && !search_allows(&s, search_demand(&s, level), place))
            place++;
        if (place < s.order.n) {
            s.at[level] = place;
            search_take(&s, level, 1);
            if (level + 1 < s.n) {
                level++;
                place = 0;
                continue;
            }
            if (search_ends(&s, ret))
                return true;
        } else if (level == 0) {
            return false;
        } else {
            level--;
        }
        search_take(&s, level, -1);
        place = s.at[level] + 1;
    }
    return false;
}
