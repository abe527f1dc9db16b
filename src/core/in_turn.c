/* Predicts the choice of a device plugin. */
#include "core/in_turn.h"

#include "core/draft.h"
#include "core/limit.h"

static bool in_turn_is_ordered(const struct request *r)
{
    return dialect_facts(r->dialect)->match == DIALECT_MATCH_ORDER;
}

bool in_turn_applies(const struct request *r)
{
    return in_turn_is_ordered(r) && request_fixed(r);
}

bool in_turn_place(const struct node *n, const struct request *r, struct placement *ret)
{
    int64_t mem[LIMIT_CARDS] _uninitialized_;
    uint32_t cores[LIMIT_CARDS] _uninitialized_;
    ret->n = 0;
    request_work(r, (uint64_t)n->n_cards * r->n_demands);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        mem[i] = MAX_OF(c->total - c->used, (int64_t)0);
        cores[i] = c->wholes > 0 || c->absent ? 0 : card_free_cores(c);
    }
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        uint32_t best = LIMIT_CARDS;
        for (uint32_t card = 0; card < n->n_cards; card++) {
            if (mem[card] < d->mem || cores[card] < d->cores)
                continue;
            if (best == LIMIT_CARDS || cores[card] < cores[best] ||
                (cores[card] == cores[best] && mem[card] < mem[best]))
                best = card;
        }
        if (best == LIMIT_CARDS)
            return false;
        mem[best] -= d->mem;
        cores[best] -= d->cores;
        ret->grants[ret->n++] =
            (struct grant){.mem = d->mem, .card = best, .container = d->index, .cores = d->cores};
    }
    return true;
}

static bool in_turn_is_same(const struct node *n, const struct request *r,
                            const struct placement *there)
{
    struct placement chosen _uninitialized_;
    if (!in_turn_place(n, r, &chosen) || chosen.n != there->n)
        return false;
    for (uint32_t i = 0; i < chosen.n; i++) {
        if (chosen.grants[i].card != there->grants[i].card)
            return false;
    }
    return true;
}

bool in_turn_chooses(const struct node *n, const struct request *r, const struct placement *there)
{
    struct draft d _uninitialized_;
    /* A pod without a card has one of the plugin, which is not known yet. */
    if (n->unplaced > 0 || !in_turn_is_same(n, r, there))
        return false;
    if (n->vacated)
        return true;
    draft_init(&d, n);
    request_work(r, n->n_pods);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (p->deleting && p != r->self)
            draft_remove(&d, p);
    }
    return in_turn_is_same(&d.node, r, there);
}

bool in_turn_keeps(const struct node *n, const struct request *r, const struct holding *h)
{
    struct placement there = {.n = h->n_grants};
    assert(h->n_grants <= REQUEST_GRANTS_MAX);
    if (h->n_grants > 0)
        memcpy(there.grants, h->grants, h->n_grants * sizeof(there.grants[0]));
    return in_turn_chooses(n, r, &there);
}

bool in_turn_is_among(const struct placement *there, const struct card_set *cards)
{
    for (uint32_t i = 0; i < there->n; i++) {
        if (!card_set_has(cards, there->grants[i].card))
            return false;
    }
    return true;
}

bool in_turn_has_room(const struct node *kept, const struct node *n, const struct request *r)
{
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    int64_t charge = 0;
    if (!in_turn_place(n, r, &there))
        return false;
    uint32_t count = shares_of(r, there.grants, there.n, false, shares);
    for (uint32_t i = 0; i < count; i++) {
        const struct card *c = &kept->cards[shares[i].card];
        if (c->wholes > 0 || shares[i].mem > card_free(c) || shares[i].cores > card_free_cores(c))
            return false;
        charge += shares[i].mem;
    }
    return charge <= kept->total - kept->used && kept->counted + r->mem <= kept->limit;
}

bool in_turn_may_have(const struct node *n, const struct request *r, const struct card_set *fits)
{
    if (!in_turn_is_ordered(r))
        return true;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        if (c->pods == 0 && c->used == 0 && !c->absent && !card_set_has(fits, i))
            return false;
    }
    return n->unplaced == 0;
}
