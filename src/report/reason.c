/*
 * Writes the reasons that events and explain show: what a card lacks for a pod, which pod holds it,
 * and what is kept for other pods.
 */
#include "report/reason.h"

#include "core/state/swap.h"
#include "report/shortfall_write.h"

static void reason_put_marks(struct buf *out, const struct card *c)
{
    const char *mark = c->absent      ? "is not there"
                       : c->unhealthy ? "is unhealthy"
                       : c->cordoned  ? "is cordoned"
                       : c->given     ? "is set aside for DRA"
                       : c->claimed   ? "is held by a ResourceClaim"
                                      : "is set aside for nvidia.com/gpu";
    buf_put(out, str_of(mark));
}

static void reason_put_named(struct buf *out, const char *what, struct str name)
{
    if (name.n > 0)
        buf_printf(out, "is %s%.*s", what, STR_ARG(name));
    else
        buf_printf(out, "is of no known %s", what[0] == '\0' ? "uuid" : "model");
}

/* Names the pod that holds the card whole or is of the same anti-affinity group. */
static void reason_put_holder(struct buf *out, const struct node *n, const struct evaluation *e,
                              uint32_t card, enum verdict v, enum reason_reader reader)
{
    const struct request *r = e->request;
    evaluation_count_steps(e, n->n_pods);
    const char *how = v == VERDICT_HELD_WHOLE ? "is held whole by" : "has, of the same group,";
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        bool whole = v == VERDICT_HELD_WHOLE && p->request->whole;
        bool group = v == VERDICT_ANTI_AFFINITY &&
                     str_eq(p->request->anti_affinity, r->anti_affinity) &&
                     str_eq(p->namespace, r->namespace);
        if ((!whole && !group) || !pod_allocation_is_on(p->allocation, card))
            continue;
        if (reader == REASON_FOR_ALL || str_eq(p->namespace, r->namespace))
            buf_printf(out, "%s pod %.*s/%.*s", how, STR_ARG(p->namespace), STR_ARG(p->name));
        else
            buf_printf(out, "%s a pod of another namespace", how);
        return;
    }
    buf_printf(out, "%s another pod", how);
}

static int64_t reason_asked_of(const struct node *n, const struct request *r, uint32_t card)
{
    struct share share = request_share(r);
    return share_charge(r, &share, n->cards[card].total);
}

static void reason_put_figures(struct buf *out, const struct node *n, const struct request *r,
                               uint32_t card)
{
    const struct card *c = &n->cards[card];
    buf_printf(out, "%lld of %lld free, %lld asked", (long long)card_free(c), (long long)c->total,
               (long long)reason_asked_of(n, r, card));
}

static void reason_put_quota(struct buf *out, const struct node *n, const struct evaluation *e,
                             uint32_t card)
{
    struct quota_refusal refusal;
    if (fit_card_refusal(n, e, card, &refusal))
        quota_refusal_write(&refusal, out);
}

/* What the card lacks, if it is not memory. False: it lacks memory, and nothing is written. */
static bool reason_put_shortfall(struct buf *out, const struct node *n, const struct evaluation *e,
                                 uint32_t card, enum verdict v)
{
    const struct card *c = &n->cards[card];
    if (v == VERDICT_AFFINITY)
        buf_put(out, STR("has no pod of the group, which is on another card"));
    else if (v == VERDICT_SWAP && swap_is_one_at_a_time(e->request))
        buf_put(out, STR("another pod of the node waits for the device plugin"));
    else if (v == VERDICT_SWAP)
        buf_put(out, STR("a pod of the same size waits for the device plugin on another card"));
    else if (v == VERDICT_QUOTA || v == VERDICT_QUOTA_DENIED)
        reason_put_quota(out, n, e, card);
    else if (v == VERDICT_NOT_EMPTY)
        buf_printf(out, "holds %u pod%s, and is wanted whole", c->pods, c->pods == 1 ? "" : "s");
    else if (v == VERDICT_POD_LIMIT)
        buf_printf(out, "holds %u pod%s, of %u that are allowed", card_takers(c),
                   card_takers(c) == 1 ? "" : "s", node_card_max_pods(n, card));
    else if (v == VERDICT_NO_CORES)
        buf_printf(out, "%u%% of its compute free, %u%% asked", card_free_cores(c),
                   request_share(e->request).cores);
    else
        return false;
    return true;
}

static bool reason_is_of_size(enum verdict v)
{
    return v == VERDICT_TOO_LARGE || v == VERDICT_NO_CORES || v == VERDICT_NO_CARD_FREE;
}

/* For containers with cards of their own these depend on the container, too. */
static bool reason_is_of_parts(enum verdict v)
{
    return reason_is_of_size(v) || v == VERDICT_FITS || v == VERDICT_KEPT || v == VERDICT_NOT_EMPTY;
}

/* The number of containers that would fit on the card alone. *ret_nearest: the verdict of the
 * container that is nearest to being feasible. */
static uint32_t reason_evaluate_parts(const struct card_check *l, const struct evaluation *e,
                                      uint32_t card, enum verdict *ret_nearest)
{
    const struct request *r = e->request;
    struct request one;
    const struct evaluation part = evaluation_part(e, &one);
    uint32_t fit = 0;
    *ret_nearest = VERDICT_FITS;
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].kind == CONTAINER_INIT && !request_by_container(r))
            continue;
        request_part(&one, r, i);
        enum verdict v = card_check_one(l, &part, card);
        fit += v == VERDICT_FITS ? 1 : 0;
        *ret_nearest = MAX_OF(*ret_nearest, v);
    }
    return fit;
}

void reason_scene_open(struct reason_scene *s, const struct node *n, const struct evaluation *e)
{
    card_check_begin(&s->now, n, e);
    s->kept.node = NULL;
    if (n->kept_for == NULL)
        return;
    fit_keep_room(&s->overlay, n, e);
    card_check_begin(&s->kept, &s->overlay.node, e);
}

/* For containers that have cards of their own: whether one of them would fit. */
static enum verdict reason_evaluate_own(const struct reason_scene *s, const struct evaluation *e,
                                        uint32_t card)
{
    enum verdict nearest = VERDICT_FITS;
    if (reason_evaluate_parts(&s->now, e, card, &nearest) == 0)
        return nearest;
    return s->kept.node != NULL && reason_evaluate_parts(&s->kept, e, card, &nearest) == 0
               ? VERDICT_KEPT
               : VERDICT_FITS;
}

enum verdict reason_evaluate(const struct reason_scene *s, const struct evaluation *e,
                             uint32_t card)
{
    enum verdict nearest = VERDICT_FITS;
    bool kept = s->kept.node != NULL;
    if (request_by_container(e->request))
        return reason_evaluate_own(s, e, card);
    enum verdict v = card_check_one(&s->now, e, card);
    if (v == VERDICT_FITS)
        return kept && card_check_one(&s->kept, e, card) != VERDICT_FITS ? VERDICT_KEPT : v;
    if (!reason_is_of_size(v) || !request_may_part(e->request))
        return v;
    return reason_evaluate_parts(&s->now, e, card, &nearest) > 0 ? VERDICT_NO_CARD_FREE : nearest;
}

/* "4 of 16 free, 24 asked by 3 containers, of which 1 would fit alone" */
static void reason_put_parts(struct buf *out, const struct card_check *l,
                             const struct evaluation *e, uint32_t card)
{
    const struct request *r = e->request;
    const struct node *n = l->node;
    enum verdict nearest = VERDICT_FITS;
    if (request_by_container(r)) {
        buf_printf(out, "%lld of %lld and %u%% of its compute free",
                   (long long)card_free(&n->cards[card]), (long long)n->cards[card].total,
                   card_free_cores(&n->cards[card]));
        buf_printf(out, ", asked by %u containers of which %u would fit there alone", r->n_demands,
                   reason_evaluate_parts(l, e, card, &nearest));
        return;
    }
    reason_put_figures(out, n, r, card);
    if (request_share(r).cores > card_free_cores(&n->cards[card]))
        buf_printf(out, ", and %u%% of %u%% of its compute", request_share(r).cores,
                   card_free_cores(&n->cards[card]));
    buf_printf(out, ", by %u containers of which %u would fit there alone", request_lasting(r),
               reason_evaluate_parts(l, e, card, &nearest));
}

/* The difference between the two states is kept: memory, compute, or a pod of the max-pod limit. */
static void reason_put_kept(struct buf *out, const struct node *n, const struct node *kept,
                            const struct request *r, uint32_t card)
{
    const struct card *now = &n->cards[card];
    const struct card *then = &kept->cards[card];
    int64_t mem = card_free(now) - card_free(then);
    uint32_t max_pods = node_card_max_pods(n, card);
    if (max_pods > 0 && card_takers(then) >= max_pods)
        buf_printf(out, "holds %u pod%s, of %u that are allowed, and %u kept for others",
                   card_takers(now), card_takers(now) == 1 ? "" : "s", max_pods,
                   card_takers(then) - card_takers(now));
    else if (card_free_cores(then) < request_share(r).cores)
        buf_printf(out, "%u%% of its compute free, %u%% asked, but %u%% kept for others",
                   card_free_cores(now), request_share(r).cores,
                   card_free_cores(now) - card_free_cores(then));
    else {
        reason_put_figures(out, n, r, card);
        if (mem > 0)
            buf_printf(out, ", but %lld kept for others", (long long)mem);
        else
            buf_put(out, STR(", but kept for others"));
    }
}

void reason_card(struct buf *out, const struct reason_scene *s, const struct evaluation *e,
                 uint32_t card, enum verdict v, enum reason_reader reader)
{
    const struct request *r = e->request;
    const struct node *n = s->now.node;
    const struct node *kept = s->kept.node;
    struct uuid_room room _uninitialized_;
    if (v == VERDICT_UNUSABLE || v == VERDICT_CLAIMED)
        reason_put_marks(out, &n->cards[card]);
    else if (v == VERDICT_MODEL)
        reason_put_named(out, "a ", node_card_model(n, card));
    else if (v == VERDICT_UUID)
        reason_put_named(out, "", node_card_uuid(n, card, &room));
    else if (v == VERDICT_ANTI_AFFINITY || v == VERDICT_HELD_WHOLE)
        reason_put_holder(out, n, e, card, v, reader);
    else if (v == VERDICT_KEPT && kept != NULL && !request_by_container(r))
        reason_put_kept(out, n, kept, r, card);
    else if ((reason_is_of_size(v) && request_may_part(r)) ||
             (reason_is_of_parts(v) && request_by_container(r)))
        reason_put_parts(out, &s->now, e, card);
    else if (!reason_put_shortfall(out, n, e, card, v))
        reason_put_figures(out, n, r, card);
}

static uint32_t reason_count_fitting(const struct node *n, const struct evaluation *e)
{
    struct card_check check _uninitialized_;
    uint32_t fit = 0;
    card_check_begin(&check, n, e);
    for (uint32_t i = 0; i < n->n_cards; i++)
        fit += card_check_one(&check, e, i) == VERDICT_FITS ? 1 : 0;
    return fit;
}

struct str reason_node(struct buf *scratch, struct str name, const struct node *n,
                       const struct evaluation *e, enum verdict v)
{
    const struct request *r = e->request;
    struct quota_refusal refusal;
    uint32_t fit = request_cards(r) > 1 && n != NULL ? reason_count_fitting(n, e) : 0;
    bool few = shortfall_is_of_few(v, r, fit);
    if (!few && !fit_refusal(n, e, v, &refusal))
        return fit_reason(n, v, name, scratch);
    buf_clear(scratch, SIZE_MAX);
    if (few)
        buf_printf(scratch, SHORTFALL_FEW ": %u free of %u asked", fit, request_cards(r));
    else
        quota_refusal_write(&refusal, scratch);
    return buf_str(scratch);
}

void reason_cards(struct buf *out, const struct node *n, const struct evaluation *e)
{
    char bytes[512];
    struct buf one = BUF_ON(bytes);
    struct reason_scene s _uninitialized_;
    if (n == NULL || !request_shares(e->request))
        return;
    reason_scene_open(&s, n, e);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].absent)
            continue;
        buf_clear(&one, SIZE_MAX);
        buf_printf(&one, "; card %u: ", i);
        reason_card(&one, &s, e, i, reason_evaluate(&s, e, i), REASON_FOR_NAMESPACE);
        if (out->n + one.n + sizeof("; ...") > out->max) {
            buf_put(out, STR("; ..."));
            return;
        }
        buf_put(out, buf_str(&one));
    }
}

static void reason_request_of_one(struct buf *out, const struct request *r)
{
    uint32_t cards = request_cards(r);
    size_t begin = out->n;
    if (r->whole)
        buf_printf(out, "%u whole card%s", cards, cards == 1 ? "" : "s");
    if (r->whole && r->mem > 0)
        buf_printf(out, " of %lld", (long long)request_share(r).mem);
    if (!r->whole && r->percent > 0)
        buf_printf(out, "%u%% of %s", r->percent, cards == 1 ? "a card" : "each card");
    else if (!r->whole && r->mem > 0)
        buf_put_i64(out, request_share(r).mem);
    if (!r->whole && cards > 1)
        buf_printf(out, " on each of %u cards", cards);
    if (r->cores > 0)
        buf_printf(out, ", %u%% of the compute", request_share(r).cores);
    if (r->exclusive > 0)
        buf_printf(out, "%s%u nvidia.com/gpu", out->n > begin ? ", " : "", r->exclusive);
    if (out->n == begin)
        buf_put(out, STR("no card"));
}

static void reason_request_of_cards(struct buf *out, const struct request *r)
{
    struct request one _uninitialized_;
    if (!request_by_container(r)) {
        reason_request_of_one(out, r);
        return;
    }
    for (uint32_t i = 0; i < r->n_demands; i++) {
        request_part(&one, r, i);
        buf_put(out, i == 0 ? STR("") : STR(" + "));
        reason_request_of_one(out, &one);
        if (r->demands[i].kind == CONTAINER_INIT)
            buf_printf(out, " in an init container");
    }
}

/* "1 whole card + 50% of a card", for each container its own; then what DRA is asked for. */
void reason_request(struct buf *out, const struct request *r, uint32_t devices)
{
    bool both = devices == 0 || request_wants(r);
    if (both)
        reason_request_of_cards(out, r);
    if (devices > 0)
        buf_printf(out, "%s%u card%s of a DeviceClass", both ? ", " : "", devices,
                   devices == 1 ? "" : "s");
}
