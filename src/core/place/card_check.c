/* Checks the cards of a node for one request: each card alone, all of them for a share, and the
 * node's sum. */
#include "core/place/card_check.h"

#include "core/limit.h"
#include "core/place/shortfall.h"
#include "core/state/quota_usage.h"

static bool card_check_same_group(const struct pod *p, struct str namespace, struct str mine,
                                  struct str its)
{
    return mine.n > 0 && str_eq(mine, its) && str_eq(p->namespace, namespace);
}

static void card_check_mark(struct card_set *set, const struct pod_allocation *h)
{
    for (uint32_t i = 0; i < h->n_shares; i++) {
        uint32_t card = h->shares[i].card;
        if (card < LIMIT_CARDS)
            card_set_add(set, card);
    }
}

static bool card_check_has_groups(const struct evaluation *e)
{
    return e->request->anti_affinity.n > 0 || e->affinity_held;
}

/* One pass over the node's pods, independent of the number of its cards. */
void card_check_begin_groups(struct card_check *check, const struct node *n,
                             const struct evaluation *e)
{
    const struct request *r = e->request;
    check->node = n;
    if (!card_check_has_groups(e))
        return;
    *check = (struct card_check){.node = n};
    evaluation_count_steps(e, n->n_pods);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        const struct request *q = p->request;
        if (p == e->self || (n->vacated && p->deleting))
            continue;
        if (card_check_same_group(p, r->namespace, r->anti_affinity, q->anti_affinity))
            card_check_mark(&check->foes, p->allocation);
        if (card_check_same_group(p, r->namespace, r->affinity, q->affinity))
            card_check_mark(&check->friends, p->allocation);
    }
}

static enum verdict card_check_groups(const struct card_check *check, const struct evaluation *e,
                                      uint32_t card)
{
    if (!card_check_has_groups(e))
        return VERDICT_FITS;
    if (card_set_has(&check->foes, card))
        return VERDICT_ANTI_AFFINITY;
    return e->affinity_held && !card_set_has(&check->friends, card) ? VERDICT_AFFINITY
                                                                    : VERDICT_FITS;
}

/* Reasons that would rule the card out even if it were empty. */
static enum verdict card_check_kind(const struct node *n, const struct evaluation *e,
                                    const struct share *share, uint32_t card)
{
    const struct request *r = e->request;
    const struct card *c = &n->cards[card];
    if (!card_usable(c))
        return card_only_claimed(c) ? VERDICT_CLAIMED : VERDICT_UNUSABLE;
    if (r->models.n > 0 &&
        !step_budget_matches_model(e->step_budget, r->models, node_card_model(n, card)))
        return VERDICT_MODEL;
    struct uuid_room room _uninitialized_;
    if (r->uuids.n > 0 &&
        !step_budget_matches_uuid(e->step_budget, r->uuids, node_card_uuid(n, card, &room)))
        return VERDICT_UUID;
    if (share->mem > c->total || (r->whole && c->total == 0))
        return VERDICT_TOO_LARGE;
    return VERDICT_FITS;
}

static enum verdict card_check_room(const struct node *n, const struct request *r,
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
static enum verdict card_check_evaluate(const struct card_check *check, const struct evaluation *e,
                                        const struct share *share, uint32_t card)
{
    struct quota_refusal refusal;
    const struct node *n = check->node;
    enum verdict v = card_check_kind(n, e, share, card);
    if (v == VERDICT_FITS)
        v = card_check_groups(check, e, card);
    if (v == VERDICT_FITS)
        v = quota_usage_evaluate(n, e, card, &refusal);
    return v == VERDICT_FITS ? card_check_room(n, e->request, share, card) : v;
}

enum verdict card_check_share(const struct card_check *check, const struct evaluation *e,
                              const struct share *share, uint32_t card)
{
    return card_check_evaluate(check, e, share, card);
}

void card_check_begin(struct card_check *check, const struct node *n, const struct evaluation *e)
{
    card_check_begin_groups(check, n, e);
    card_check_swap(&check->swap, n, e);
}

enum verdict card_check_one(const struct card_check *check, const struct evaluation *e,
                            uint32_t card)
{
    struct share share = request_share(e->request);
    assert(card < check->node->n_cards);
    evaluation_count_steps(e, 1);
    enum verdict v = card_check_evaluate(check, e, &share, card);
    return v == VERDICT_FITS && !swap_allows(&check->swap, card) ? VERDICT_SWAP : v;
}

/* Where the figures of the cards are written; NULL: nowhere. The search for different cards asks
 * for 0 memory at first (fit_place_apart): the figures would then not say what the pod lacks. */
static struct shortfall *card_check_open_shortfall(const struct evaluation *e,
                                                   const struct share *share)
{
    struct shortfall *s = request_fixed(e->request) && share->mem == 0 ? NULL : e->shortfall;
    if (s != NULL)
        *s = (struct shortfall){.free = 0};
    return s;
}

/* If too few are feasible, the highest verdict of a card is the reason: verdicts are ordered from
 * "never" to "nearly feasible". If some cards could become feasible, but fewer than are needed, the
 * reason is VERDICT_TOO_FEW. */
enum verdict card_check_all(const struct node *n, const struct evaluation *e,
                            const struct share *share, const struct swap *swap,
                            struct card_set *ret_fits)
{
    const uint32_t cards = request_cards(e->request);
    struct card_check check _uninitialized_;
    enum verdict nearest = VERDICT_UNUSABLE;
    uint32_t fit = 0;
    uint32_t could = 0;
    *ret_fits = (struct card_set){{0}};
    assert(n->n_cards <= LIMIT_CARDS);
    struct shortfall *shortfall = card_check_open_shortfall(e, share);
    card_check_begin_groups(&check, n, e);
    evaluation_count_steps(e, n->n_cards);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        enum verdict v = card_check_evaluate(&check, e, share, i);
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

int64_t card_check_charge(const struct node *n, const struct request *r,
                          const struct placement *there)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    int64_t sum = 0;
    uint32_t count = shares_of(r, there->grants, there->n, false, shares);
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++)
        sum += share_charge(r, &shares[i], n->cards[shares[i].card].total);
    return sum;
}
