/*
 * Evaluates the candidates of filter and prioritize, in batches of cache look-ups. What a node that
 * is expensive to evaluate answers comes from the memo, if it knows the node. One that the memo
 * can't take is remembered for this request, so that a request which repeats its name costs no
 * more.
 */
#include "report/judge.h"

#include "core/fit.h"
#include "core/limit.h"
#include "core/uses.h"

/* The nodes of this request with one outcome of the row. */
struct judge_tally {
    uint64_t times;
    uint64_t figure; /* the highest one */
};

struct question {
    struct judgement *judgement;
    struct arena *arena;
    const struct cache *cache;
    struct judge_memo *memo; /* NULL: nothing is remembered */
    struct judge_row *row;   /* NULL: not needed yet, or nothing is remembered */
    size_t n;                /* candidates */
    bool readable;
    const struct node *held; /* the node whose cards the pod holds already; or NULL */
    const struct node *own;  /* where room is kept for the pod itself; or NULL */
    struct lack lack;        /* of the node evaluated last */
    bool avoids_swaps;
    bool weighs; /* scores are costs, which are as expensive as a verdict */
    struct score score;
    /* The outcome of a refusal by the node's sums alone, and what nodes with it have. */
    enum verdict plain;
    int64_t plain_largest;
    uint32_t plain_outcome;      /* its number; 0: none is known */
    struct judge_tally *tallies; /* by the number of the outcome; JUDGE_OUTCOMES_MAX + 1 of them */
    uint32_t n_tallies;          /* how many of them are in use */
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

/* NULL: no memory; then judge() fails. */
static struct lack *judge_sums(struct question *q)
{
    struct judgement *j = q->judgement;
    if (j->lacks == NULL)
        j->lacks = arena_array(q->arena, VERDICT_COUNT, sizeof(*j->lacks));
    return j->lacks;
}

static void judge_note_denial(struct judgement *j, const struct node *n, enum verdict v)
{
    if ((v == VERDICT_QUOTA || v == VERDICT_QUOTA_DENIED) && j->denied == NULL) {
        j->denied = n;
        j->denial = v;
    }
}

/* Sums up what a node that refuses the pod has. one: what its cards have; NULL: they were not
 * evaluated. Without memory for the sums, judge() fails. */
static enum verdict judge_note(struct question *q, const struct node *n, enum verdict v,
                               const struct lack *one)
{
    if (v == VERDICT_FITS || n == NULL)
        return v;
    struct lack *sums = judge_sums(q);
    if (sums != NULL)
        lack_add(&sums[v], n, v, one);
    judge_note_denial(q->judgement, n, v);
    return v;
}

/* A pod without cards costs something, too: the cores that pods with cards need. */
static bool judge_compares(const struct question *q)
{
    const struct request *r = &q->judgement->request;
    return request_shares(r) || (!request_wants(r) && pack_has_costs(q->score.policy));
}

static uint64_t judge_score_of(struct question *q, const struct node *n)
{
    const struct request *r = &q->judgement->request;
    if (q->judgement->scores == NULL || !judge_compares(q))
        return SCORE_NONE;
    uint64_t score = score_node(&q->score, n);
    return q->avoids_swaps && !fit_swaps(n, r) ? score_favoured(score) : score;
}

static void judge_set_score(struct question *q, size_t i, uint64_t score)
{
    if (q->judgement->scores != NULL)
        q->judgement->scores[i] = score;
}

static void judge_open_tallies(struct question *q)
{
    while (q->n_tallies <= q->row->n_outcomes)
        q->tallies[q->n_tallies++] = (struct judge_tally){.times = 0};
}

/* Opens the row for the first expensive node: most requests have no such node. */
static struct judge_row *judge_row_of(struct question *q)
{
    const struct request *r = &q->judgement->request;
    if (q->memo == NULL || q->row != NULL)
        return q->row;
    const struct judge_scene scene = {.quota = r->account.entry == NULL ? 0 : r->account.version,
                                      .lesson = policies_lesson(&q->cache->policies),
                                      .affinity_held = r->affinity_held};
    q->row = judge_memo_row(q->memo, q->cache, r, &scene);
    q->judgement->row = q->row;
    if (q->row == NULL)
        q->memo = NULL;
    else
        judge_open_tallies(q);
    return q->row;
}

/* What the memo knows of the node; NULL: not all that is asked. */
static const struct judge_entry *judge_recall(struct question *q, const struct node *n)
{
    const struct judge_row *row = judge_row_of(q);
    if (row == NULL || n == q->own)
        return NULL;
    const struct judge_entry *e = judge_row_get(row, n);
    bool unscored = e != NULL && judge_entry_outcome(e) == 0 && e->figure == SCORE_NONE;
    return unscored && q->judgement->scores != NULL && judge_compares(q) ? NULL : e;
}

/* Whether lack_add takes only these figures of the node: of its sums, and with v NO_CARD_FREE the
 * size of its largest card. */
static bool judge_is_plain(const struct question *q, enum verdict v)
{
    return v == VERDICT_NODE_FULL || (v == VERDICT_NO_CARD_FREE && !q->lack.noted);
}

/* The same as the refusal before, without its figures being made again; NULL: it is another one. */
static const struct judge_entry *judge_remember_plain(struct question *q, const struct node *n,
                                                      enum verdict v)
{
    bool full = v == VERDICT_NODE_FULL;
    if (q->plain_outcome == 0 || v != q->plain || !judge_is_plain(q, v) ||
        (!full && n->largest != q->plain_largest))
        return NULL;
    int64_t figure = full ? node_left(n) : MAX_OF(n->most_free, (int64_t)0);
    return judge_row_refuses_again(q->row, n, q->plain_outcome, (uint64_t)figure);
}

/* Remembers what q->lack and the arguments say. NULL: it can't be remembered. */
static const struct judge_entry *judge_remember(struct question *q, const struct node *n,
                                                enum verdict v, uint64_t score)
{
    const struct request *r = &q->judgement->request;
    if (q->row == NULL || n == q->own || r->work->cut)
        return NULL;
    if (v == VERDICT_FITS)
        return judge_row_fits(q->row, n, score);
    const struct judge_entry *e = judge_remember_plain(q, n, v);
    if (e != NULL)
        return e;
    struct lack alone = {.free = 0};
    lack_add(&alone, n, v, &q->lack);
    e = judge_row_refuses(q->memo, q->row, n, r, v, &alone);
    judge_open_tallies(q);
    if (e != NULL && judge_is_plain(q, v)) {
        q->plain = v;
        q->plain_largest = n->largest;
        q->plain_outcome = judge_entry_outcome(e);
    }
    return e;
}

static enum verdict judge_repeat_refusal(struct question *q, const struct node *n,
                                         const struct judge_entry *e, size_t i)
{
    struct judgement *j = q->judgement;
    uint32_t number = judge_entry_outcome(e);
    const struct judge_outcome *o = &q->row->outcomes[number - 1];
    struct judge_tally *tally = &q->tallies[number];
    if (judge_memo_sees(q->memo, n)) {
        tally->times++;
        tally->figure = MAX_OF(tally->figure, e->figure);
    }
    judge_note_denial(j, n, o->verdict);
    if (o->text.p == NULL)
        return o->verdict;
    if (j->refusals == NULL)
        j->refusals = arena_alloc(q->arena, q->n);
    if (j->refusals != NULL)
        j->refusals[i] = (unsigned char)number;
    return o->verdict;
}

static enum verdict judge_repeat(struct question *q, const struct node *n,
                                 const struct judge_entry *e, size_t i)
{
    if (judge_entry_outcome(e) > 0)
        return judge_repeat_refusal(q, n, e, i);
    judge_set_score(q, i, e->figure);
    return VERDICT_FITS;
}

/* Adds what the nodes of each outcome have to the sums. */
static void judge_sum_up(struct question *q)
{
    for (uint32_t i = 0; q->row != NULL && i < q->row->n_outcomes; i++) {
        const struct judge_outcome *o = &q->row->outcomes[i];
        const struct judge_tally *t = &q->tallies[i + 1];
        struct lack *sums = t->times == 0 ? NULL : judge_sums(q);
        if (sums != NULL)
            judge_outcome_add(o, t->times, t->figure, &sums[o->verdict]);
    }
}

/* Evaluates a node that the memo does not know, once for a request even if it names the node
 * several times. */
static enum verdict judge_evaluate(struct question *q, const struct node *n, size_t i)
{
    struct judgement *j = q->judgement;
    struct judged_nodes *t = &j->judged;
    size_t first = judge_first(j, n, i);
    if (first != i) {
        judge_set_score(q, i, j->scores == NULL ? SCORE_NONE : j->scores[first]);
        return (enum verdict)j->verdicts[first];
    }
    if (work_is_over(j->request.work))
        return VERDICT_UNKNOWN_NODE; /* not reported: judge() fails */
    q->lack.noted = false;
    j->request.work->cut = false;
    enum verdict v = fit_node(n, &j->request);
    uint64_t score = v == VERDICT_FITS ? judge_score_of(q, n) : SCORE_NONE;
    const struct judge_entry *e = judge_remember(q, n, v, score);
    if (e != NULL)
        return judge_repeat(q, n, e, i);
    if (!judge_open_judged(q))
        return VERDICT_UNKNOWN_NODE; /* as above */
    t->table[judge_slot_find(t, n)] = (uint32_t)i + 1;
    t->nodes[i] = n;
    judge_set_score(q, i, score);
    return judge_note(q, n, v, &q->lack);
}

static enum verdict judge_dear(struct question *q, const struct node *n, size_t i)
{
    const struct judge_entry *e = judge_recall(q, n);
    return e != NULL ? judge_repeat(q, n, e, i) : judge_evaluate(q, n, i);
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
    if (q->held != NULL && n != NULL) {
        judge_set_score(q, i, n == q->held ? SCORE_BEST : SCORE_NONE);
        return n == q->held ? VERDICT_FITS : VERDICT_HELD_ELSEWHERE;
    }
    if (judge_is_scored_by_swaps(q, n))
        return judge_dear(q, n, i);
    if (fit_simply(n, r)) {
        if (q->weighs)
            return judge_dear(q, n, i);
        judge_set_score(q, i, judge_score_of(q, n));
        return VERDICT_FITS;
    }
    return fit_is_cheap(n, r) ? judge_note(q, n, fit_node(n, r), NULL) : judge_dear(q, n, i);
}

static void judge_batch(struct question *q, const struct node *const *nodes, size_t n, size_t at)
{
    struct judgement *j = q->judgement;
    for (size_t k = 0; (j->scores != NULL || q->row != NULL) && k < n; k++) {
        if (nodes[k] != NULL)
            __builtin_prefetch(&nodes[k]->used);
    }
    for (size_t k = 0; k < n; k++) {
        enum verdict v = judge_one(q, nodes[k], at + k);
        j->verdicts[at + k] = (unsigned char)v;
        j->counts[v]++;
        work_next_node(j->request.work);
    }
    j->request.work->steps += n;
}

static enum errc judge_no_room(const struct arena *a, struct err *reterr)
{
    if (arena_failed(a))
        return err_set(reterr, arena_fault(a), "cardpack is out of memory");
    return work_fail(reterr);
}

struct str judge_refusal(const struct judgement *j, size_t i)
{
    uint32_t number = j->refusals == NULL ? 0 : j->refusals[i];
    return number == 0 ? STR_NULL : j->row->outcomes[number - 1].text;
}

/*
 * kube-scheduler asks again about a pod that already holds a card when its Binding is in doubt, or
 * (version 1.20) when it requeues a bound pod. Only the node of that card is feasible for the pod:
 * there a bind succeeds, or resolves the Binding in doubt.
 */
enum errc judge(const struct cache *cache, struct judge_memo *memo, struct work *work,
                const struct filter_args *args, struct arena *a, bool scored, struct judgement *ret,
                struct err *reterr)
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
                         .cache = cache,
                         .memo = memo,
                         .n = args->n,
                         .readable = readable,
                         .held = p != NULL && pod_holds(p) ? p->node : NULL,
                         .own = p == NULL ? NULL : p->claim,
                         .avoids_swaps = cache->settings.swap_guard == SWAP_GUARD_PREFER};
    struct judge_tally tallies[JUDGE_OUTCOMES_MAX + 1] _uninitialized_;
    q.tallies = tallies;
    score_begin(&q.score, &j.request, policy);
    q.weighs = scored && pack_has_costs(q.score.policy);
    if (memo != NULL && !judge_memo_begin(memo, cache))
        q.memo = NULL;
    j.request.lack = &q.lack;
    for (size_t i = 0; i < args->n && !work_is_over(work); i += MAP_BATCH) {
        const struct node *nodes[MAP_BATCH];
        size_t n = MIN_OF(args->n - i, MAP_BATCH);
        cache_nodes_each(cache, args->names + i, n, nodes);
        judge_batch(&q, nodes, n, i);
    }
    judge_sum_up(&q);
    j.request.lack = NULL;
    *ret = j;
    return arena_failed(a) || work_is_over(work) ? judge_no_room(a, reterr) : OK;
}
