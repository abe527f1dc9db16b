/* A draft charges and releases pods with node_charge on a copy of the node's figures and cards. */
#include "core/state/draft.h"

void draft_init(struct draft *d, const struct node *n)
{
    assert(n->n_cards <= LIMIT_CARDS);
    d->node = *n;
    d->node.cards = d->cards;
    d->node.claims = NULL;
    if (n->n_cards > 0)
        memcpy(d->cards, n->cards, n->n_cards * sizeof(n->cards[0]));
}

void draft_charge(struct draft *d, const struct request *r, const struct share *shares, uint32_t n,
                  int sign)
{
    node_charge(&d->node, r, shares, n, sign);
}

void draft_remove(struct draft *d, const struct pod *p)
{
    assert(p->holding != NULL);
    node_charge(&d->node, p->request, p->holding->shares, p->holding->n_shares, -1);
}

void draft_add(struct node *copy, struct pod *p)
{
    assert(p->holding != NULL && p->next == NULL && p->prev == NULL);
    p->next = copy->pods; /* pods_add would change the original's first pod */
    copy->pods = p;
    copy->n_starting += pod_starts(p) ? 1 : 0;
    node_charge(copy, p->request, p->holding->shares, p->holding->n_shares, 1);
    node_derive(copy);
}
