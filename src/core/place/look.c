/* Looks at the cards of a node for one request: each card alone, all of them for a share, and the
 * node's sum. */
#include "core/place/look.h"

#include "core/limit.h"
#include "core/place/shortfall.h"
#include "core/state/uses.h"

static bool look_same_group(const struct pod *p, struct str namespace, struct str mine,
                            struct str its)
{
    return mine.n > 0 && str_eq(mine, its) && str_eq(p->namespace, namespace);
}

static void look_mark_cards(struct card_set *set, const struct holding *h)
{
    for (uint32_t i = 0; i < h->n_shares; i++) {
        uint32_t card = h->shares[i].card;
        if (card < LIMIT_CARDS)
            card_set_add(set, card);
    }
}

static bool look_has_groups(const struct evaluation *e)
{
    return e->request->anti_affinity.n > 0 || e->affinity_held;
}

/* One pass over the node's pods, independent of the number of its cards. */
void look_groups(struct look *l, const struct node *n, const struct evaluation *e)
{
    const struct request *r = e->request;
    l->node = n;
    if (!look_has_groups(e))
        return;
    *l = (struct look){.node = n};
    evaluation_work(e, n->n_pods);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        const struct request *q = p->request;
        if (p == e->self || (n->vacated && p->deleting))
            continue;
        if (look_same_group(p, r->namespace, r->anti_affinity, q->anti_affinity))
            look_mark_cards(&l->foes, p->holding);
        if (look_same_group(p, r->namespace, r->affinity, q->affinity))
            look_mark_cards(&l->friends, p->holding);
    }
}

static enum verdict look_check_groups(const struct look *l, const struct evaluation *e,
                                      uint32_t card)
{
    if (!look_has_groups(e))
        return VERDICT_FITS;
    if (card_set_has(&l->foes, card))
        return VERDICT_ANTI_AFFINITY;
    return e->affinity_held && !card_set_has(&l->friends, card) ? VERDICT_AFFINITY : VERDICT_FITS;
}

/* Reasons that would rule the card out even if it were empty. */
static enum verdict look_check_kind(const struct node *n, const struct evaluation *e,
                                    const struct share *share, uint32_t card)
{
    const struct request *r = e->request;
    const struct card *c = &n->cards[card];
    if (!card_usable(c))
        return card_only_claimed(c) ? VERDICT_CLAIMED : VERDICT_UNUSABLE;
    if (r->models.n > 0 && !work_allows_model(e->work, r->models, node_card_model(n, card)))
        return VERDICT_MODEL;
    struct uuid_room room _uninitialized_;
    if (r->uuids.n > 0 && !work_allows_uuid(e->work, r->uuids, node_card_uuid(n, card, &room)))
        return VERDICT_UUID;
    if (share->mem > c->total || (r->whole && c->total == 0))
        return VERDICT_TOO_LARGE;
    return VERDICT_FITS;
}

static enum verdict look_check_room(const struct node *n, const struct request *r,
                                    const struct share *share, uint32_t card)
{
    const struct card *c = &n->cards[card];
    if (c->wholes > 0)
        return VERDICT_HELD_WHOLE;
    if (share_is_whole(r, share) && (c->pods > 0 || c->used > 0))
        return VERDICT_NOT_EMPTY;
    uint32_t max_pods = node_card_max_pods(n, card);
    if (max_pods > 0 && card_takers(c) + share_takers(share) > max_pods)
        return VERDICT_POD_LIMIT;
    if (card_lacks_cores(c, r, share->cores, card_free_cores(c)))
        return VERDICT_NO_CORES;
    return share_charge(r, share, c->total) > card_free(c) ? VERDICT_NO_CARD_FREE : VERDICT_FITS;
}

/* The quota is checked before the room: if it is used up, no room helps. */
static enum verdict look_evaluate(const struct look *l, const struct evaluation *e,
                                  const struct share *share, uint32_t card)
{
    struct quota_refusal refusal;
    const struct node *n = l->node;
    enum verdict v = look_check_kind(n, e, share, card);
    if (v == VERDICT_FITS)
        v = look_check_groups(l, e, card);
    if (v == VERDICT_FITS)
        v = uses_evaluate(n, e, card, &refusal);
    return v == VERDICT_FITS ? look_check_room(n, e->request, share, card) : v;
}

enum verdict look_share(const struct look *l, const struct evaluation *e, const struct share *share,
                        uint32_t card)
{
    return look_evaluate(l, e, share, card);
}

void look_at(struct look *l, const struct node *n, const struct evaluation *e)
{
    look_groups(l, n, e);
    look_swap(&l->swap, n, e);
}

enum verdict look_card(const struct look *l, const struct evaluation *e, uint32_t card)
{
    struct share share = request_share(e->request);
    assert(card < l->node->n_cards);
    evaluation_work(e, 1);
    enum verdict v = look_evaluate(l, e, &share, card);
    return v == VERDICT_FITS && !swap_allows(&l->swap, card) ? VERDICT_SWAP : v;
}

/* Where the figures of the cards go. The search for different cards for the containers asks about
 * no memory at first (fit_place_apart): then its answer is not what the pod lacks. */
static struct shortfall *look_open_shortfall(const struct evaluation *e, const struct share *share)
{
    struct shortfall *s = request_fixed(e->request) && share->mem == 0 ? NULL : e->shortfall;
    if (s != NULL)
        *s = (struct shortfall){.free = 0};
    return s;
}

/* If too few are feasible, the highest verdict of a card is the reason: verdicts are ordered from
 * "never" to "nearly feasible". If some cards could become feasible, but fewer than are needed, the
 * reason is VERDICT_TOO_FEW. */
enum verdict look_cards(const struct node *n, const struct evaluation *e, const struct share *share,
                        const struct swap *swap, struct card_set *ret_fits)
{
    const uint32_t cards = request_cards(e->request);
    struct look look _uninitialized_;
    enum verdict nearest = VERDICT_UNUSABLE;
    uint32_t fit = 0;
    uint32_t could = 0;
    *ret_fits = (struct card_set){{0}};
    assert(n->n_cards <= LIMIT_CARDS);
    struct shortfall *shortfall = look_open_shortfall(e, share);
    look_groups(&look, n, e);
    evaluation_work(e, n->n_cards);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        enum verdict v = look_evaluate(&look, e, share, i);
        if (v == VERDICT_FITS && !swap_allows(swap, i))
            v = VERDICT_SWAP;
        could += v == VERDICT_FITS || v > VERDICT_TOO_FEW ? 1 : 0;
        nearest = MAX_OF(nearest, v);
        if (v == VERDICT_FITS) {
            card_set_add(ret_fits, i);
            fit++;
        } else if (shortfall != NULL) {
            shortfall_card(shortfall, n, i, v);
        }
    }
    assert(fit <= could && could <= n->n_cards);
    if (shortfall != NULL) {
        shortfall->noted = true;
        shortfall->fit = fit;
        shortfall->could = could;
    }
    if (fit >= cards)
        return VERDICT_FITS;
    if (could >= cards)
        return nearest;
    return could == 0 ? nearest : VERDICT_TOO_FEW;
}

int64_t look_charge(const struct node *n, const struct request *r, const struct placement *there)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    int64_t sum = 0;
    uint32_t count = shares_of(r, there->grants, there->n, false, shares);
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++)
        sum += share_charge(r, &shares[i], n->cards[shares[i].card].total);
    return sum;
}
