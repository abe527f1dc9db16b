#include "reason.h"

static void put_marks(struct buf *out, const struct card *c)
{
    const char *mark = c->absent      ? "is not there"
                       : c->unhealthy ? "is unhealthy"
                       : c->cordoned  ? "is cordoned"
                                      : "is set aside for nvidia.com/gpu";
    buf_put(out, str_of(mark));
}

static void put_named(struct buf *out, const char *what, struct str name)
{
    if (name.n > 0)
        buf_printf(out, "is %s%.*s", what, STR_ARG(name));
    else
        buf_printf(out, "is of no known %s", what[0] == '\0' ? "uuid" : "model");
}

/* The pod that stands in the way, where it is one. */
static void put_holder(struct buf *out, const struct node *n, const struct request *r,
                       uint32_t card, enum verdict v, enum reason_reader reader)
{
    const char *how = v == VERDICT_HELD_WHOLE ? "is held whole by" : "has, of the same group,";
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        bool whole = v == VERDICT_HELD_WHOLE && p->request->whole;
        bool group = v == VERDICT_ANTI_AFFINITY &&
                     str_eq(p->request->anti_affinity, r->anti_affinity) &&
                     str_eq(p->namespace, r->namespace);
        if ((!whole && !group) || !holding_is_on(p->holding, card))
            continue;
        if (reader == REASON_FOR_ALL || str_eq(p->namespace, r->namespace))
            buf_printf(out, "%s pod %.*s/%.*s", how, STR_ARG(p->namespace), STR_ARG(p->name));
        else
            buf_printf(out, "%s a pod of another namespace", how);
        return;
    }
    buf_printf(out, "%s another pod", how);
}

static int64_t asked_of(const struct node *n, const struct request *r, uint32_t card)
{
    struct share share = request_share(r);
    return share_charge(r, &share, n->cards[card].total);
}

static void put_figures(struct buf *out, const struct node *n, const struct request *r,
                        uint32_t card)
{
    const struct card *c = &n->cards[card];
    buf_printf(out, "%lld of %lld free, %lld asked", (long long)card_free(c), (long long)c->total,
               (long long)asked_of(n, r, card));
}

static void put_quota(struct buf *out, const struct node *n, const struct request *r, uint32_t card)
{
    struct quota_refusal refusal;
    if (policy_card_refusal(n, r, card, &refusal))
        quota_refusal_write(&refusal, out);
}

/* What a card that is there lacks, other than memory; false: memory it is. */
static bool put_lack(struct buf *out, const struct node *n, const struct request *r, uint32_t card,
                     enum verdict v)
{
    const struct card *c = &n->cards[card];
    if (v == VERDICT_AFFINITY)
        buf_put(out, STR("has no pod of the group, which is on another card"));
    else if (v == VERDICT_QUOTA || v == VERDICT_QUOTA_DENIED)
        put_quota(out, n, r, card);
    else if (v == VERDICT_NOT_EMPTY)
        buf_printf(out, "holds %u pod%s, and is wanted whole", c->pods, c->pods == 1 ? "" : "s");
    else if (v == VERDICT_POD_LIMIT)
        buf_printf(out, "holds %u pod%s, of %u that are allowed", c->pods, c->pods == 1 ? "" : "s",
                   n->sizes->max_pods);
    else if (v == VERDICT_NO_CORES)
        buf_printf(out, "%u%% of its compute free, %u%% asked", card_free_cores(c),
                   request_share(r).cores);
    else
        return false;
    return true;
}

/* A container alone, where all of them may be on cards of their own. */
static void load_part(struct request *to, const struct request *r, uint32_t demand)
{
    const struct demand *d = &r->demands[demand];
    request_load(to, r);
    to->n_demands = 1;
    to->demands[0] = *d;
    to->mem = to->lasting_mem = d->mem;
    to->cores = to->lasting_cores = d->cores;
}

static bool is_of_size(enum verdict v)
{
    return v == VERDICT_TOO_LARGE || v == VERDICT_NO_CORES || v == VERDICT_NO_CARD_FREE;
}

/* How many of the containers would fit there alone; and of those that don't the nearest verdict. */
static uint32_t judge_parts(const struct node *n, const struct request *r, uint32_t card,
                            enum verdict *ret_nearest)
{
    struct request one;
    uint32_t fit = 0;
    *ret_nearest = VERDICT_TOO_LARGE;
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].kind == CONTAINER_INIT)
            continue;
        load_part(&one, r, i);
        enum verdict v = policy_card(n, &one, card);
        fit += v == VERDICT_FITS ? 1 : 0;
        *ret_nearest = MAX_OF(*ret_nearest, v);
    }
    return fit;
}

enum verdict reason_judge(const struct node *n, const struct node *kept, const struct request *r,
                          uint32_t card)
{
    enum verdict nearest = VERDICT_FITS;
    enum verdict v = policy_card(n, r, card);
    if (v == VERDICT_FITS)
        return kept != NULL && policy_card(kept, r, card) != VERDICT_FITS ? VERDICT_KEPT : v;
    if (!is_of_size(v) || !request_may_part(r))
        return v;
    return judge_parts(n, r, card, &nearest) > 0 ? VERDICT_NO_CARD_FREE : nearest;
}

/* "4 of 16 free, 24 asked by 3 containers, of which 1 would fit alone" */
static void put_parts(struct buf *out, const struct node *n, const struct request *r, uint32_t card)
{
    enum verdict nearest = VERDICT_FITS;
    put_figures(out, n, r, card);
    if (request_share(r).cores > card_free_cores(&n->cards[card]))
        buf_printf(out, ", and %u%% of %u%% of its compute", request_share(r).cores,
                   card_free_cores(&n->cards[card]));
    buf_printf(out, ", by %u containers of which %u would fit there alone", request_lasting(r),
               judge_parts(n, r, card, &nearest));
}

/* The difference is what is kept; of anything but memory the verdict says enough. */
static void put_kept(struct buf *out, const struct node *n, const struct node *kept,
                     const struct request *r, uint32_t card)
{
    int64_t mem = card_free(&n->cards[card]) - card_free(&kept->cards[card]);
    put_figures(out, n, r, card);
    if (mem > 0)
        buf_printf(out, ", but %lld kept for others", (long long)mem);
    else
        buf_put(out, STR(", but kept for others"));
}

void reason_card(struct buf *out, const struct node *n, const struct node *kept,
                 const struct request *r, uint32_t card, enum verdict v, enum reason_reader reader)
{
    if (v == VERDICT_UNUSABLE)
        put_marks(out, &n->cards[card]);
    else if (v == VERDICT_MODEL)
        put_named(out, "a ", node_card_model(n, card));
    else if (v == VERDICT_UUID)
        put_named(out, "", node_card_uuid(n, card));
    else if (v == VERDICT_ANTI_AFFINITY || v == VERDICT_HELD_WHOLE)
        put_holder(out, n, r, card, v, reader);
    else if (v == VERDICT_KEPT && kept != NULL)
        put_kept(out, n, kept, r, card);
    else if (is_of_size(v) && request_may_part(r))
        put_parts(out, n, r, card);
    else if (!put_lack(out, n, r, card, v))
        put_figures(out, n, r, card);
}

struct str reason_node(struct buf *scratch, struct str name, const struct node *n,
                       const struct request *r, enum verdict v)
{
    struct quota_refusal refusal;
    if (!policy_refusal(n, r, v, &refusal))
        return policy_reason(n, v, name, scratch);
    buf_clear(scratch, SIZE_MAX);
    quota_refusal_write(&refusal, scratch);
    return buf_str(scratch);
}

void reason_cards(struct buf *out, const struct node *n, const struct request *r)
{
    char bytes[512];
    struct buf one = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes) - 1};
    struct draft d _uninitialized_;
    const struct node *kept = NULL;
    if (n == NULL || !request_shares(r))
        return;
    if (n->claims != NULL) {
        policy_keep_claims(&d, n, r);
        kept = &d.node;
    }
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].absent)
            continue;
        buf_clear(&one, SIZE_MAX);
        buf_printf(&one, "; card %u: ", i);
        reason_card(&one, n, kept, r, i, reason_judge(n, kept, r, i), REASON_FOR_NAMESPACE);
        if (out->n + one.n + sizeof("; ...") > out->max) {
            buf_put(out, STR("; ..."));
            return;
        }
        buf_put(out, buf_str(&one));
    }
}

void reason_request(struct buf *out, const struct request *r)
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
        buf_printf(out, "%lld", (long long)request_share(r).mem);
    if (!r->whole && cards > 1)
        buf_printf(out, " on each of %u cards", cards);
    if (r->cores > 0)
        buf_printf(out, ", %u%% of the compute", request_share(r).cores);
    if (r->exclusive > 0)
        buf_printf(out, "%s%u nvidia.com/gpu", out->n > begin ? ", " : "", r->exclusive);
    if (out->n == begin)
        buf_put(out, STR("no card"));
}
