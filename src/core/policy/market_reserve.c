/*
 * Keeps pods away from nodes that few others can stand in for. A shape of several cards may fit on
 * a few nodes only, because of its model or because only they have so many cores. While other nodes
 * have room, the prices do not see that these few are used up by pods that could be anywhere.
 */
#include "market_solve.h"
#include "market_stock.h"

/* A shape that fits on at most one of so many nodes keeps them. */
#define RARE_PART 10

/* The cost is highest if at least one of so many cards is wholly free. */
#define FREE_PART 10

#define COST_MOST 0.3 /* cards */

/* Kinds of empty nodes that are looked at. With more of them nothing is kept: a solve is
 * published in one step, which has to be short. */
#define KINDS_MAX 64

struct empty_nodes {
    const struct solve_stock *kinds[KINDS_MAX];
    uint32_t n_kinds;
    uint64_t nodes;
    double free; /* wholly free cards, now */
};

static void market_reserve_count(const struct market_solve *s, struct empty_nodes *ret)
{
    *ret = (struct empty_nodes){.n_kinds = 0};
    for (uint32_t i = 0; i < s->n_stocks; i++) {
        const struct solve_stock *x = &s->stocks[i];
        for (uint32_t k = 0; k < x->n; k++) {
            const struct solve_item *it = &s->items[x->first + k];
            ret->free += it->left == FULL ? (double)x->now * it->count : 0;
        }
        if (x->empty > 0 && ret->n_kinds < KINDS_MAX)
            ret->kinds[ret->n_kinds] = x;
        ret->n_kinds += x->empty > 0 ? 1 : 0;
        ret->nodes += x->empty;
    }
}

static bool market_reserve_holds(const struct market_solve *s, const struct solve_stock *empty,
                                 uint32_t shape)
{
    const struct solve_shape *x = &s->shapes[shape];
    for (uint32_t k = 0; k < empty->n && empty->cores >= x->cores; k++) {
        const struct solve_item *it = &s->items[empty->first + k];
        if (it->count >= x->cards && s->classes[it->class].steps[shape] > 0)
            return true;
    }
    return false;
}

static bool market_reserve_is_rare(const struct market_solve *s, const struct empty_nodes *empty,
                                   uint32_t shape)
{
    uint64_t nodes = 0;
    for (uint32_t k = 0; k < empty->n_kinds; k++)
        nodes += market_reserve_holds(s, empty->kinds[k], shape) ? empty->kinds[k]->empty : 0;
    return nodes > 0 && nodes * RARE_PART <= empty->nodes;
}

/* Of several rare shapes that need the same kind of cards, the one that more nodes can hold. */
static void market_reserve_keep(const struct market_solve *s, uint32_t shape, struct market *m)
{
    const struct solve_shape *x = &s->shapes[shape];
    int64_t cpu = (int64_t)(x->cores * 1000);
    for (uint32_t kind = 0; kind < s->n_kinds; kind++) {
        struct market_reserved *r = &m->reserved[kind];
        if (s->classes[s->class_of[kind]].steps[shape] > 0 &&
            (r->cards == 0 || x->cards < r->cards || (x->cards == r->cards && cpu < r->cpu)))
            *r = (struct market_reserved){.cards = x->cards, .cpu = cpu};
    }
}

void market_solve_reserve(const struct market_solve *s, struct market *m)
{
    struct empty_nodes empty;
    memset(m->reserved, 0, sizeof(m->reserved));
    m->reserve = 0;
    if (s->n_cards == 0 || m->turnover <= 0)
        return;
    market_reserve_count(s, &empty);
    for (uint32_t j = 0; empty.n_kinds <= KINDS_MAX && j < s->n_shapes; j++) {
        if (s->shapes[j].cards > 1 && market_reserve_is_rare(s, &empty, j))
            market_reserve_keep(s, j, m);
    }
    double share = MIN_OF(1.0, FREE_PART * empty.free / (double)s->n_cards);
    m->reserve = market_solve_millionths(COST_MOST * share * m->turnover);
}
