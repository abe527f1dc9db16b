#include "judge.h"

#include "policy.h"
#include "uses.h"

struct question {
    struct judgement *judgement;
    enum pack policy;
    bool readable;
    const struct node *held; /* where the pod has its place already; or NULL */

    /* Of the last node: the next is often like it, and a score costs a long division. */
    int64_t total;
    int64_t used;
    uint64_t score;
};

static enum verdict judge_one(const struct question *q, const struct node *n)
{
    const struct request *r = &q->judgement->request;
    if (!q->readable)
        return VERDICT_BAD_REQUEST;
    if (q->held != NULL && n != NULL)
        return n == q->held ? VERDICT_FITS : VERDICT_HELD_ELSEWHERE;
    return policy_fits_simply(n, r) ? VERDICT_FITS : policy_fit(n, r);
}

static uint64_t score_one(struct question *q, const struct node *n)
{
    const struct request *r = &q->judgement->request;
    assert(n != NULL);
    if (q->held != NULL)
        return SCORE_BEST;
    if (!request_shares(r))
        return SCORE_NONE;
    if (request_fixed(r) && n->total == q->total && n->used == q->used)
        return q->score;
    q->total = n->total;
    q->used = n->used;
    q->score = score_node(n, policy_cost(n, r), q->policy);
    return q->score;
}

static void judge_batch(struct question *q, const struct node *const *nodes, size_t n, size_t at)
{
    struct judgement *j = q->judgement;
    for (size_t k = 0; j->scores != NULL && k < n; k++) {
        if (nodes[k] != NULL)
            __builtin_prefetch(&nodes[k]->used);
    }
    for (size_t k = 0; k < n; k++) {
        enum verdict v = judge_one(q, nodes[k]);
        j->verdicts[at + k] = (unsigned char)v;
        j->counts[v]++;
        if (j->scores != NULL && v == VERDICT_FITS)
            j->scores[at + k] = score_one(q, nodes[k]);
    }
}

/*
 * A pod that holds a card already is asked about again when its Binding is in doubt, or when the
 * scheduler (1.20 does) requeues a pod that was bound. It has its place: that node, where a bind
 * will succeed or settle it, and no other.
 */
enum errc judge(const struct service *s, const struct filter_args *args, struct arena *a,
                bool scored, struct judgement *ret)
{
    const struct cache *cache = &s->cache;
    struct judgement j = {.verdicts = arena_alloc(a, args->n)};
    if (scored)
        j.scores = arena_array(a, args->n, sizeof(*j.scores));
    if (j.verdicts == NULL || (scored && j.scores == NULL))
        return arena_fault(a);
    bool readable = request_read(&args->pod, &j.request, &j.bad_request) == OK;
    enum pack policy = pack_choose(j.request.node_policy, PACK_UNSET, cache->settings.node_policy);
    cache_resolve(cache, args->pod.uid, &j.request);
    if (j.request.account.entry != NULL)
        j.request.memo = arena_alloc(a, sizeof(*j.request.memo));
    const struct pod *p = j.request.self;
    struct question q = {.judgement = &j,
                         .policy = policy,
                         .readable = readable,
                         .held = p != NULL && pod_holds(p) ? p->node : NULL,
                         .total = -1};
    for (size_t i = 0; i < args->n; i += MAP_BATCH) {
        const struct node *nodes[MAP_BATCH];
        size_t n = MIN_OF(args->n - i, MAP_BATCH);
        cache_nodes_each(cache, args->names + i, n, nodes);
        judge_batch(&q, nodes, n, i);
    }
    *ret = j;
    return OK;
}
