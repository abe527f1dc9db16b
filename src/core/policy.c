/*
 * Most requests are for memory of one card, on a node where nothing special is the case: those are
 * judged by figures that the node keeps. Everything else looks at each card.
 */
#include "policy.h"

#include "draft.h"
#include "pattern.h"
#include "pick.h"
#include "uses.h"

static enum verdict fault_verdict(enum node_fault fault)
{
    switch (fault) {
    case NODE_OK:
        return VERDICT_FITS;
    case NODE_ABSENT:
        return VERDICT_UNKNOWN_NODE;
    case NODE_NOT_SHARED:
        return VERDICT_NOT_SHARED;
    case NODE_BAD_CARDS:
        return VERDICT_BAD_CARDS;
    case NODE_NO_CARDS:
    case NODE_BAD_QUANTITY:
        return VERDICT_NO_CARDS;
    }
    return VERDICT_NO_CARDS;
}

static bool same_group(const struct pod *p, struct str namespace, struct str mine, struct str its)
{
    return mine.n > 0 && str_eq(mine, its) && str_eq(p->namespace, namespace);
}

/* On which cards pods of the request's groups are. */
struct company {
    struct card_set friends;
    struct card_set foes;
};

static void mark_cards(struct card_set *set, const struct holding *h)
{
    for (uint32_t i = 0; i < h->n_shares; i++) {
        uint32_t card = h->shares[i].card;
        if (card < LIMIT_CARDS)
            set->words[card / 64] |= (uint64_t)1 << (card % 64);
    }
}

static bool has_groups(const struct request *r)
{
    return r->anti_affinity.n > 0 || r->affinity_held;
}

/* One pass over the node's pods, whatever the number of its cards. */
static void company_find(struct company *c, const struct node *n, const struct request *r)
{
    if (!has_groups(r))
        return;
    *c = (struct company){.friends = {{0}}};
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        const struct request *q = p->request;
        if (p == r->self || (n->vacated && p->deleting))
            continue;
        if (same_group(p, r->namespace, r->anti_affinity, q->anti_affinity))
            mark_cards(&c->foes, p->holding);
        if (same_group(p, r->namespace, r->affinity, q->affinity))
            mark_cards(&c->friends, p->holding);
    }
}

static enum verdict judge_groups(const struct company *c, const struct request *r, uint32_t card)
{
    if (!has_groups(r))
        return VERDICT_FITS;
    if (card_set_has(&c->foes, card))
        return VERDICT_ANTI_AFFINITY;
    return r->affinity_held && !card_set_has(&c->friends, card) ? VERDICT_AFFINITY : VERDICT_FITS;
}

/* What would rule the card out even if it were empty. */
static enum verdict judge_kind(const struct node *n, const struct request *r,
                               const struct share *share, uint32_t card)
{
    const struct card *c = &n->cards[card];
    if (!card_usable(c))
        return VERDICT_UNUSABLE;
    if (r->models.n > 0 && !pattern_list_allows(r->models, node_card_model(n, card), true))
        return VERDICT_MODEL;
    if (r->uuids.n > 0 && !pattern_list_allows(r->uuids, node_card_uuid(n, card), false))
        return VERDICT_UUID;
    if (share->mem > c->total || (r->whole && c->total == 0))
        return VERDICT_TOO_LARGE;
    return VERDICT_FITS;
}

static enum verdict judge_room(const struct node *n, const struct request *r,
                               const struct share *share, uint32_t card)
{
    const struct card *c = &n->cards[card];
    if (c->wholes > 0)
        return VERDICT_HELD_WHOLE;
    if (r->whole && (c->pods > 0 || c->used > 0))
        return VERDICT_NOT_EMPTY;
    if (n->sizes->max_pods > 0 && c->pods >= n->sizes->max_pods)
        return VERDICT_POD_LIMIT;
    if (share->cores > card_free_cores(c))
        return VERDICT_NO_CORES;
    return share_charge(r, share, c->total) > card_free(c) ? VERDICT_NO_CARD_FREE : VERDICT_FITS;
}

/* The quota before the room: where it is used up no room helps, however much there is. */
static enum verdict judge_card(const struct node *n, const struct request *r,
                               const struct company *company, const struct share *share,
                               uint32_t card)
{
    struct quota_refusal refusal;
    enum verdict v = judge_kind(n, r, share, card);
    if (v == VERDICT_FITS)
        v = judge_groups(company, r, card);
    if (v == VERDICT_FITS)
        v = uses_judge(n, r, card, &refusal);
    return v == VERDICT_FITS ? judge_room(n, r, share, card) : v;
}

struct str policy_reason(const struct node *n, enum verdict v, struct str name, struct buf *scratch)
{
    if (v != VERDICT_BAD_CARDS || n == NULL || n->sizes == NULL)
        return verdict_reason(v, name, scratch);
    buf_clear(scratch, SIZE_MAX);
    buf_printf(scratch, "The node's annotation %.*s", STR_ARG(n->sizes->cards_fault));
    return buf_str(scratch);
}

enum verdict policy_card(const struct node *n, const struct request *r, uint32_t card)
{
    struct company company _uninitialized_;
    struct share share = request_share(r);
    assert(card < n->n_cards);
    company_find(&company, n, r);
    return judge_card(n, r, &company, &share, card);
}

/*
 * Of the cards that can't, the one that comes nearest says why; of those that could never, only if
 * there are no others. Verdicts are in that order.
 */
static enum verdict judge_cards(const struct node *n, const struct request *r,
                                const struct share *share, struct card_set *ret_fits)
{
    struct company company _uninitialized_;
    enum verdict nearest = VERDICT_UNUSABLE;
    uint32_t fit = 0;
    uint32_t could = 0;
    *ret_fits = (struct card_set){{0}};
    company_find(&company, n, r);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        enum verdict v = judge_card(n, r, &company, share, i);
        could += v == VERDICT_FITS || v > VERDICT_TOO_FEW ? 1 : 0;
        nearest = MAX_OF(nearest, v);
        if (v != VERDICT_FITS)
            continue;
        ret_fits->words[i / 64] |= (uint64_t)1 << (i % 64);
        fit++;
    }
    if (fit >= request_cards(r))
        return VERDICT_FITS;
    if (could >= request_cards(r))
        return nearest;
    return could == 0 ? nearest : VERDICT_TOO_FEW;
}

static int64_t charge_of(const struct node *n, const struct request *r, const struct placement *p)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    int64_t sum = 0;
    uint32_t count = shares_of(r, p->grants, p->n, false, shares);
    for (uint32_t i = 0; i < count; i++)
        sum += share_charge(r, &shares[i], n->cards[shares[i].card].total);
    return sum;
}

/* A node may hold more than its limit: then there is no room for nothing, either. */
static enum verdict judge_node(const struct node *n, const struct request *r, int64_t charge)
{
    bool full = n->counted + r->mem > n->limit || charge > n->total - n->used;
    return full ? VERDICT_NODE_FULL : VERDICT_FITS;
}

/* Each container on a card of its own, where they don't fit on one. */
static enum verdict place_apart(struct pick *pick, enum verdict together, struct placement *ret)
{
    const struct node *n = pick->node;
    const struct request *r = pick->request;
    struct share none = {.mem = 0};
    enum verdict apart = judge_cards(n, r, &none, &pick->fits);
    if (apart == VERDICT_FITS && pick_apart(pick, ret))
        return VERDICT_FITS;
    if (apart == VERDICT_QUOTA || apart == VERDICT_QUOTA_DENIED)
        return apart;
    if (together != VERDICT_TOO_LARGE)
        return together;
    /* Too large for one card, but maybe not for several. */
    struct draft d _uninitialized_;
    struct placement there _uninitialized_;
    draft_init(&d, n);
    for (const struct pod *p = n->pods; p != NULL; p = p->next)
        draft_remove(&d, p);
    struct pick empty = {.node = &d.node, .request = r, .pack = pick->pack};
    return judge_cards(&d.node, r, &none, &empty.fits) == VERDICT_FITS && pick_apart(&empty, &there)
               ? VERDICT_NO_CARD_FREE
               : together;
}

static enum verdict place_shared(const struct node *n, const struct request *r, enum pack fallback,
                                 struct placement *ret)
{
    struct placement unwanted _uninitialized_;
    struct pick pick = {.node = n,
                        .request = r,
                        .pack = pack_choose(r->card_policy, n->sizes->placement, fallback)};
    struct share share = request_share(r);
    enum verdict v = judge_cards(n, r, &share, &pick.fits);
    /* Of several cards that is too much by the pod's overhead, which is charged to none of them. */
    if (v == VERDICT_FITS && ret == NULL && request_fixed(r) &&
        judge_node(n, r, share.mem * request_cards(r)) == VERDICT_FITS)
        return VERDICT_FITS;
    if (ret == NULL)
        ret = &unwanted;
    if (v == VERDICT_FITS)
        pick_together(&pick, ret);
    else if (request_may_part(r))
        v = place_apart(&pick, v, ret);
    if (v != VERDICT_FITS)
        return v;
    return judge_node(n, r, charge_of(n, r, ret));
}

/* Whether some of the cards are set aside for the other plugin, so that the two can't meet. */
static bool is_divided(const struct node *n)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].aside)
            return true;
    }
    return false;
}

/* Pods of ours that came before a card was set aside are on it still. */
static bool is_trespassed(const struct node *n)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].aside && n->cards[i].pods > 0)
            return true;
    }
    return false;
}

/* Which card the other plugin gives out nobody tells us: so a node has one kind of pods at a time,
 * or each kind its cards. */
static enum verdict judge_exclusive(const struct node *n, const struct request *r)
{
    bool shares = request_shares(r) && n->n_cards > 0; /* else the node's fault says more */
    if (is_divided(n))
        return r->exclusive > 0 && is_trespassed(n) ? VERDICT_SHARED : VERDICT_FITS;
    if (r->exclusive > 0 && (n->n_sharing > 0 || shares))
        return VERDICT_SHARED;
    return shares && n->exclusive > 0 ? VERDICT_EXCLUSIVE : VERDICT_FITS;
}

/* ret NULL: only whether, which spares it to choose. */
static enum verdict place(const struct node *n, const struct request *r, enum pack fallback,
                          struct placement *ret)
{
    struct quota_refusal refusal;
    enum verdict v = judge_exclusive(n, r);
    if (v != VERDICT_FITS)
        return v;
    if (!request_shares(r))
        return uses_judge(n, r, 0, &refusal);
    return n->fault == NODE_OK ? place_shared(n, r, fallback, ret) : fault_verdict(n->fault);
}

bool policy_yields(const struct request *r, const struct pod *claim)
{
    return claim != r->self && claim->request->priority >= r->priority;
}

/*
 * With the pods that room is kept for, where they will be once those that are on their way out are
 * gone: on a card, what is there and what will be count both until then. The node's sum must do
 * now, and then.
 */
void policy_keep_claims(struct draft *now, const struct node *n, const struct request *r)
{
    struct draft then _uninitialized_;
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    draft_init(now, n);
    draft_init(&then, n);
    then.node.vacated = true;
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (p->deleting)
            draft_remove(&then, p);
    }
    for (const struct pod *q = n->claims; q != NULL; q = q->next) {
        uint32_t count = 0;
        if (!policy_yields(r, q))
            continue;
        if (q->kept) {
            count = shares_of(q->request, q->holding->grants, q->holding->n_grants, false, shares);
        } else {
            there.n = 0;
            if (place(&then.node, q->request, r->fallback, &there) != VERDICT_FITS)
                continue;
            count = shares_of(q->request, there.grants, there.n, false, shares);
        }
        draft_charge(&then, q->request, shares, count, 1);
        draft_charge(now, q->request, shares, count, 1);
    }
    now->node.used = MAX_OF(n->used, then.node.used);
    now->node.counted = MAX_OF(n->counted, then.node.counted);
}

static enum verdict place_beside_claims(const struct node *n, const struct request *r,
                                        struct placement *ret)
{
    struct draft kept _uninitialized_;
    policy_keep_claims(&kept, n, r);
    return place(&kept.node, r, r->fallback, ret) == VERDICT_FITS ? VERDICT_FITS : VERDICT_KEPT;
}

static enum verdict place_or_fit(const struct node *n, const struct request *r,
                                 struct placement *ret)
{
    if (n == NULL || n->fault == NODE_ABSENT)
        return VERDICT_UNKNOWN_NODE;
    if (!request_wants(r))
        return VERDICT_FITS;
    enum verdict v = place(n, r, r->fallback, ret);
    return v != VERDICT_FITS || n->claims == NULL ? v : place_beside_claims(n, r, ret);
}

enum verdict policy_place(const struct node *n, const struct request *r, struct placement *ret)
{
    ret->n = 0;
    return place_or_fit(n, r, ret);
}

/* Without a table a node's cards are of one model and one size, and the quota says the same of all.
 */
static enum verdict fit_quota(const struct node *n, const struct request *r)
{
    struct quota_refusal refusal;
    return n->sizes->infos == NULL ? uses_judge(n, r, 0, &refusal) : place_or_fit(n, r, NULL);
}

enum verdict policy_fit(const struct node *n, const struct request *r)
{
    if (n == NULL || !r->simple || r->mem > n->crowded)
        return place_or_fit(n, r, NULL);
    if (r->account.entry != NULL) {
        enum verdict v = fit_quota(n, r);
        if (v != VERDICT_FITS)
            return v;
    }
    if (r->mem <= n->simple)
        return VERDICT_FITS;
    return r->mem > n->most_free ? VERDICT_NO_CARD_FREE : VERDICT_NODE_FULL;
}

bool policy_refusal(const struct node *n, const struct request *r, enum verdict v,
                    struct quota_refusal *ret)
{
    if (n == NULL || (v != VERDICT_QUOTA && v != VERDICT_QUOTA_DENIED))
        return false;
    if (!request_shares(r))
        return uses_judge(n, r, 0, ret) == v;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (policy_card(n, r, i) == v && uses_judge(n, r, i, ret) == v)
            return true;
    }
    /* Of containers that would part, on cards that are too small for all of them. */
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (card_usable(&n->cards[i]) && uses_judge(n, r, i, ret) == v)
            return true;
    }
    return false;
}

bool policy_card_refusal(const struct node *n, const struct request *r, uint32_t card,
                         struct quota_refusal *ret)
{
    assert(card < n->n_cards);
    return uses_judge(n, r, card, ret) != VERDICT_FITS;
}

int64_t policy_cost(const struct node *n, const struct request *r)
{
    if (request_fixed(r))
        return r->mem;
    struct share share = request_share(r);
    return share_charge(r, &share, n->largest) * request_cards(r);
}

/* Of a whole card, and by percentage: what was granted is written down, and by now may be less than
 * the pod's part. */
static bool is_outgrown(const struct node *n, const struct request *r, const struct holding *h,
                        const struct share *s)
{
    struct share granted = {.mem = 0};
    for (uint32_t i = 0; i < h->n_grants; i++)
        granted.mem += h->grants[i].card == s->card ? h->grants[i].mem : 0;
    return share_charge(r, &granted, n->cards[s->card].total) > granted.mem;
}

/* Judged anew, as if it were not there. */
enum verdict policy_keep(const struct pod *p)
{
    struct request r;
    struct draft without _uninitialized_;
    const struct node *n = &without.node;
    const struct holding *h = p->holding;
    struct company company _uninitialized_;
    int64_t charge = 0;
    if (p->node->fault == NODE_ABSENT)
        return VERDICT_UNKNOWN_NODE;
    request_load(&r, p->request);
    r.self = p;
    draft_init(&without, p->node);
    draft_remove(&without, p);
    enum verdict v = judge_exclusive(n, &r);
    if (v != VERDICT_FITS || !request_shares(&r))
        return v;
    if (n->fault != NODE_OK)
        return fault_verdict(n->fault);
    company_find(&company, n, &r);
    for (uint32_t i = 0; i < h->n_shares && v == VERDICT_FITS; i++) {
        const struct share *s = &h->shares[i];
        if (!node_has_card(n, s->card) || is_outgrown(n, &r, h, s))
            return VERDICT_NO_CARD_FREE;
        v = judge_card(n, &r, &company, s, s->card);
        charge += share_charge(&r, s, n->cards[s->card].total);
    }
    return v == VERDICT_FITS ? judge_node(n, &r, charge) : v;
}
