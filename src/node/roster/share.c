/* Computes shares from the roster. */
#include "node/roster/share.h"

static int64_t share_part(int64_t whole, uint32_t parts)
{
    return whole / parts + (whole % parts != 0);
}

/* A percentage counts for the pod as a whole: one container has all of it. */
static int64_t share_least(const struct roster *r, const struct roster_pod *p, uint32_t card)
{
    struct share none = {.mem = 0};
    if (p->request->whole || p->n_containers == 1)
        return share_charge(p->request, &none, roster_total(r, card));
    return 0;
}

void share_of(const struct roster *r, const struct roster_pod *p, const struct demand *d,
              const struct card_list *cards, struct card_share *ret)
{
    *ret = (struct card_share){.cards = *cards};
    if (cards->n == 0)
        return;
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < cards->n; i++)
        least = MIN_OF(least, share_least(r, p, cards->cards[i]));
    ret->units = MAX_OF(share_part(d->mem, cards->n), least);
    ret->cores = (uint32_t)share_part(d->cores, cards->n);
}

bool share_find(const struct roster *r, const struct roster_pod *p, struct str container,
                struct card_share *ret)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        const struct roster_container *c = &p->containers[i];
        struct card_list cards;
        if (!str_eq(c->name, container))
            continue;
        if (c->given && c->has.n > 0)
            cards = c->has;
        else
            roster_cards_of(p, c->demand, &p->said, &cards);
        /* A share of a card of unknown size would be too small, and a limit is never raised. */
        for (uint32_t k = 0; k < cards.n; k++) {
            if (roster_total(r, cards.cards[k]) == 0)
                return false;
        }
        share_of(r, p, c->demand, &cards, ret);
        return true;
    }
    return false;
}
