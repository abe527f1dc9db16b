#include "policy.h"

static enum verdict fault_verdict(enum node_fault fault)
{
    switch (fault) {
    case NODE_OK:
        return VERDICT_FITS;
    case NODE_ABSENT:
        return VERDICT_UNKNOWN_NODE;
    case NODE_NOT_SHARED:
        return VERDICT_NOT_SHARED;
    case NODE_NO_CARDS:
    case NODE_BAD_QUANTITY:
        return VERDICT_NO_CARDS;
    }
    return VERDICT_NO_CARDS;
}

enum verdict policy_fit(const struct node *n, const struct request *r)
{
    if (n == NULL || n->fault == NODE_ABSENT)
        return VERDICT_UNKNOWN_NODE;
    if (r->mem == 0)
        return VERDICT_FITS;
    if (n->fault != NODE_OK)
        return fault_verdict(n->fault);
    if (r->mem > n->largest)
        return VERDICT_TOO_LARGE;
    if (r->mem > n->most_free)
        return VERDICT_NO_CARD_FREE;
    if (r->mem > node_free(n))
        return VERDICT_NODE_FULL;
    return VERDICT_FITS;
}

enum verdict policy_keep(const struct pod *p)
{
    const struct node *n = p->node;
    if (n->fault != NODE_OK)
        return fault_verdict(n->fault);
    if (p->mem > n->largest)
        return VERDICT_TOO_LARGE;
    if (p->card < 0 || (uint32_t)p->card >= n->n_cards)
        return VERDICT_NO_CARD_FREE;
    const struct card *c = &n->cards[p->card];
    if (c->unhealthy || c->used > c->total)
        return VERDICT_NO_CARD_FREE;
    return n->used > n->limit ? VERDICT_NODE_FULL : VERDICT_FITS;
}

static bool tighter(const struct node *n, int64_t card, int64_t best)
{
    if (best < 0)
        return true;
    int64_t free = card_free(&n->cards[card]);
    int64_t best_free = card_free(&n->cards[best]);
    return free < best_free || (free == best_free && card < best);
}

/* The tightest card that an unassigned pod of the same size is on, or -1. */
static int64_t pick_beside_equal(const struct node *n, const struct request *r)
{
    int64_t best = -1;
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (!p->awaiting || p->mem != r->mem || p->card < 0 || (uint32_t)p->card >= n->n_cards)
            continue;
        if (card_free(&n->cards[p->card]) >= r->mem && tighter(n, p->card, best))
            best = p->card;
    }
    return best;
}

static int64_t pick_tightest(const struct node *n, const struct request *r)
{
    int64_t best = -1;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (card_free(&n->cards[i]) >= r->mem && tighter(n, i, best))
            best = i;
    }
    return best;
}

uint32_t policy_pick(const struct node *n, const struct request *r)
{
    int64_t best = pick_beside_equal(n, r);
    if (best < 0)
        best = pick_tightest(n, r);
    assert(best >= 0);
    return (uint32_t)best;
}
