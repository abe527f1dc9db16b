/* An overlay charges and releases pods with node_charge on a copy of the node's figures and cards.
 */
#include "core/state/overlay.h"

void overlay_init(struct overlay *o, const struct node *n)
{
    assert(n->n_cards <= LIMIT_CARDS);
    o->node = *n;
    o->node.cards = o->cards;
    o->node.kept_for = NULL;
    if (n->n_cards > 0)
        memcpy(o->cards, n->cards, n->n_cards * sizeof(n->cards[0]));
}

void overlay_charge(struct overlay *o, const struct request *r, const struct share *shares,
                    uint32_t n, int sign)
{
    node_charge(&o->node, r, shares, n, sign);
}

void overlay_remove(struct overlay *o, const struct pod *p)
{
    assert(p->allocation != NULL);
    node_charge(&o->node, p->request, p->allocation->shares, p->allocation->n_shares, -1);
}

void overlay_add(struct node *copy, struct pod *p)
{
    assert(p->allocation != NULL && p->next == NULL && p->prev == NULL);
    p->next = copy->pods; /* pods_add would change the original's first pod */
    copy->pods = p;
    copy->n_starting += pod_starts(p) ? 1 : 0;
    node_charge(copy, p->request, p->allocation->shares, p->allocation->n_shares, 1);
    node_derive(copy);
}
