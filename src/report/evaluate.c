/*
 * Evaluates the candidates of filter and prioritize, in batches of cache look-ups. What a node that
 * is expensive to evaluate answers comes from the memo, if it knows the node. One that the memo
 * can't take is remembered for this request, so that a request which repeats its name costs no
 * more.
 */
#include "report/evaluate.h"

#include "core/limit.h"
#include "core/place/fit.h"
#include "core/state/quota_usage.h"

/* The nodes of this request with one outcome of the row. */
struct evaluation_tally {
    uint64_t times;
    uint64_t figure; /* the highest one */
};

struct question {
    struct candidates *candidates;
    struct arena *arena;
    const struct cache *cache;
    struct evaluation_memo *memo; /* NULL: nothing is remembered */
    struct evaluation_row *row;   /* NULL: not needed yet, or nothing is remembered */
    size_t n;                     /* how many candidates */
    bool readable;
    const struct node *held;    /* the node whose cards the pod holds already; or NULL */
    const struct node *own;     /* where room is kept for the pod itself; or NULL */
    struct shortfall shortfall; /* of the node evaluated last */
    bool avoids_swaps;
    bool weighs; /* scores are costs, which are as expensive as a verdict */
    struct score score;
    /* The outcome of a refusal by the node's sums alone, and what nodes with it have. */
    enum verdict plain;
    int64_t plain_largest;
    uint32_t plain_outcome; /* its number; 0: none is known */
    struct evaluation_tally
        *tallies;       /* by the number of the outcome; EVALUATION_OUTCOMES_MAX + 1 of them */
    uint32_t n_tallies; /* how many of them are in use */
};

static size_t evaluate_slot_of(const struct evaluated_nodes *t, const struct node *n)
{
    return (size_t)(((uintptr_t)n >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & t->mask;
}

/* The slot of the node, or the empty slot for it. */
static size_t evaluate_slot_find(const struct evaluated_nodes *t, const struct node *n)
{
    size_t at = evaluate_slot_of(t, n);
    while (t->table[at] != 0 && t->nodes[t->table[at] - 1] != n)
        at = (at + 1) & t->mask;
    return at;
}

size_t evaluate_first(const struct candidates *j, const struct node *n, size_t i)
{
    const struct evaluated_nodes *t = &j->evaluated;
    if (t->nodes == NULL)
        return i;
    size_t at = evaluate_slot_find(t, n);
    return t->table[at] == 0 ? i : t->table[at] - 1;
}

/* Allocates the table for the first expensive node: most requests have no such node. False: no
 * memory. */
static bool evaluate_open_judged(struct question *q)
{
    struct evaluated_nodes *t = &q->candidates->evaluated;
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

/* NULL: no memory; then evaluate() fails. */
static struct shortfall *evaluate_sums(struct question *q)
{
    struct candidates *j = q->candidates;
    if (j->shortfalls == NULL)
        j->shortfalls = arena_array(q->arena, VERDICT_COUNT, sizeof(*j->shortfalls));
    return j->shortfalls;
}

static void evaluate_note_denial(struct candidates *j, const struct node *n, enum verdict v)
{
    if ((v == VERDICT_QUOTA || v == VERDICT_QUOTA_DENIED) && j->denied == NULL) {
        j->denied = n;
        j->denial = v;
    }
}

/* Sums up what a node that refuses the pod has. one: what its cards have; NULL: they were not
 * evaluated. Without memory for the sums, evaluate() fails. */
static enum verdict evaluate_note(struct question *q, const struct node *n, enum verdict v,
                                  const struct shortfall *one)
{
    if (v == VERDICT_FITS || n == NULL)
        return v;
    struct shortfall *sums = evaluate_sums(q);
    if (sums != NULL)
        shortfall_add(&sums[v], n, v, one);
    evaluate_note_denial(q->candidates, n, v);
    return v;
}

/* A pod without cards costs something, too: the cores that pods with cards need. */
static bool evaluate_compares(const struct question *q)
{
    const struct request *r = &q->candidates->request;
    return request_shares(r) || (!request_wants(r) && policy_has_costs(q->score.policy));
}

static uint64_t evaluate_score_of(struct question *q, const struct node *n)
{
    const struct evaluation *e = &q->candidates->evaluation;
    if (q->candidates->scores == NULL || !evaluate_compares(q))
        return SCORE_NONE;
    uint64_t score = score_node(&q->score, n);
    return q->avoids_swaps && !fit_swaps(n, e) ? score_favoured(score) : score;
}

static void evaluate_set_score(struct question *q, size_t i, uint64_t score)
{
    if (q->candidates->scores != NULL)
        q->candidates->scores[i] = score;
}

static void evaluate_open_tallies(struct question *q)
{
    while (q->n_tallies <= q->row->n_outcomes)
        q->tallies[q->n_tallies++] = (struct evaluation_tally){.times = 0};
}

/* Opens the row for the first expensive node: most requests have no such node. */
static struct evaluation_row *evaluate_row_of(struct question *q)
{
    const struct evaluation *e = &q->candidates->evaluation;
    if (q->memo == NULL || q->row != NULL)
        return q->row;
    const struct evaluation_scene scene = {.quota =
                                               e->account.entry == NULL ? 0 : e->account.version,
                                           .lesson = learned_costs_lesson(&q->cache->learned),
                                           .affinity_held = e->affinity_held};
    q->row = evaluation_memo_row(q->memo, q->cache, e->request, &scene);
    q->candidates->row = q->row;
    if (q->row == NULL)
        q->memo = NULL;
    else
        evaluate_open_tallies(q);
    return q->row;
}

/* What the memo knows of the node; NULL: not all that is asked. */
static const struct evaluation_entry *evaluate_recall(struct question *q, const struct node *n)
{
    const struct evaluation_row *row = evaluate_row_of(q);
    if (row == NULL || n == q->own)
        return NULL;
    const struct evaluation_entry *e = evaluate_row_get(row, n);
    bool unscored = e != NULL && evaluate_entry_outcome(e) == 0 && e->figure == SCORE_NONE;
    return unscored && q->candidates->scores != NULL && evaluate_compares(q) ? NULL : e;
}

/* Whether shortfall_add takes only these figures of the node: of its sums, and with v NO_CARD_FREE
 * the size of its largest card. */
static bool evaluate_is_plain(const struct question *q, enum verdict v)
{
    return v == VERDICT_NODE_FULL || (v == VERDICT_NO_CARD_FREE && !q->shortfall.noted);
}

/* The same as the refusal before, without its figures being made again; NULL: it is another one. */
static const struct evaluation_entry *evaluate_remember_plain(struct question *q,
                                                              const struct node *n, enum verdict v)
{
    bool full = v == VERDICT_NODE_FULL;
    if (q->plain_outcome == 0 || v != q->plain || !evaluate_is_plain(q, v) ||
        (!full && n->largest != q->plain_largest))
        return NULL;
    int64_t figure = full ? node_left(n) : MAX_OF(n->most_free, (int64_t)0);
    return evaluate_row_refuses_again(q->row, n, q->plain_outcome, (uint64_t)figure);
}

/* Remembers what q->shortfall and the arguments say. NULL: it can't be remembered. */
static const struct evaluation_entry *evaluate_remember(struct question *q, const struct node *n,
                                                        enum verdict v, uint64_t score)
{
    const struct evaluation *of = &q->candidates->evaluation;
    if (q->row == NULL || n == q->own || of->step_budget->cut)
        return NULL;
    if (v == VERDICT_FITS)
        return evaluate_row_fits(q->row, n, score);
    const struct evaluation_entry *e = evaluate_remember_plain(q, n, v);
    if (e != NULL)
        return e;
    struct shortfall alone = {.free = 0};
    shortfall_add(&alone, n, v, &q->shortfall);
    e = evaluate_row_refuses(q->memo, q->row, n, of, v, &alone);
    evaluate_open_tallies(q);
    if (e != NULL && evaluate_is_plain(q, v)) {
        q->plain = v;
        q->plain_largest = n->largest;
        q->plain_outcome = evaluate_entry_outcome(e);
    }
    return e;
}

static enum verdict evaluate_repeat_refusal(struct question *q, const struct node *n,
                                            const struct evaluation_entry *e, size_t i)
{
    struct candidates *j = q->candidates;
    uint32_t number = evaluate_entry_outcome(e);
    const struct evaluation_outcome *o = &q->row->outcomes[number - 1];
    struct evaluation_tally *tally = &q->tallies[number];
    if (evaluation_memo_sees(q->memo, n)) {
        tally->times++;
        tally->figure = MAX_OF(tally->figure, e->figure);
    }
    evaluate_note_denial(j, n, o->verdict);
    if (o->text.p == NULL)
        return o->verdict;
    if (j->refusals == NULL)
        j->refusals = arena_alloc(q->arena, q->n);
    if (j->refusals != NULL)
        j->refusals[i] = (unsigned char)number;
    return o->verdict;
}

static enum verdict evaluate_repeat(struct question *q, const struct node *n,
                                    const struct evaluation_entry *e, size_t i)
{
    if (evaluate_entry_outcome(e) > 0)
        return evaluate_repeat_refusal(q, n, e, i);
    evaluate_set_score(q, i, e->figure);
    return VERDICT_FITS;
}

/* Adds what the nodes of each outcome have to the sums. */
static void evaluate_sum_up(struct question *q)
{
    for (uint32_t i = 0; q->row != NULL && i < q->row->n_outcomes; i++) {
        const struct evaluation_outcome *o = &q->row->outcomes[i];
        const struct evaluation_tally *t = &q->tallies[i + 1];
        struct shortfall *sums = t->times == 0 ? NULL : evaluate_sums(q);
        if (sums != NULL)
            evaluate_outcome_add(o, t->times, t->figure, &sums[o->verdict]);
    }
}

/* Evaluates a node that the memo does not know, once for a request even if it names the node
 * several times. */
static enum verdict evaluate_candidate(struct question *q, const struct node *n, size_t i)
{
    struct candidates *j = q->candidates;
    struct evaluated_nodes *t = &j->evaluated;
    size_t first = evaluate_first(j, n, i);
    if (first != i) {
        evaluate_set_score(q, i, j->scores == NULL ? SCORE_NONE : j->scores[first]);
        return (enum verdict)j->verdicts[first];
    }
    if (step_budget_is_spent(j->evaluation.step_budget))
        return VERDICT_UNKNOWN_NODE; /* not reported: evaluate() fails */
    q->shortfall.noted = false;
    j->evaluation.step_budget->cut = false;
    enum verdict v = fit_node(n, &j->evaluation);
    uint64_t score = v == VERDICT_FITS ? evaluate_score_of(q, n) : SCORE_NONE;
    const struct evaluation_entry *e = evaluate_remember(q, n, v, score);
    if (e != NULL)
        return evaluate_repeat(q, n, e, i);
    if (!evaluate_open_judged(q))
        return VERDICT_UNKNOWN_NODE; /* as above */
    t->table[evaluate_slot_find(t, n)] = (uint32_t)i + 1;
    t->nodes[i] = n;
    evaluate_set_score(q, i, score);
    return evaluate_note(q, n, v, &q->shortfall);
}

static enum verdict evaluate_dear(struct question *q, const struct node *n, size_t i)
{
    const struct evaluation_entry *e = evaluate_recall(q, n);
    return e != NULL ? evaluate_repeat(q, n, e, i) : evaluate_candidate(q, n, i);
}

/* Whether the score needs fit_swaps, which is as expensive as a verdict. */
static bool evaluate_is_scored_by_swaps(const struct question *q, const struct node *n)
{
    return q->avoids_swaps && q->candidates->scores != NULL && n != NULL && n->n_starting > 0;
}

static enum verdict evaluate_one(struct question *q, const struct node *n, size_t i)
{
    const struct evaluation *e = &q->candidates->evaluation;
    if (!q->readable)
        return VERDICT_BAD_REQUEST;
    if (q->held != NULL && n != NULL) {
        evaluate_set_score(q, i, n == q->held ? SCORE_BEST : SCORE_NONE);
        return n == q->held ? VERDICT_FITS : VERDICT_HELD_ELSEWHERE;
    }
    if (evaluate_is_scored_by_swaps(q, n))
        return evaluate_dear(q, n, i);
    if (fit_simply(n, e)) {
        if (q->weighs)
            return evaluate_dear(q, n, i);
        evaluate_set_score(q, i, evaluate_score_of(q, n));
        return VERDICT_FITS;
    }
    return fit_is_cheap(n, e) ? evaluate_note(q, n, fit_node(n, e), NULL) : evaluate_dear(q, n, i);
}

static void evaluate_batch(struct question *q, const struct node *const *nodes, size_t n, size_t at)
{
    struct candidates *j = q->candidates;
    for (size_t k = 0; (j->scores != NULL || q->row != NULL) && k < n; k++) {
        if (nodes[k] != NULL)
            __builtin_prefetch(&nodes[k]->used);
    }
    for (size_t k = 0; k < n; k++) {
        enum verdict v = evaluate_one(q, nodes[k], at + k);
        j->verdicts[at + k] = (unsigned char)v;
        j->counts[v]++;
        step_budget_next_node(j->evaluation.step_budget);
    }
    j->evaluation.step_budget->steps += n;
}

static enum errc evaluate_no_room(const struct arena *a, struct err *reterr)
{
    if (arena_failed(a))
        return err_set(reterr, arena_fault(a), "cardpack is out of memory");
    return step_budget_fail(reterr);
}

struct str evaluate_refusal(const struct candidates *j, size_t i)
{
    uint32_t number = j->refusals == NULL ? 0 : j->refusals[i];
    return number == 0 ? STR_NULL : j->row->outcomes[number - 1].text;
}

/*
 * kube-scheduler asks again about a pod that already holds a card when its Binding is in doubt, or
 * (version 1.20) when it requeues a bound pod. Only the node of that card is feasible for the pod:
 * there a bind succeeds, or resolves the Binding in doubt.
 */
enum errc evaluate(const struct cache *cache, struct evaluation_memo *memo,
                   struct step_budget *step_budget, const struct filter_args *args, struct arena *a,
                   bool scored, struct candidates *j, struct err *reterr)
{
    struct evaluation *e = &j->evaluation;
    *j = (struct candidates){.verdicts = arena_alloc(a, args->n)};
    step_budget_begin(step_budget, args->n);
    if (scored)
        j->scores = arena_array(a, args->n, sizeof(*j->scores));
    if (j->verdicts == NULL || (scored && j->scores == NULL))
        return evaluate_no_room(a, reterr);
    bool readable = request_read(&args->pod, &j->request, &j->bad_request) == OK;
    enum policy policy =
        policy_choose(j->request.node_policy, POLICY_UNSET, cache->settings.node_policy);
    cache_evaluation(cache, args->pod.uid, &j->request, e);
    e->step_budget = step_budget;
    if (e->account.entry != NULL)
        e->memo = arena_alloc(a, sizeof(*e->memo));
    const struct pod *p = e->self;
    struct question q = {.candidates = j,
                         .arena = a,
                         .cache = cache,
                         .memo = memo,
                         .n = args->n,
                         .readable = readable,
                         .held = p != NULL && pod_holds(p) ? p->node : NULL,
                         .own = p == NULL ? NULL : p->keeper,
                         .avoids_swaps = cache->settings.swap_guard == SWAP_GUARD_PREFER};
    struct evaluation_tally tallies[EVALUATION_OUTCOMES_MAX + 1] _uninitialized_;
    q.tallies = tallies;
    score_begin(&q.score, e, policy);
    q.weighs = scored && policy_has_costs(q.score.policy);
    if (memo != NULL && !evaluation_memo_begin(memo, cache))
        q.memo = NULL;
    e->shortfall = &q.shortfall;
    for (size_t i = 0; i < args->n && !step_budget_is_spent(step_budget); i += MAP_BATCH) {
        const struct node *nodes[MAP_BATCH];
        size_t n = MIN_OF(args->n - i, MAP_BATCH);
        cache_nodes_each(cache, args->names + i, n, nodes);
        evaluate_batch(&q, nodes, n, i);
    }
    evaluate_sum_up(&q);
    e->shortfall = NULL;
    return arena_failed(a) || step_budget_is_spent(step_budget) ? evaluate_no_room(a, reterr) : OK;
}
