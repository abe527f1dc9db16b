/*
 * Places the replicas one by one with a heap of the feasible nodes, the best on top. A replica
 * changes only its own node, and only takes room away, so a node is evaluated again only when it
 * comes to the top.
 *
 * The work is bounded, because the process does nothing else meanwhile. Most questions stay far
 * below the limit; thousands of replicas on one node, each evaluated beside all others, do not.
 */
#include "report/plan.h"

#include "core/limit.h"
#include "core/place/fit.h"
#include "core/place/score.h"
#include "core/state/overlay.h"
#include "core/state/quota_usage.h"

/* How many whole cards DRA has left, at most, beside `planned` ones. Claims, and the present pods
 * of GPUSHARE_RESOURCE_EXCLUSIVE, have the same cards or others: the larger number counts. Without
 * a known card the number of DRA's is not known either. */
static int64_t plan_unclaimed(const struct node *n, int64_t present, int64_t planned)
{
    int64_t cards = 0;
    int64_t claimed = 0;
    if (n->n_cards == 0 && n->sliced)
        return INT64_MAX;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        cards += c->absent || c->unhealthy ? 0 : 1;
        claimed += !c->unhealthy && (c->claimed || c->lent > 0) ? 1 : 0;
    }
    return cards - MAX_OF(claimed, present) - planned;
}

/* plan_evaluate, where so many replicas of the request are in the node already. */
static enum verdict plan_evaluate_beside(const struct node *n, const struct evaluation *e,
                                         uint32_t replicas)
{
    const struct request *r = e->request;
    enum verdict v = fit_node(n, e);
    if (v != VERDICT_FITS || (r->exclusive == 0 && e->devices == 0))
        return v;
    int64_t mine = (int64_t)replicas * node_exclusive_held(n, r);
    int64_t cards = (int64_t)r->exclusive - r->renamed;
    int64_t asked = (int64_t)e->devices + (n->delegated ? cards : 0);
    int64_t planned = (int64_t)replicas * asked;
    if (asked > 0 && plan_unclaimed(n, n->exclusive - mine, planned) < asked)
        return e->devices > 0 ? VERDICT_NO_DEVICES : VERDICT_NO_EXCLUSIVE;
    int64_t has = n->sizes == NULL ? 0 : n->sizes->exclusive;
    int64_t renamed = n->sizes == NULL ? 0 : n->sizes->renamed;
    bool lacks = (!n->delegated && cards > 0 && n->exclusive - n->renamed + cards > has) ||
                 (r->renamed > 0 && n->renamed + r->renamed > renamed);
    return lacks ? VERDICT_NO_EXCLUSIVE : VERDICT_FITS;
}

enum verdict plan_evaluate(const struct node *n, const struct evaluation *e)
{
    return plan_evaluate_beside(n, e, 0);
}

static bool plan_better(const struct plan_site *a, const struct plan_site *b)
{
    return a->score != b->score ? a->score > b->score : str_cmp(a->real->name, b->real->name) < 0;
}

static void plan_swap(struct plan_site **a, struct plan_site **b)
{
    struct plan_site *t = *a;
    *a = *b;
    *b = t;
}

static void plan_heap_push(struct plan *p, struct plan_site *s)
{
    assert(p->n_heap < p->n_sites);
    size_t at = p->n_heap++;
    p->heap[at] = s;
    for (; at > 0 && plan_better(p->heap[at], p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        plan_swap(&p->heap[at], &p->heap[(at - 1) / 2]);
}

static struct plan_site *plan_heap_pop(struct plan *p)
{
    assert(p->n_heap > 0);
    struct plan_site *top = p->heap[0];
    p->heap[0] = p->heap[--p->n_heap];
    for (size_t at = 0; 2 * at + 1 < p->n_heap;) {
        size_t child = 2 * at + 1;
        if (child + 1 < p->n_heap && plan_better(p->heap[child + 1], p->heap[child]))
            child++;
        if (!plan_better(p->heap[child], p->heap[at]))
            break;
        plan_swap(&p->heap[child], &p->heap[at]);
        at = child;
    }
    return top;
}

static void plan_offer(struct plan *p, struct plan_site *s)
{
    evaluation_count_steps(&p->evaluation, 8); /* the copy of the node, too */
    if (plan_evaluate_beside(&s->node, &p->evaluation, s->replicas) != VERDICT_FITS)
        return;
    if (request_shares(p->evaluation.request) && s->node.n_cards > 0)
        s->score = score_node(&p->score, &s->node);
    if (s->score != SCORE_NONE && p->avoids_swaps && !fit_swaps(&s->node, &p->evaluation))
        s->score = score_favoured(s->score);
    plan_heap_push(p, s);
}

static enum errc plan_open_sites(struct plan *p, const struct cache *c)
{
    size_t cursor = 0;
    p->sites = arena_array(p->arena, c->nodes.n, sizeof(*p->sites));
    p->heap = arena_array(p->arena, c->nodes.n, sizeof(struct plan_site *));
    p->spots = arena_array(p->arena, p->replicas, sizeof(*p->spots));
    if (arena_failed(p->arena))
        return arena_fault(p->arena);
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        if (n->fault == NODE_ABSENT)
            continue;
        assert(p->n_sites < c->nodes.n);
        struct plan_site *s = &p->sites[p->n_sites++];
        *s = (struct plan_site){.node = *n, .real = n};
        p->exhausted = p->exhausted || step_budget_is_spent(p->evaluation.step_budget);
        if (!p->exhausted)
            plan_offer(p, s);
        step_budget_next_node(p->evaluation.step_budget);
    }
    return OK;
}

/* The quota account of the replicas' namespace: a copy of the sums, which the replicas are charged
 * to. */
static enum errc plan_open_account(struct plan *p)
{
    struct quota_account *a = &p->evaluation.account;
    p->evaluation.memo = NULL; /* an answer for one replica is not valid for the next */
    if (a->entry == NULL)
        return OK;
    assert(p->tenant.entry == NULL);
    struct quota_sum *used = arena_array(p->arena, a->entry->n_limits, sizeof(*used));
    if (used == NULL)
        return arena_fault(p->arena);
    if (a->used != NULL)
        memcpy(used, a->used, a->entry->n_limits * sizeof(*used));
    a->used = used;
    p->tenant = (struct quota_tenant){.entry = a->entry, .used = used};
    return OK;
}

static void plan_charge_account(struct plan *p, const struct node *n,
                                const struct pod_allocation *h)
{
    struct quota_use uses[QUOTA_USAGE_MAX];
    if (p->tenant.entry == NULL)
        return;
    uint32_t count = quota_usage_of(n, p->evaluation.request, h->shares, h->n_shares, uses);
    for (uint32_t i = 0; i < count; i++)
        quota_charge(&p->tenant, &uses[i], 1);
}

/* The replica as a pod of the site, so that later replicas see it and its groups. On a guarded
 * node, and under a lock, `starting` is false: the plan assumes that the next replica comes after
 * the device plugin has acknowledged this one. */
static struct pod *plan_make_pod(struct plan *p, const struct node *at,
                                 const struct placement *there)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    uint32_t n = shares_of(p->evaluation.request, there->grants, there->n, false, shares);
    struct pod *pod = arena_alloc(p->arena, sizeof(*pod));
    struct pod_allocation *h = arena_alloc(p->arena, sizeof(*h));
    struct grant *grants = arena_array(p->arena, there->n, sizeof(*grants));
    struct share *kept = arena_array(p->arena, n, sizeof(*kept));
    if (arena_failed(p->arena))
        return NULL;
    if (n > 0) {
        memcpy(grants, there->grants, there->n * sizeof(*grants));
        memcpy(kept, shares, n * sizeof(*kept));
    }
    bool served = node_is_guarded(at) ||
                  dialect_facts(p->evaluation.request->dialect)->match == DIALECT_MATCH_LOCK;
    *h = (struct pod_allocation){
        .n_shares = n, .n_grants = there->n, .grants = grants, .shares = kept};
    *pod = (struct pod){.namespace = p->evaluation.request->namespace,
                        .state = POD_RESERVED,
                        .start = !served && request_shares(p->evaluation.request) ? POD_STARTING
                                                                                  : POD_STARTED,
                        .ack = POD_ACK_WAITS,
                        .request = p->evaluation.request,
                        .allocation = h,
                        .card = n == 0 ? -1 : (int32_t)kept[0].card};
    return pod;
}

static enum errc plan_put_replica(struct plan *p, struct plan_site *s,
                                  const struct placement *there)
{
    struct pod *pod = plan_make_pod(p, &s->node, there);
    if (pod != NULL && s->replicas == 0 && s->node.n_cards > 0) {
        struct card *cards = arena_array(p->arena, s->node.n_cards, sizeof(*cards));
        if (cards != NULL)
            memcpy(cards, s->node.cards, s->node.n_cards * sizeof(*cards));
        s->node.cards = cards;
    }
    if (arena_failed(p->arena))
        return arena_fault(p->arena);
    assert(p->fit < p->replicas);
    evaluation_count_steps(&p->evaluation,
                           s->node.n_cards + 8 * there->n); /* the answer lists them */
    overlay_add(&s->node, pod);
    plan_charge_account(p, &s->node, pod->allocation);
    p->evaluation.affinity_held = p->evaluation.request->affinity.n > 0;
    p->spots[p->fit++] = (struct plan_spot){.site = s, .allocation = pod->allocation};
    s->replicas++;
    return OK;
}

static enum errc plan_place_all(struct plan *p)
{
    /* Evaluating every node once is not limited here: filter does the same. */
    uint64_t most = p->evaluation.step_budget->steps + LIMIT_PLAN_LOOKS;
    while (p->fit < p->replicas && p->n_heap > 0 && !p->exhausted) {
        struct placement there _uninitialized_;
        if (p->evaluation.step_budget->steps > most) {
            p->exhausted = true;
            return OK;
        }
        struct plan_site *s = plan_heap_pop(p);
        evaluation_count_steps(&p->evaluation, 1);
        /* It was feasible when it was pushed. Since then its affinity group may have got a card on
         * another node, and other replicas may have used up the quota. */
        if (fit_place(&s->node, &p->evaluation, &there) != VERDICT_FITS)
            continue;
        enum errc code = plan_put_replica(p, s, &there);
        if (code != OK)
            return code;
        plan_offer(p, s);
    }
    return OK;
}

enum errc plan_make(struct plan *p, const struct cache *c, const struct evaluation *e,
                    uint32_t replicas, struct arena *a)
{
    *p = (struct plan){.arena = a, .evaluation = *e, .replicas = replicas};
    p->avoids_swaps = c->settings.swap_guard == SWAP_GUARD_PREFER;
    if (e->step_budget == NULL) {
        step_budget_begin(&p->own, c->nodes.n);
        p->evaluation.step_budget = &p->own;
    }
    score_begin(&p->score, &p->evaluation,
                policy_choose(e->request->node_policy, POLICY_UNSET, c->settings.node_policy));
    enum errc code = plan_open_account(p);
    if (code == OK)
        code = plan_open_sites(p, c);
    return code == OK ? plan_place_all(p) : code;
}

enum verdict plan_next(const struct plan *p, const struct plan_site *s)
{
    return plan_evaluate_beside(&s->node, &p->evaluation, s->replicas);
}
