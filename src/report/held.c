/* Counts the slots of each card, and then puts each pod into those of its cards. */
#include "report/held.h"

#include "base/mem.h"

static uint32_t held_place_of(const struct node *n, const struct share *s)
{
    return s != NULL && node_has_card(n, s->card) ? s->card : n->n_cards;
}

/* Without slots `ends` gets the number of each card's; with them it has where each card's begin. */
static void held_fill(struct held_walk *w)
{
    for (const struct pod *p = w->node->pods; p != NULL; p = p->next) {
        const struct pod_allocation *h = p->allocation;
        if (!node_serves(w->node, p->request))
            continue;
        for (uint32_t i = 0; i < h->n_shares || (i == 0 && p->request->mem > 0); i++) {
            const struct share *s = i < h->n_shares ? &h->shares[i] : NULL;
            uint32_t at = w->ends[held_place_of(w->node, s)]++;
            if (w->slots != NULL)
                w->slots[at] = (struct held_slot){p, s};
        }
    }
}

bool held_begin(struct held_walk *w, const struct node *n, const struct measured *m)
{
    uint32_t all = 0;
    *w = (struct held_walk){.node = n, .all = m, .measured = measured_of(m, n->name)};
    assert(n->n_cards <= LIMIT_CARDS);
    held_fill(w);
    for (uint32_t i = 0; i <= n->n_cards; i++) {
        uint32_t count = w->ends[i];
        w->ends[i] = all;
        all += count;
    }
    w->slots = mem_alloc(MAX_OF(all, 1U) * sizeof(*w->slots));
    if (w->slots != NULL)
        held_fill(w);
    return w->slots != NULL;
}

void held_end(struct held_walk *w)
{
    mem_free(w->slots);
}

static void held_measure(const struct held_walk *w, uint32_t card, struct held *ret)
{
    if (!measured_pod_of(w->all, w->measured, ret->pod->uid, card, &ret->used_mib))
        return;
    ret->known = true;
    ret->exceeds = measured_exceeds(measured_card_of(w->measured, card), w->node->cards[card].total,
                                    ret->mem, ret->used_mib);
}

bool held_next(struct held_walk *w, int64_t card, struct held *ret)
{
    uint32_t place = card < 0 ? w->node->n_cards : (uint32_t)card;
    w->next = MAX_OF(w->next, place == 0 ? 0 : w->ends[place - 1]);
    if (w->next == w->ends[place])
        return false;
    struct held_slot slot = w->slots[w->next++];
    const struct share *s = slot.share;
    *ret = (struct held){.pod = slot.pod, .mem = s == NULL ? slot.pod->request->mem : s->mem};
    ret->cores = s == NULL ? 0 : s->cores;
    if (card >= 0) {
        assert(s != NULL);
        ret->mem = node_charge_of(w->node, slot.pod->request, s);
        held_measure(w, (uint32_t)card, ret);
    }
    return true;
}
