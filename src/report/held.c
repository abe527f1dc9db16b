#include "report/held.h"

static void held_measure(const struct held_walk *w, struct held *ret)
{
    uint32_t card = (uint32_t)w->card;
    if (w->card < 0 || !measured_pod_of(w->all, w->measured, ret->pod->uid, card, &ret->used_mib))
        return;
    ret->known = true;
    ret->exceeds = measured_exceeds(measured_card_of(w->measured, card), w->node->cards[card].total,
                                    ret->mem, ret->used_mib);
}

/* The next share of w->pod on the card. */
static bool held_next_share(struct held_walk *w, struct held *ret)
{
    const struct pod *p = w->pod;
    while (w->next < p->holding->n_shares) {
        const struct share *s = &p->holding->shares[w->next++];
        bool valid = node_has_card(w->node, s->card);
        if (valid ? s->card != w->card : w->card >= 0)
            continue;
        *ret = (struct held){.pod = p, .mem = s->mem, .cores = s->cores};
        if (valid)
            ret->mem = node_charge_of(w->node, p->request, s);
        held_measure(w, ret);
        return true;
    }
    return false;
}

bool held_next(struct held_walk *w, struct held *ret)
{
    if (w->pod != NULL && held_next_share(w, ret))
        return true;
    for (const struct pod *p = w->pod == NULL ? w->node->pods : w->pod->next; p != NULL;
         p = p->next) {
        w->pod = p;
        w->next = 0;
        if (w->card < 0 && p->holding->n_shares == 0 && p->request->mem > 0) {
            *ret = (struct held){.pod = p, .mem = p->request->mem};
            return true;
        }
        if (held_next_share(w, ret))
            return true;
    }
    return false;
}
