/* Converts shares into uses of a quota, charges them, and answers from the evaluation's memo
 * where possible. */
#include "core/state/quota_usage.h"

#include "core/request/tally.h"

/* So that two sums of memory don't overflow. */
#define QUOTA_USAGE_MEM_CAP (INT64_MAX / 4)

static struct str quota_usage_pool_of(const struct node *n)
{
    return n->sizes == NULL ? STR_NULL : n->sizes->pool;
}

/* Compute is counted as requested, even for a whole card: no device plugin divides the compute of a
 * whole card. */
static struct quota_use quota_usage_make(struct str pool, struct str model, int64_t mem,
                                         int64_t cards, int64_t cores)
{
    return (struct quota_use){
        .pool = pool,
        .model = model,
        .amount = {[QUOTA_MEMORY] = mem, [QUOTA_CARDS] = cards, [QUOTA_COMPUTE] = cores}};
}

static struct quota_use quota_usage_of_share(const struct node *n, const struct request *r,
                                             const struct share *s, uint32_t times)
{
    bool placed = node_has_card(n, s->card);
    assert(times > 0 && s->mem >= 0);
    int64_t mem = placed ? share_charge(r, s, n->cards[s->card].total) : s->mem;
    return quota_usage_make(quota_usage_pool_of(n), placed ? node_card_model(n, s->card) : STR_NULL,
                            MIN_OF(mem, INT64_MAX / times) * times, times,
                            (int64_t)s->cores * times);
}

/* Containers with cards of their own, all on cards like this one, and on as few as possible. */
static struct quota_use quota_usage_of_containers(const struct node *n, const struct request *r,
                                                  uint32_t card)
{
    bool there = node_has_card(n, card);
    struct str model = there ? node_card_model(n, card) : STR_NULL;
    int64_t total = there ? n->cards[card].total : 0;
    struct tally mem = {0};
    uint32_t cards = 0;
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        int64_t part = demand_part_of(r, d, total);
        if (demand_is_whole(d))
            part = MAX_OF(part, total);
        tally_add(&mem, MIN_OF(part, QUOTA_USAGE_MEM_CAP / d->cards) * d->cards, d->kind,
                  QUOTA_USAGE_MEM_CAP);
        cards = MAX_OF(cards, d->cards);
    }
    return quota_usage_make(quota_usage_pool_of(n), model, tally_peak(&mem), cards, r->cores);
}

static struct quota_use quota_usage_of_exclusive(const struct node *n, const struct request *r)
{
    return quota_usage_make(quota_usage_pool_of(n), n->sizes == NULL ? STR_NULL : n->sizes->model,
                            0, r->exclusive, 0);
}

uint32_t quota_usage_of(const struct node *n, const struct request *r, const struct share *shares,
                        uint32_t n_shares, struct quota_use *ret)
{
    uint32_t count = 0;
    assert(n_shares < QUOTA_USAGE_MAX);
    for (uint32_t i = 0; i < n_shares; i++)
        ret[count++] = quota_usage_of_share(n, r, &shares[i], 1);
    if (n_shares == 0 && request_shares(r))
        ret[count++] =
            quota_usage_make(quota_usage_pool_of(n), STR_NULL, r->mem, request_cards(r), r->cores);
    if (r->exclusive > 0)
        ret[count++] = quota_usage_of_exclusive(n, r);
    assert(count <= QUOTA_USAGE_MAX);
    return count;
}

void quota_usage_charge(const struct pod *p, int sign)
{
    struct quota_use uses[QUOTA_USAGE_MAX];
    if (p->tenant == NULL || p->tenant->entry == NULL)
        return;
    assert(p->node != NULL && p->allocation != NULL);
    uint32_t n =
        quota_usage_of(p->node, p->request, p->allocation->shares, p->allocation->n_shares, uses);
    for (uint32_t i = 0; i < n; i++)
        quota_charge(p->tenant, &uses[i], sign);
}

static enum verdict quota_usage_ask(const struct evaluation *e, const struct quota_use *uses,
                                    uint32_t n, struct quota_refusal *ret)
{
    const struct quota_entry *its = e->account.entry;
    uint64_t compared = 0;
    bool fits = quota_fit(&e->account, uses, n, ret, &compared);
    evaluation_count_steps(e, n * (1 + its->n_limits + its->n_pools + its->n_models) +
                                  compared / LIMIT_STEP_BYTES);
    if (fits)
        return VERDICT_FITS;
    return quota_refusal_is_final(ret) ? VERDICT_QUOTA_DENIED : VERDICT_QUOTA;
}

/* Only the memory is compared: the other amounts are the same for all cards. */
static bool quota_usage_is_same(const struct quota_use *a, const struct quota_use *b)
{
    return a->amount[QUOTA_MEMORY] == b->amount[QUOTA_MEMORY] && str_eq(a->model, b->model) &&
           str_eq(a->pool, b->pool);
}

static enum verdict quota_usage_recall(const struct evaluation *e, const struct quota_use *use,
                                       struct quota_refusal *ret)
{
    struct quota_usage_memo *m = e->memo;
    for (uint32_t i = 0; i < m->n; i++) {
        evaluation_count_steps(e, 1);
        if (!quota_usage_is_same(&m->answers[i].use, use))
            continue;
        *ret = m->answers[i].refusal;
        return m->answers[i].verdict;
    }
    enum verdict v = quota_usage_ask(e, use, 1, ret);
    if (m->n < COUNT_OF(m->answers)) {
        m->answers[m->n].use = *use;
        m->answers[m->n].verdict = v;
        m->answers[m->n].refusal = *ret;
        m->n++;
    }
    return v;
}

enum verdict quota_usage_evaluate(const struct node *n, const struct evaluation *e, uint32_t card,
                                  struct quota_refusal *ret)
{
    const struct request *r = e->request;
    struct quota_use uses[2];
    struct share share = request_share(r);
    uint32_t count = 0;
    *ret = (struct quota_refusal){.limit = 0};
    if (e->account.entry == NULL)
        return VERDICT_FITS;
    share.card = card;
    if (request_by_container(r))
        uses[count++] = quota_usage_of_containers(n, r, card);
    else if (request_shares(r))
        uses[count++] = quota_usage_of_share(n, r, &share, request_cards(r));
    if (r->exclusive > 0)
        uses[count++] = quota_usage_of_exclusive(n, r);
    return e->memo != NULL && count == 1 ? quota_usage_recall(e, uses, ret)
                                         : quota_usage_ask(e, uses, count, ret);
}

bool quota_usage_is_allowed(const struct node *n, const struct evaluation *e,
                            const struct share *shares, uint32_t n_shares)
{
    struct quota_use uses[QUOTA_USAGE_MAX];
    struct quota_refusal refusal;
    return e->account.entry == NULL ||
           quota_usage_ask(e, uses, quota_usage_of(n, e->request, shares, n_shares, uses),
                           &refusal) == VERDICT_FITS;
}
