/* Evaluates a request on a node. Most requests ask for memory of one card, on a node without
 * special conditions: they are evaluated with figures that the node keeps. For all others each card
 * is evaluated. */
#include "core/place/fit.h"

#include "core/place/card_check.h"
#include "core/place/choose_cards.h"
#include "core/place/plugin_choice.h"
#include "core/place/shortfall.h"
#include "core/state/overlay.h"
#include "core/state/quota_usage.h"
#include "core/state/swap.h"
#include "core/state/vgpu.h"
#include "fit_apart.h"

static enum verdict fit_fault_verdict(enum node_fault fault)
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

struct str fit_reason(const struct node *n, enum verdict v, struct str name, struct buf *scratch)
{
    const struct node_sizes *sizes = n == NULL ? NULL : n->sizes;
    if (v != VERDICT_BAD_CARDS || sizes == NULL)
        return verdict_reason_in(v, sizes == NULL ? 0 : sizes->dialect, name, scratch);
    buf_clear(scratch, SIZE_MAX);
    buf_printf(scratch, "The node's annotation %.*s", STR_ARG(sizes->cards_fault));
    return buf_str(scratch);
}

enum verdict fit_card(const struct node *n, const struct evaluation *e, uint32_t card)
{
    struct card_check check _uninitialized_;
    card_check_begin(&check, n, e);
    return card_check_one(&check, e, card);
}

/* The node's sum may have no room for the cards that the policy prefers, but room for smaller
 * ones. */
static enum verdict fit_place_together(struct card_choice *choice, struct placement *ret)
{
    const struct node *n = choice->node;
    const struct request *r = choice->evaluation->request;
    enum verdict v = VERDICT_FITS;
    do {
        choose_cards_together(choice, ret);
        assert(ret->n > 0);
        v = card_check_placement(n, r, ret);
    } while (v != VERDICT_FITS && choose_cards_smaller(choice));
    return v;
}

static enum verdict fit_place_by_plugin(struct card_choice *choice, const struct swap *swap,
                                        struct placement *ret)
{
    const struct node *n = choice->node;
    const struct evaluation *e = choice->evaluation;
    const struct request *r = e->request;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    const struct share none = {.mem = 0};
    const struct share all = request_share(r);
    enum verdict v = card_check_all(n, e, r->n_demands == 1 ? &all : &none, swap, &choice->fits);
    if (v != VERDICT_FITS)
        return v;
    if (!plugin_choice_predict(n, e, ret))
        return VERDICT_NO_CARD_FREE;
    if (!plugin_choice_is(n, e, ret) || !plugin_choice_is_among(ret, &choice->fits))
        return VERDICT_PLUGIN_ORDER;
    uint32_t count = shares_of(r, ret->grants, ret->n, false, shares);
    /* The quota allows each card alone, but not these cards together. It may allow another choice.
     */
    if (!quota_usage_is_allowed(n, e, shares, count))
        return VERDICT_PLUGIN_ORDER;
    return card_check_placement(n, r, ret);
}

/* Whether its cards have room, each for a share of the request. */
static enum verdict fit_check_cards(struct card_choice *choice, const struct swap *swap)
{
    const struct evaluation *e = choice->evaluation;
    struct share share = request_share(e->request);
    enum verdict v = card_check_all(choice->node, e, &share, swap, &choice->fits);
    return v == VERDICT_FITS && !plugin_choice_may_have(choice->node, e) ? VERDICT_PLUGIN_ORDER : v;
}

/* Whether the node's sum has room, whatever cards are chosen. share.mem includes the pod's
 * overhead, which no card is charged for. So for several cards this overestimates: if it is false,
 * only the chosen cards show that. */
static bool fit_has_sum(const struct node *n, const struct request *r)
{
    return request_fixed(r) &&
           card_check_sum(n, r, request_share(r).mem * request_cards(r)) == VERDICT_FITS;
}

/* Without cards of their own the containers stay together, or each may have its own. together:
 * what fit_check_cards says. */
static enum verdict fit_choose(struct card_choice *choice, const struct swap *swap,
                               enum verdict together, struct placement *ret)
{
    const struct request *r = choice->evaluation->request;
    if (together == VERDICT_FITS)
        return fit_place_together(choice, ret);
    enum verdict v = request_may_part(r) ? fit_place_apart(choice, swap, together, ret) : together;
    return v == VERDICT_FITS ? card_check_placement(choice->node, r, ret) : v;
}

static enum verdict fit_place_shared(const struct node *n, const struct evaluation *e, bool brief,
                                     struct placement *ret)
{
    const struct request *r = e->request;
    assert(n->sizes != NULL && n->n_cards > 0);
    struct card_choice choice = {
        .node = n,
        .evaluation = e,
        .policy = policy_choose(r->card_policy, n->sizes->placement, e->fallback)};
    struct swap swap _uninitialized_;
    card_check_swap(&swap, n, e);
    if (plugin_choice_applies(r))
        return fit_place_by_plugin(&choice, &swap, ret);
    if (request_by_container(r))
        return fit_place_by_container(&choice, &swap, ret);
    enum verdict v = fit_check_cards(&choice, &swap);
    if (brief && v == VERDICT_FITS && fit_has_sum(n, r))
        return VERDICT_FITS;
    return fit_choose(&choice, &swap, v, ret);
}

/* Whether a card that is set aside still has pods of ours, placed before it was set aside. */
static bool fit_is_trespassed(const struct node *n)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].aside && n->cards[i].pods > 0)
            return true;
    }
    return false;
}

/* The other device plugin does not report which card it gives out. So a node has only one kind of
 * pods at a time, or each kind has its own cards. DRA does report it. */
static enum verdict fit_check_exclusive(const struct node *n, const struct request *r)
{
    bool shares = request_shares(r) && n->n_cards > 0; /* else report the node's fault */
    bool excludes = node_exclusive_of(n, r) > 0;
    if (node_has_aside(n))
        return excludes && fit_is_trespassed(n) ? VERDICT_SHARED : VERDICT_FITS;
    if (excludes && (n->n_sharing > 0 || shares))
        return VERDICT_SHARED;
    return shares && n->exclusive > 0 ? VERDICT_EXCLUSIVE : VERDICT_FITS;
}

/* A node with a fault has that as its reason. */
static enum verdict fit_check_isolation(const struct node *n, const struct request *r)
{
    if (!request_shares(r) || n->fault != NODE_OK)
        return VERDICT_FITS;
    if (r->isolated && n->sizes->isolation <= ISOLATION_NONE)
        return VERDICT_ISOLATION;
    if (n->sizes->dialect == r->dialect && !isolation_serves(n->sizes->isolation, request_cards(r)))
        return VERDICT_MPS;
    return VERDICT_FITS;
}

/* Only where cardpack-node runs, whose label the node has: it removes the annotation of a pod that
 * has it by mistake. Elsewhere such a pod would keep all others away. */
static bool fit_is_exchanging(const struct node *n)
{
    return n->n_exchanging > 0 && n->sizes->isolation != ISOLATION_UNKNOWN;
}

/* brief: the caller wants the verdict alone. Where the node's sum is enough for it, no cards are
 * chosen, and *ret is not written. */
static enum verdict fit_place_pod(const struct node *n, const struct evaluation *e, bool brief,
                                  struct placement *ret)
{
    const struct request *r = e->request;
    struct quota_refusal refusal;
    if (n->n_unreadable > 0)
        return VERDICT_UNREADABLE;
    /* Before the rest: kube-scheduler must not evict pods where no eviction helps. */
    enum verdict v = fit_check_isolation(n, r);
    if (v == VERDICT_FITS)
        v = fit_check_exclusive(n, r);
    if (v != VERDICT_FITS)
        return v;
    if (!request_shares(r))
        return quota_usage_evaluate(n, e, 0, &refusal);
    if (n->fault != NODE_OK)
        return fit_fault_verdict(n->fault);
    if (n->sizes->dialect != r->dialect)
        return VERDICT_DIALECT;
    if (n->locked)
        return VERDICT_LOCKED;
    return fit_is_exchanging(n) ? VERDICT_SWAP : fit_place_shared(n, e, brief, ret);
}

/* The evaluation of a pod for which room is kept, as if its namespace held nothing: a quota that
 * denies the pod then denies it for ever, and no room is kept. */
static struct evaluation fit_kept_evaluation(const struct pod *for_pod, const struct evaluation *e)
{
    return (struct evaluation){.request = for_pod->request,
                               .fallback = e->fallback,
                               .learned = e->learned,
                               .account = {.entry = for_pod->tenant->entry},
                               .step_budget = e->step_budget};
}

/* `then`: the node after its deleted pods are gone, with the pods placed for which room is kept and
 * to which the evaluated pod yields. `now`: the same pods, and the deleted pods are still there. On
 * a card the kept room and the deleted pods both count until the deleted pods are gone. For the
 * node's sum the larger of the two counts. */
uint32_t fit_keep_room(struct overlay *now, const struct node *n, const struct evaluation *e)
{
    uint32_t kept = 0;
    struct overlay then _uninitialized_;
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    overlay_init(now, n);
    overlay_init(&then, n);
    then.node.vacated = true;
    evaluation_count_steps(e, 2 * n->n_cards + n->n_pods);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (p->deleting)
            overlay_remove(&then, p);
    }
    for (const struct pod *q = n->kept_for; q != NULL; q = q->next) {
        uint32_t count = 0;
        evaluation_count_steps(e, 1);
        if (!pod_is_kept_before(q, e))
            continue;
        assert(!pod_holds(q) && (!q->kept || q->allocation != NULL));
        const struct evaluation for_pod = fit_kept_evaluation(q, e);
        there.n = 0;
        if (q->kept)
            count = shares_of(q->request, q->allocation->grants, q->allocation->n_grants, false,
                              shares);
        else if (fit_place_pod(&then.node, &for_pod, false, &there) == VERDICT_FITS)
            count = shares_of(q->request, there.grants, there.n, false, shares);
        else
            continue;
        if (!quota_usage_is_allowed(n, &for_pod, shares, count))
            continue;
        kept++;
        overlay_charge(&then, q->request, shares, count, 1);
        overlay_charge(now, q->request, shares, count, 1);
    }
    now->node.used = MAX_OF(n->used, then.node.used);
    now->node.counted = MAX_OF(n->counted, then.node.counted);
    return kept;
}

static enum verdict fit_place_beside_kept(const struct node *n, const struct evaluation *e,
                                          bool brief, struct placement *ret)
{
    struct overlay kept _uninitialized_;
    uint32_t pods = fit_keep_room(&kept, n, e);
    bool fits = plugin_choice_applies(e->request)
                    ? plugin_choice_has_room(&kept.node, n, e)
                    : fit_place_pod(&kept.node, e, brief, ret) == VERDICT_FITS;
    if (!fits && e->shortfall != NULL)
        e->shortfall->pods = pods;
    return fits ? VERDICT_FITS : VERDICT_KEPT;
}

static enum verdict fit_place_on(const struct node *n, const struct evaluation *e, bool brief,
                                 struct placement *ret)
{
    if (n == NULL || n->fault == NODE_ABSENT)
        return VERDICT_UNKNOWN_NODE;
    if (!request_wants(e->request))
        return VERDICT_FITS;
    enum verdict v = fit_place_pod(n, e, brief, ret);
    return v != VERDICT_FITS || n->kept_for == NULL ? v : fit_place_beside_kept(n, e, brief, ret);
}

enum verdict fit_place(const struct node *n, const struct evaluation *e, struct placement *ret)
{
    ret->n = 0;
    return fit_place_on(n, e, false, ret);
}

/* Only whether the request fits. `there` is for the verdicts that depend on the chosen cards. */
static enum verdict fit_evaluate(const struct node *n, const struct evaluation *e)
{
    struct placement there _uninitialized_;
    return fit_place_on(n, e, true, &there);
}

/* Without a table all cards of a node have one model and one size, so the quota's answer is the
 * same for all. */
static enum verdict fit_quota(const struct node *n, const struct evaluation *e)
{
    struct quota_refusal refusal;
    return n->sizes->infos == NULL ? quota_usage_evaluate(n, e, 0, &refusal) : fit_evaluate(n, e);
}

enum verdict fit_node(const struct node *n, const struct evaluation *e)
{
    int64_t mem = e->request->mem;
    if (n == NULL || !e->simple || mem > n->crowded)
        return fit_evaluate(n, e);
    if (e->account.entry != NULL) {
        enum verdict v = fit_quota(n, e);
        if (v != VERDICT_FITS)
            return v;
    }
    if (mem <= n->simple)
        return VERDICT_FITS;
    return mem > n->most_free ? VERDICT_NO_CARD_FREE : VERDICT_NODE_FULL;
}

bool fit_refusal(const struct node *n, const struct evaluation *e, enum verdict v,
                 struct quota_refusal *ret)
{
    if (n == NULL || (v != VERDICT_QUOTA && v != VERDICT_QUOTA_DENIED))
        return false;
    if (!request_shares(e->request))
        return quota_usage_evaluate(n, e, 0, ret) == v;
    struct card_check check _uninitialized_;
    struct share share = request_share(e->request);
    card_check_begin_groups(&check, n, e);
    evaluation_count_steps(e, 2 * (uint64_t)n->n_cards);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (card_check_share(&check, e, &share, i) == v && quota_usage_evaluate(n, e, i, ret) == v)
            return true;
    }
    /* For containers that would be on different cards, because each card is too small for all of
     * them, or because each has its own. */
    bool own = request_by_container(e->request);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        enum verdict its =
            card_usable(&n->cards[i]) ? quota_usage_evaluate(n, e, i, ret) : VERDICT_FITS;
        if (its == v || (own && its != VERDICT_FITS))
            return true;
    }
    return false;
}

bool fit_card_refusal(const struct node *n, const struct evaluation *e, uint32_t card,
                      struct quota_refusal *ret)
{
    assert(card < n->n_cards);
    return quota_usage_evaluate(n, e, card, ret) != VERDICT_FITS;
}

bool fit_swaps(const struct node *n, const struct evaluation *e)
{
    struct swap swap _uninitialized_;
    struct placement there _uninitialized_;
    evaluation_count_steps(e, n->n_pods);
    swap_find(n, e, &swap);
    return swap.cards == SWAP_NONE ||
           (swap.cards == SWAP_ONE && fit_place(n, e, &there) == VERDICT_FITS &&
            !swap_allows_all(&swap, &there));
}

int64_t fit_cost(const struct node *n, const struct request *r)
{
    if (request_fixed(r))
        return r->mem;
    struct share share = request_share(r);
    return share_charge(r, &share, n->largest) * request_cards(r);
}

/* For a whole card or a percentage: the grant is written in the annotation, and the card may have
 * grown since, so that the pod's part is larger than the grant. */
static bool fit_is_outgrown(const struct node *n, const struct request *r,
                            const struct pod_allocation *h, const struct share *s)
{
    struct share granted = {.mem = 0};
    if (r->dialect != DIALECT_OWN)
        return false; /* its annotations say no amount, or see vgpu_falls_short */
    for (uint32_t i = 0; i < h->n_grants; i++)
        granted.mem += h->grants[i].card == s->card ? h->grants[i].mem : 0;
    return share_charge(r, &granted, n->cards[s->card].total) > granted.mem;
}

/* Evaluates the pod's cards on an overlay of the node without the pod. */
enum verdict fit_keep(const struct pod *p)
{
    const struct request *r = p->request;
    const struct evaluation e = {.request = r, .self = p};
    struct overlay without _uninitialized_;
    const struct node *n = &without.node;
    const struct pod_allocation *h = p->allocation;
    struct card_check check _uninitialized_;
    int64_t charge = 0;
    assert(pod_holds(p) && p->node != NULL && h != NULL);
    if (p->node->fault == NODE_ABSENT)
        return VERDICT_UNKNOWN_NODE;
    overlay_init(&without, p->node);
    overlay_remove(&without, p);
    enum verdict v = fit_check_isolation(n, r);
    if (v == VERDICT_FITS)
        v = fit_check_exclusive(n, r);
    if (v != VERDICT_FITS || !request_shares(r))
        return v;
    if (n->fault != NODE_OK)
        return fit_fault_verdict(n->fault);
    if (n->sizes->dialect != r->dialect)
        return VERDICT_DIALECT;
    if (dialect_has_uuids(r->dialect) && vgpu_falls_short(pod_list(p), r, n))
        return VERDICT_NO_CARD_FREE;
    card_check_begin(&check, n, &e);
    for (uint32_t i = 0; i < h->n_shares && v == VERDICT_FITS; i++) {
        const struct share *s = &h->shares[i];
        if (!node_has_card(n, s->card) || fit_is_outgrown(n, r, h, s))
            return VERDICT_NO_CARD_FREE;
        v = card_check_share(&check, &e, s, s->card);
        charge += share_charge(r, s, n->cards[s->card].total);
        if (v == VERDICT_FITS && !swap_allows(&check.swap, s->card))
            v = VERDICT_SWAP;
    }
    if (v == VERDICT_FITS && !plugin_choice_keeps(n, &e, h))
        return VERDICT_PLUGIN_ORDER;
    return v == VERDICT_FITS ? card_check_sum(n, r, charge) : v;
}
