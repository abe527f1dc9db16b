/*
 * Cards for containers that have their own: a bounded depth-first search. Each level gives one card
 * to one container: its first card, its second, and so on, then those of the next container. The
 * containers come in the order of the pod, so that the first result is what HAMi's scheduler finds
 * by itself; where that fails, the search goes back.
 */
#include "core/each.h"

#include "core/uses.h"

/* As for pick_apart. */
#define EACH_STEPS 20000

/* A card, as the search has left it. Init containers take nothing from those after them: they have
 * ended by then. Each has beside it what the demands before it leave, which are the sidecars that
 * run then. */
struct each_card {
    int64_t mem;     /* free */
    uint32_t cores;  /* free */
    uint32_t takers; /* lasting containers that the search has placed there */
    uint32_t inits;  /* init containers that it has placed there */
    bool whole;      /* a lasting one wants it whole */
};

struct each_level {
    uint32_t demand;
    bool first;    /* the container's first card */
    bool tried;    /* `card` is the last one that was tried */
    bool ended;    /* the search has found cards for all behind it, but not within the sums */
    uint32_t card; /* its place in `cards` */
    int64_t key;   /* its free memory when it was chosen */
};

struct each {
    const struct pick *pick;
    const struct card_set *fits;
    uint32_t ids[LIMIT_CARDS]; /* cards that a container could have */
    struct each_card cards[LIMIT_CARDS];
    uint32_t n_cards;
    struct each_level levels[REQUEST_CARDS_MAX];
    uint32_t n;
    uint64_t looked; /* steps so far */
    uint64_t most;   /* steps that it may take */
};

static const struct demand *each_demand(const struct each *e, const struct each_level *l)
{
    return &e->pick->request->demands[l->demand];
}

static const struct card *each_card_of(const struct each *e, uint32_t at)
{
    return &e->pick->node->cards[e->ids[at]];
}

static bool each_is_wanted(const struct each *e, uint32_t card)
{
    for (uint32_t i = 0; i < e->pick->request->n_demands; i++) {
        if (card_set_has(&e->fits[i], card))
            return true;
    }
    return false;
}

static void each_init(struct each *e, const struct pick *p, const struct card_set *fits)
{
    const struct request *r = p->request;
    e->pick = p;
    e->fits = fits;
    e->n_cards = 0;
    e->n = 0;
    e->looked = 0;
    request_work(r, (uint64_t)p->node->n_cards * r->n_demands);
    for (uint32_t i = 0; i < p->node->n_cards; i++) {
        const struct card *c = &p->node->cards[i];
        if (!each_is_wanted(e, i))
            continue;
        e->cards[e->n_cards] = (struct each_card){.mem = card_free(c), .cores = card_free_cores(c)};
        e->ids[e->n_cards++] = i;
    }
    for (uint32_t i = 0; i < r->n_demands; i++) {
        for (uint32_t k = 0; k < r->demands[i].cards; k++) {
            assert(e->n < COUNT_OF(e->levels));
            e->levels[e->n++] = (struct each_level){.demand = i, .first = k == 0};
        }
    }
    e->most =
        r->work == NULL ? UINT64_MAX : work_looks(r->work, (uint64_t)e->n * (2 * e->n_cards + 1));
}

/* What the container takes of the card; a whole card is taken with all of its memory. */
static int64_t each_takes(const struct each *e, const struct demand *d, uint32_t at)
{
    int64_t total = each_card_of(e, at)->total;
    int64_t mem = demand_part_of(e->pick->request, d, total);
    return demand_is_whole(d) ? MAX_OF(total, mem) : mem;
}

static bool each_allows(const struct each *e, const struct each_level *l, uint32_t at)
{
    const struct demand *d = each_demand(e, l);
    const struct each_card *c = &e->cards[at];
    const struct card *now = each_card_of(e, at);
    uint32_t max_pods = node_card_max_pods(e->pick->node, e->ids[at]);
    if (c->whole || !card_set_has(&e->fits[l->demand], e->ids[at]))
        return false;
    if (demand_is_whole(d) && (c->takers > 0 || now->pods > 0))
        return false;
    if (max_pods > 0 && card_takers(now) + c->takers >= max_pods)
        return false;
    return each_takes(e, d, at) <= c->mem &&
           !request_lacks_cores(e->pick->request, d->cores / d->cards, c->cores);
}

/* Whether the container has the card already. */
static bool each_has(const struct each *e, uint32_t level, uint32_t at)
{
    for (uint32_t i = level; !e->levels[i].first; i--) {
        if (e->levels[i - 1].card == at)
            return true;
    }
    return false;
}

/* Whether the card with this free memory comes before the other one. */
static bool each_before(const struct each *e, int64_t a_mem, uint32_t a, int64_t b_mem, uint32_t b)
{
    if (a_mem == b_mem)
        return a < b;
    return e->pick->pack == PACK_SPREAD ? a_mem > b_mem : a_mem < b_mem;
}

/* Whether both cards are equal for all that the search decides, so that trying the second one finds
 * nothing new. For a quota, cards differ by model and by whether the pod has them already. */
static bool each_is_twin(const struct each *e, uint32_t a, uint32_t b)
{
    const struct node *n = e->pick->node;
    const struct each_card *x = &e->cards[a];
    const struct each_card *y = &e->cards[b];
    const struct card *c = each_card_of(e, a);
    const struct card *d = each_card_of(e, b);
    if (x->takers + x->inits > 0 || y->takers + y->inits > 0 || x->mem != y->mem ||
        x->cores != y->cores || c->total != d->total || card_takers(c) != card_takers(d) ||
        node_card_max_pods(n, e->ids[a]) != node_card_max_pods(n, e->ids[b]) ||
        !str_eq(node_card_model(n, e->ids[a]), node_card_model(n, e->ids[b])))
        return false;
    for (uint32_t i = 0; i < e->pick->request->n_demands; i++) {
        if (card_set_has(&e->fits[i], e->ids[a]) != card_set_has(&e->fits[i], e->ids[b]))
            return false;
    }
    return true;
}

/* The card to try next: the first in the policy's order behind the one that was tried before, and
 * behind the container's card before it, which keeps out other orders of the same cards. */
static bool each_next(struct each *e, uint32_t level)
{
    struct each_level *l = &e->levels[level];
    const struct each_level *after = l->tried ? l : l->first ? NULL : l - 1;
    uint32_t best = UINT32_MAX;
    e->looked += 1 + e->n_cards;
    for (uint32_t i = 0; i < e->n_cards; i++) {
        int64_t mem = e->cards[i].mem;
        if (after != NULL && !each_before(e, after->key, after->card, mem, i))
            continue;
        if (best != UINT32_MAX && !each_before(e, mem, i, e->cards[best].mem, best))
            continue;
        if (each_allows(e, l, i) && !each_has(e, level, i) &&
            !(l->tried && each_is_twin(e, l->card, i)))
            best = i;
    }
    if (best == UINT32_MAX)
        return false;
    l->tried = true;
    l->card = best;
    l->key = e->cards[best].mem;
    return true;
}

static void each_take(struct each *e, const struct each_level *l, int sign)
{
    const struct demand *d = each_demand(e, l);
    struct each_card *c = &e->cards[l->card];
    if (d->kind == CONTAINER_INIT) {
        c->inits += (uint32_t)sign;
        return;
    }
    c->mem -= sign * each_takes(e, d, l->card);
    c->cores -= (uint32_t)sign * (d->cores / d->cards);
    c->takers += (uint32_t)sign;
    c->whole = sign > 0 && demand_is_whole(d);
    assert(c->mem >= 0);
}

/* Writes the grants, each container's in the order of cards, and checks the node's sum and the
 * quota. */
static bool each_ends(const struct each *e, struct placement *ret)
{
    struct share shares[REQUEST_CARDS_MAX];
    const struct node *n = e->pick->node;
    const struct request *r = e->pick->request;
    int64_t sum = 0;
    ret->n = e->n;
    for (uint32_t level = 0; level < e->n; level++) {
        const struct each_level *l = &e->levels[level];
        const struct demand *d = each_demand(e, l);
        const struct grant g = {.mem = demand_part_of(r, d, each_card_of(e, l->card)->total),
                                .card = e->ids[l->card],
                                .container = d->index,
                                .cores = (uint16_t)(d->cores / d->cards)};
        uint32_t at = level;
        for (; at > 0 && ret->grants[at - 1].container == g.container &&
               ret->grants[at - 1].card > g.card;
             at--)
            ret->grants[at] = ret->grants[at - 1];
        ret->grants[at] = g;
    }
    uint32_t cards = shares_of(r, ret->grants, ret->n, false, shares);
    for (uint32_t i = 0; i < cards; i++)
        sum += share_charge(r, &shares[i], n->cards[shares[i].card].total);
    return sum <= n->total - n->used && uses_allow(n, r, shares, cards);
}

/* Takes back the card that is to be changed next. Cards of an init container make no difference to
 * what those behind it can have: they are changed for the sums alone. False: there is none. */
static bool each_back(struct each *e, uint32_t *level)
{
    bool ended = e->levels[*level].ended;
    bool skips = e->levels[*level].first && !ended;
    do {
        if (*level == 0)
            return false;
        struct each_level *l = &e->levels[--*level];
        l->ended = l->ended || ended;
        each_take(e, l, -1);
    } while (skips && each_demand(e, &e->levels[*level])->kind == CONTAINER_INIT);
    return true;
}

static bool each_run(struct each *e, struct placement *ret)
{
    uint32_t level = 0;
    assert(e->n > 0);
    for (unsigned steps = 0; steps < EACH_STEPS && e->looked <= e->most; steps++) {
        struct each_level *l = &e->levels[level];
        if (!each_next(e, level)) {
            if (!each_back(e, &level))
                return false;
            continue;
        }
        each_take(e, l, 1);
        if (level + 1 < e->n) {
            l[1].tried = l[1].ended = false;
            level++;
            continue;
        }
        e->looked += e->n;
        if (each_ends(e, ret))
            return true;
        l->ended = true;
        each_take(e, l, -1);
    }
    return false;
}

bool each_place(const struct pick *p, const struct card_set *fits, struct placement *ret)
{
    struct each e _uninitialized_;
    each_init(&e, p, fits);
    bool found = each_run(&e, ret);
    if (p->request->work != NULL)
        work_looked(p->request->work, e.looked, !found && e.looked > e.most);
    return found;
}
