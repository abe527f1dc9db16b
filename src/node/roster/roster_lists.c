/* Sets of cards, and of grants. */
#include "base/mem.h"
#include "node/roster/roster.h"

bool card_list_find(const struct card_list *l, uint32_t card, uint32_t *ret_at)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->cards[i] == card) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

bool card_list_has(const struct card_list *l, uint32_t card)
{
    uint32_t at = 0;
    return card_list_find(l, card, &at);
}

void card_list_add(struct card_list *l, uint32_t card)
{
    uint32_t at = 0;
    if (card_list_has(l, card) || l->n == COUNT_OF(l->cards))
        return;
    while (at < l->n && l->cards[at] < card)
        at++;
    memmove(&l->cards[at + 1], &l->cards[at], (l->n - at) * sizeof(l->cards[0]));
    l->cards[at] = card;
    l->n++;
}

bool card_list_equal(const struct card_list *a, const struct card_list *b)
{
    return a->n == b->n && memcmp(a->cards, b->cards, a->n * sizeof(a->cards[0])) == 0;
}

void card_list_read(struct str text, struct card_list *ret)
{
    struct str part;
    bool more = text.n > 0;
    ret->n = 0;
    while (more) {
        uint64_t card = 0;
        more = str_cut(text, ',', &part, &text);
        if (!str_to_u64(part, INT32_MAX, &card)) {
            ret->n = 0;
            return;
        }
        card_list_add(ret, (uint32_t)card);
    }
}

bool grant_list_equal(const struct grant_list *a, const struct grant_list *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->grants[i].card != b->grants[i].card ||
            a->grants[i].container != b->grants[i].container)
            return false;
    }
    return true;
}

bool grant_list_has(const struct grant_list *l, uint32_t card)
{
    return grants_have_card(l->grants, l->n, card);
}

bool grant_list_set(struct grant_list *l, const struct grant *grants, uint32_t n)
{
    struct grant *copy = NULL;
    if (n > 0) {
        copy = mem_alloc(n * sizeof(*copy));
        if (copy == NULL)
            return false;
        memcpy(copy, grants, n * sizeof(*copy));
    }
    mem_free(l->grants);
    l->grants = copy;
    l->n = n;
    return true;
}
