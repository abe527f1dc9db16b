/*
 * Evaluates the candidates of filter and prioritize, in batches of cache look-ups. A node that is
 * expensive to evaluate is remembered, so that a request which repeats its name costs no more.
 */
#include "report/judge.h"

#include "core/fit.h"
#include "core/limit.h"
#include "core/uses.h"

struct question {
    struct judgement *judgement;
    struct arena *arena;
    size_t n; /* candidates */
    bool readable;
    const struct node *held; /* the node whose cards the pod holds already; or NULL */
    struct lack lack;        /* of the node evaluated last */
    bool avoids_swaps;
    struct score score;
};

static size_t judge_slot_of(const struct judged_nodes *t, const struct node *n)
{
    return (size_t)(((uintptr_t)n >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & t->mask;
}

/* The slot of the node, or the empty slot for it. */
static size_t judge_slot_find(const struct judged_nodes *t, const struct node *n)
{
    size_t at = judge_slot_of(t, n);
    while (t->table[at] != 0 && t->nodes[t->table[at] - 1] != n)
        at = (at + 1) & t->mask;
    return at;
}

size_t judge_first(const struct judgement *j, const struct node *n, size_t i)
{
    const struct judged_nodes *t = &j->judged;
    if (t->nodes == NULL)
        return i;
    size_t at = judge_slot_find(t, n);
    return t->table[at] == 0 ? i : t->table[at] - 1;
}

/* Allocates the table for the first expensive node: most requests have no such node. False: no
 * memory. */
static bool judge_open_judged(struct question *q)
{
    struct judged_nodes *t = &q->judgement->judged;
    size_t slots = 64;
    if (t->nodes != NULL)
        return true;
    while (slots < 2 * q->n)
        slots *= 2;
    t->mask = slots - 1;
    t->table = arena_array(q->arena, slots, sizeof(*t->table));
    t->nodes = arena_array(q->arena, q->n, sizeof(struct node *));
    return t->table != NULL && t->nodes != NULL;
}

/* Sums up what a node that refuses the pod has. one: what its cards have; NULL: they were not
 * evaluated. Without memory for the sums, judge() fails. */
static enum verdict judge_note(struct question *q, const struct node *n, enum verdict v,
                               const struct lack *one)
{
    struct judgement *j = q->judgement;
    if (v == VERDICT_FITS || n == NULL)
        return v;
    if (j->lacks == NULL)
        j->lacks = arena_array(q->arena, VERDICT_COUNT, sizeof(*j->lacks));
    if (j->lacks != NULL)
        lack_add(&j->lacks[v], n, &j->request, v, one);
    if ((v == VERDICT_QUOTA || v == VERDICT_QUOTA_DENIED) && j->denied == NULL) {
        j->denied = n;
        j->denial = v;
    }
    return v;
}

/* Evaluates all cards of the node, once for a request even if it names the node several times. */
static enum verdict judge_dear(struct question *q, const struct node *n, size_t i)
{
    struct judged_nodes *t = &q->judgement->judged;
    if (!judge_open_judged(q) || work_is_over(q->judgement->request.work))
        return VERDICT_UNKNOWN_NODE; /* not reported: judge() fails */
    size_t at = judge_slot_find(t, n);
    if (t->table[at] != 0)
        return (enum verdict)q->judgement->verdicts[t->table[at] - 1];
    t->table[at] = (uint32_t)i + 1;
    t->nodes[i] = n;
    q->lack = (struct lack){.free = 0};
    return judge_note(q, n, fit_node(n, &q->judgement->request), &q->lack);
}

/* Whether the score needs fit_swaps, which is as expensive as a verdict. */
static bool judge_is_scored_by_swaps(const struct question *q, const struct node *n)
{
    return q->avoids_swaps && q->judgement->scores != NULL && n != NULL && n->n_starting > 0;
}

static enum verdict judge_one(struct question *q, const struct node *n, size_t i)
{
    const struct request *r = &q->judgement->request;
    if (!q->readable)
        return VERDICT_BAD_REQUEST;
    if (q->held != NULL && n != NULL)
        return n == q->held ? VERDICT_FITS : VERDICT_HELD_ELSEWHERE;
    bool swaps = judge_is_scored_by_swaps(q, n);
    if (fit_simply(n, r) && !swaps)
        return VERDICT_FITS;
    return fit_is_cheap(n, r) && !swaps ? judge_note(q, n, fit_node(n, r), NULL)
                                        : judge_dear(q, n, i);
}

/* A pod without cards costs something, too: the cores that pods with cards need. */
static bool judge_compares(const struct question *q)
{
    const struct request *r = &q->judgement->request;
    return request_shares(r) || (!request_wants(r) && pack_has_costs(q->score.policy));
}

static uint64_t judge_score_one(struct question *q, const struct node *n, size_t i)
{
    const struct request *r = &q->judgement->request;
    assert(n != NULL);
    if (q->held != NULL)
        return SCORE_BEST;
    if (!judge_compares(q))
        return SCORE_NONE;
    size_t first = judge_first(q->judgement, n, i);
    if (first != i)
        return q->judgement->scores[first];
    uint64_t score = score_node(&q->score, n);
    return q->avoids_swaps && !fit_swaps(n, r) ? score_favoured(score) : score;
}

static void judge_batch(struct question *q, const struct node *const *nodes, size_t n, size_t at)
{
    struct judgement *j = q->judgement;
    for (size_t k = 0; j->scores != NULL && k < n; k++) {
        if (nodes[k] != NULL)
            __builtin_prefetch(&nodes[k]->used);
    }
    for (size_t k = 0; k < n; k++) {
        enum verdict v = judge_one(q, nodes[k], at + k);
        j->verdicts[at + k] = (unsigned char)v;
        j->counts[v]++;
        if (j->scores != NULL && v == VERDICT_FITS)
            j->scores[at + k] = judge_score_one(q, nodes[k], at + k);
        work_next_node(j->request.work);
    }
    j->request.work->steps += n;
}

static enum errc judge_no_room(const struct arena *a, struct err *reterr)
{
    if (arena_failed(a))
        return err_set(reterr, arena_fault(a), "cardpack is out of memory");
    return err_set(reterr, ERR_LIMIT,
                   "the pod's request takes more than %llu steps on these nodes, the limit for one "
                   "question",
                   (unsigned long long)LIMIT_REQUEST_STEPS);
}

/*
 * kube-scheduler asks again about a pod that already holds a card when its Binding is in doubt, or
 * (version 1.20) when it requeues a bound pod. Only the node of that card is feasible for the pod:
 * there a bind succeeds, or resolves the Binding in doubt.
 */
enum errc judge(const struct cache *cache, struct work *work, const struct filter_args *args,
                struct arena *a, bool scored, struct judgement *ret, struct err *reterr)
{
    struct judgement j = {.verdicts = arena_alloc(a, args->n)};
    work_begin(work, args->n);
    if (scored)
        j.scores = arena_array(a, args->n, sizeof(*j.scores));
    if (j.verdicts == NULL || (scored && j.scores == NULL))
        return judge_no_room(a, reterr);
    bool readable = request_read(&args->pod, &j.request, &j.bad_request) == OK;
    enum pack policy = pack_choose(j.request.node_policy, PACK_UNSET, cache->settings.node_policy);
    cache_resolve(cache, args->pod.uid, &j.request);
    j.request.work = work;
    if (j.request.account.entry != NULL)
        j.request.memo = arena_alloc(a, sizeof(*j.request.memo));
    const struct pod *p = j.request.self;
    struct question q = {.judgement = &j,
                         .arena = a,
                         .n = args->n,
                         .readable = readable,
                         .held = p != NULL && pod_holds(p) ? p->node : NULL,
                         .avoids_swaps = cache->settings.swap_guard == SWAP_GUARD_PREFER};
    score_begin(&q.score, &j.request, policy);
    j.request.lack = &q.lack;
    for (size_t i = 0; i < args->n && !work_is_over(work); i += MAP_BATCH) {
        const struct node *nodes[MAP_BATCH];
        size_t n = MIN_OF(args->n - i, MAP_BATCH);
        cache_nodes_each(cache, args->names + i, n, nodes);
        judge_batch(&q, nodes, n, i);
    }
    j.request.lack = NULL;
    *ret = j;
    return arena_failed(a) || work_is_over(work) ? judge_no_room(a, reterr) : OK;
}
